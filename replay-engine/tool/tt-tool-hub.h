/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt hub: what its files know of each other. The ports carry the frames; the hub makes a
 * port of each connection.
 */
#ifndef TT_TOOL_HUB_H
#define TT_TOOL_HUB_H

#include "tt-tool.h"
#include "net-tt/tt-address.h"
#include "net-tt/tt-link.h"
#include "net-tt/tt-listen.h"
#include "net-tt/tt-said.h"
#include "net-tt/tt-shape.h"

#include <glib-unix.h>
#include <netinet/in.h>
#include <stdio.h>

/* ---- listening: tt-tool-hublisten.c ---- */

#define HUB_SOCKETS_MAX 8

/* A number that a host has, and a port. */
typedef union HubNumber {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} HubNumber;

/* Does whoever listens at @has listen at @where, perhaps as one of all numbers? @takes_ipv4:
 * :: stands for those of IPv4, too. */
bool hub_number_covers(const HubNumber *has, bool takes_ipv4, const HubNumber *where);

/* The line that a hub prints when it listens at all addresses. */
#define HUB_IS_READY    "the hub is ready"

/* At one address, whose name may have several numbers. Zeros: it does not listen. */
typedef struct HubListener {
    const struct HubListener *before;   /* of the same hub; what that has is left out */
    unsigned n;
    int fd[HUB_SOCKETS_MAX];    /* nonblocking */
    guint tag[HUB_SOCKETS_MAX];
    TtListen place;             /* of a Unix socket: its fd is fd[0] */
} HubListener;

/* @l: zeros, but for @before. Of port 0 all have the same. NULL: it listens; or why not. */
const char *hub_listen(HubListener *l, const TtAddress *a, GUnixFDSourceFunc came,
                       void *opaque);
void hub_listen_end(HubListener *l);

/* ---- the hub ---- */

typedef struct HubPort HubPort;

/* A frame on its way. */
typedef struct HubFrame {
    uint64_t came_ns, at_ns, serial;
    unsigned from, to;
    uint64_t peer;              /* whom it is for */
    TtFrame frame;              /* its data: after it, or in the buffer of its link */
    uint8_t data[];
} HubFrame;

/* What became of it; fates from HUB_FULL on are not the network's. */
enum {
    HUB_FULL = TT_FATE_QUEUE_FULL + 1, HUB_PEER_SLOW, HUB_PEER_GONE, HUB_KNOWS,
};

typedef struct Hub {
    char *group;
    uint8_t *key;
    size_t key_len;
    TtShape shape;
    TtPlaces places;
    TtHeard heard, told;        /* frames; incidents */
    TtBurst incidents;          /* of all ports; each member takes as many */
    TtBurst checkpoints;        /* the same, that are passed on one by one */
    HubPort *ports[TT_SHAPE_PORTS_MAX];
    GSequence *waiting;         /* of HubFrame, by the time at which it leaves */
    size_t waiting_bytes;
    uint64_t serial, n_peers;   /* of frames that wait; of those who were let in */
    GSource *timer;
    struct HubLog *log;         /* NULL: none */
    guint silence_tag;
    uint64_t n_came, n_gone, n_lost;
    uint32_t epoch;             /* checkpoints of the group so far */
    unsigned n_ports;           /* whose peers are here now, and ... */
    unsigned n_members;         /* ... those that are members, of whom there may be ... */
    uint64_t members_max;       /* ... so many; 0: any number */
    bool is_for_once;           /* the loop ends when the last member has left, and ... */
    guint end_tag;              /* ... whoever is at the door has come in, gone or waited */
    GMainLoop *loop;            /* NULL: it does not run */
    TtSaid said[TT_SAID_KINDS]; /* see hub_say */
} Hub;

void hub_init(Hub *h);
/* All ports are closed, and what was on its way is lost. */
void hub_end(Hub *h);
/* Takes @fd over: a connection that was accepted. */
void hub_connected(Hub *h, int fd);
/* The one that has been silent for longest gives its place to another peer, at once: a member
 * says READY within a round trip. False: all are members. */
bool hub_drop_silent(Hub *h);
/* @w leaves now, or is lost. */
void hub_send(Hub *h, const HubFrame *w);

/* ---- frames on their way: tt-tool-hubwait.c ---- */

/* The clock of all times of a hub. */
uint64_t hub_now_ns(void);
void hub_wait_init(Hub *h);
/* @f leaves at its time. It is copied. */
void hub_wait_for(Hub *h, const HubFrame *f);
void hub_wait_end(Hub *h);          /* what waits is lost */

/* ---- what is said and logged: tt-tool-hublog.c ---- */

/* A pipe may be the log, also one that nobody reads: the hub waits for no reader, and loses
 * lines. False: said why. */
bool hub_log_open(Hub *h, const char *path);
/* False: not all of it was written, and that was said. Nothing, if there is none. It waits
 * some seconds for a reader, at most. */
bool hub_log_close(Hub *h);
/* Can something be written to @fd within @wait_ms? Who does not read a pipe stops nobody. */
bool hub_can_write(int fd, int wait_ms);
void hub_settle(Hub *h, const HubFrame *w, unsigned fate);
/* One sentence; of those with one format, ever fewer, which say how many there were. */
void hub_say(Hub *h, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

#endif
