/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The door of a netdev tt: whoever has connected waits here, beside others, until it has said
 * READY, with the key of the group if there is one. So strangers take no place that a member
 * needs.
 *
 * Context: main thread, the BQL is held.
 */
#ifndef TT_NET_DOOR_INT_H
#define TT_NET_DOOR_INT_H

#include "tt-net-int.h"
#include "io/channel-socket.h"

typedef struct TtNetDoor TtNetDoor;

/* Neither may free the door. */
typedef struct TtNetDoorOps {
    /* A peer, whose link is open. Both are the callee's from here on. */
    void (*enters)(void *opaque, QIOChannel *ioc, TtLink *link);
    /* One was turned away, or has gone, and a sentence was said if there is a reason. */
    void (*leaves)(void *opaque);
} TtNetDoorOps;

/* @o: its say, group and key stay the caller's, who keeps them longer. Never NULL. */
TtNetDoor *tt_net_door_new(const TtNetConnOptions *o, const TtNetDoorOps *ops, void *opaque);
/* Whoever waits is turned away, without a call of leaves. NULL is fine. */
void tt_net_door_free(TtNetDoor *d);
/* @sioc was connected; a reference is taken. The one that waits for longest makes room if
 * there are too many. May call leaves. */
void tt_net_door_came(TtNetDoor *d, QIOChannelSocket *sioc);

#endif
