/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt hub: what its two files know of each other. The ports carry the frames; the hub
 * makes a port of each connection.
 */
#ifndef TT_TOOL_HUB_H
#define TT_TOOL_HUB_H

#include "tt-tool.h"
#include "net-tt/tt-address.h"
#include "net-tt/tt-link.h"
#include "net-tt/tt-shape.h"

#include <stdio.h>

typedef struct HubPort HubPort;

typedef struct Hub {
    char *group;
    uint8_t *key;
    size_t key_len;
    TtShape shape;
    TtPlaces places;
    TtHeard heard, told;        /* frames; incidents */
    HubPort *ports[TT_SHAPE_PORTS_MAX];
    GSequence *waiting;         /* of HubFrame, by the time at which it leaves */
    size_t waiting_bytes;
    uint64_t serial, n_peers;   /* of frames that wait; of those who were let in */
    GSource *timer;
    FILE *log;
    guint silence_tag;
    uint64_t n_came, n_gone, n_lost;
    uint32_t epoch;             /* checkpoints of the group so far */
    unsigned n_members;         /* that are here now */
    bool is_for_once;           /* the loop ends when the last of them has left */
    GMainLoop *loop;            /* NULL: it does not run */
    int64_t said_us;
} Hub;

void hub_init(Hub *h);
/* All ports are closed, and what was on its way is lost. */
void hub_end(Hub *h);
/* A socket that listens there, nonblocking; -1: errno. */
int hub_listen(const TtAddress *a);
/* Takes @fd over: a connection that was accepted. */
void hub_connected(Hub *h, int fd);
/* One sentence, but not too many. */
void hub_say(Hub *h, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

#endif
