/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of a link of a group that no VM has: this program takes a member's place
 * (net-tt/tt-link.h).
 *
 * Context: the default main context.
 */
#ifndef TT_TOOL_GROUPLINK_H
#define TT_TOOL_GROUPLINK_H

#include "tt-tool-group.h"

typedef struct GroupLink GroupLink;

/* A frame came; it is valid until this returns. */
typedef void GroupLinkCame(void *opaque, const TtFrame *f);

/* As the member's own option says: it listens, or connects, and tries again when the peer
 * has gone. NULL: said why. */
GroupLink *group_link_new(const GroupMeeting *m, GroupLinkCame *came, void *opaque);
void group_link_free(GroupLink *l);             /* NULL is fine */
bool group_link_is_open(const GroupLink *l);
/* Of the checkpoints of the group, the last that the peer told of. */
uint32_t group_link_epoch(const GroupLink *l);
/* False: the link is not open, or the peer does not read. */
bool group_link_send(GroupLink *l, const TtFrame *f);

#endif
