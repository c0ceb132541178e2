/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The door of a link of this program: whoever has connected waits here, beside others, until
 * it has said READY, with the key of the group if there is one. (A netdev has the same:
 * net-tt/glue/tt-net-door-int.h.)
 *
 * Context: the default main context.
 */
#ifndef TT_TOOL_GROUPDOOR_H
#define TT_TOOL_GROUPDOOR_H

#include "net-tt/tt-link.h"

typedef struct GroupDoor GroupDoor;

/* Neither may free the door. */
typedef struct GroupDoorOps {
    /* A peer, whose link is open. Both are the callee's from here on. */
    void (*enters)(void *opaque, int fd, TtLink *link);
    /* One was turned away, or has gone. @why: a sentence about it, or NULL. */
    void (*leaves)(void *opaque, const char *why);
} GroupDoorOps;

/* @o: its group and key stay the caller's, who keeps them longer. Never NULL. */
GroupDoor *group_door_new(const TtLinkOptions *o, const GroupDoorOps *ops, void *opaque);
/* Whoever waits is turned away, without a call of leaves. NULL is fine. */
void group_door_free(GroupDoor *d);
/* Takes @fd over, which was connected. The one that waits for longest makes room if there are
 * too many. May call leaves. */
void group_door_came(GroupDoor *d, int fd);

#endif
