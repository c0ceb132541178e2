/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The list of the checkpoints that a recording keeps, for people: the checkpoint store's
 * thread fills it, anybody may read it.
 *
 * Context: any thread; each call takes a lock for a moment.
 */
#ifndef TT_CPLIST_H
#define TT_CPLIST_H

#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"

/* Tells of @id as it is in @store now; new or known. The store is the caller's. */
void tt_cplist_show(TtPageStore *store, TtNodeId id);
/* @id is gone: its pages are with the one after it now. False: it was not listed. */
bool tt_cplist_remove(TtPageStore *store, TtNodeId id);
void tt_cplist_clear(void);
/* Checkpoint @id is about to be restored: it is not thinned out to make room for another.
 * 0: none is. */
void tt_cplist_spare(TtNodeId id);
bool tt_cplist_is_spared(TtNodeId id);
/* A copy, of TtCheckpointDesc, by position; the caller frees it. */
GArray *tt_cplist_list(void);
bool tt_cplist_has_pinned(void);        /* one that the user added */

#endif
