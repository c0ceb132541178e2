/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The door of a netdev tt, and of the one end of a link that a tool is: whoever has connected
 * waits here, beside others, until it has said READY, with the key of the group if there is
 * one. So strangers take no place that a member needs.
 *
 * Context: the thread of glib's default main context; in QEMU with the BQL.
 */
#ifndef TT_DOOR_H
#define TT_DOOR_H

#include "net-tt/tt-link.h"

typedef struct TtDoor TtDoor;

/* Neither may free the door. */
typedef struct TtDoorOps {
    /* A peer, whose link is open. Both are the callee's from here on. */
    void (*enters)(void *opaque, int fd, TtLink *link);
    /* One was turned away, or has gone. @why: why, or NULL; valid during the call.
     * @is_refused: that one has said that it takes no peer. */
    void (*leaves)(void *opaque, const char *why, bool is_refused);
} TtDoorOps;

/* @o: its group and key stay the caller's, who keeps them longer. Never NULL. */
TtDoor *tt_door_new(const TtLinkOptions *o, const TtDoorOps *ops, void *opaque);
/* Whoever waits is turned away, without a call of leaves. NULL is fine. */
void tt_door_free(TtDoor *d);
/* Takes @fd over, which was connected. The one that waits for longest makes room if there are
 * too many. May call leaves. */
void tt_door_came(TtDoor *d, int fd);
/* The peer hears why it is refused, if its socket has room, and @fd is closed. @link: its own
 * if it was let in, taken over; else NULL. */
void tt_door_refuse(TtDoor *d, int fd, TtLink *link, TtRefusal why);

#endif
