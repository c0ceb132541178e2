/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Making nodes of a page store, putting them between others, and merging those
 * that were deleted. The invariants S1 to S6 are at the head of tt-pagestore.c.
 *
 * Context: one thread at a time, no I/O. Private to the page store. A node
 * belongs to the map once it is inserted, to the caller before.
 */
#ifndef TT_PAGENODE_H
#define TT_PAGENODE_H

#include "tt-pagemap.h"

TtNode *tt_node_new(TtPageMap *pm, uint64_t pos, size_t cap);
/* Without the references of its delta: the pool goes as well. */
void tt_node_free(TtPageMap *pm, TtNode *node);
/* With the references of its delta. */
void tt_node_drop(TtPageMap *pm, TtNode *node);
/* Puts @node, filled against the state before @index, in at @index; the map is
 * at the node before. False: memory is short, nothing changed. */
bool tt_node_insert(TtPageMap *pm, size_t index, TtNode *node);
/* Is there a node (no tombstone) at @pos? @upper: tt_node_upper(@pos). */
bool tt_node_is_taken(const TtPageMap *pm, size_t upper, uint64_t pos);
/* Merges what was deleted; pm->n_tombstones says what is left. */
void tt_tombstones_sweep(TtPageMap *pm);
void tt_blob_unref(TtPageMap *pm, TtBlob *blob);

#endif
