/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The list of the checkpoints that a recording keeps, for people: the shelf's
 * thread fills it, anybody may read it. Private to replay-engine/glue.
 *
 * Context: any thread; each call takes a lock for a moment.
 */
#ifndef TT_CPLIST_H
#define TT_CPLIST_H

#include "pages/tt-pagestore.h"

/* Tells of @id as it is in @store now; new or known. The store is the caller's. */
void tt_kept_show(TtPageStore *store, TtNodeId id);
/* @id is gone: its pages are with the one behind it now. False: it was not listed. */
bool tt_kept_remove(TtPageStore *store, TtNodeId id);
void tt_kept_clear(void);
/* A copy, of TtPoint, by position; the caller frees it. */
GArray *tt_kept_list(void);

#endif
