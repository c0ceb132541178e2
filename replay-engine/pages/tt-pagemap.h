/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Nodes of a page store in order, the map of the whole RAM that moves between
 * them, and the list of pages that an operation has to look at. The model and
 * the invariants S1 to S6 are at the head of tt-pagestore.c.
 *
 * Context: one thread at a time, no I/O. Private to the page store.
 */
#ifndef TT_PAGEMAP_H
#define TT_PAGEMAP_H

#include "tt-pagepool.h"

#include <assert.h>
#include <glib.h>

#define LEAF_PAGES      1024u
#define LEAVES_MAX      (TT_PAGES_MAX / LEAF_PAGES)

typedef struct TtDelta {
    uint32_t page;
    TtVersion old, new;
} TtDelta;

/* Bytes of a caller, until they are on disk. */
typedef struct TtBlob {
    uint32_t refs;
    size_t len;
    uint8_t bytes[];
} TtBlob;

typedef struct TtNode {
    uint64_t pos;
    TtNodeId id;
    bool is_tombstone;
    bool is_from_zero;          /* was the first: not all that was written is listed */
    uint32_t flags;             /* of the checkpoint */
    uint64_t host_ns;
    size_t n, cap;              /* deltas used and allocated */
    TtDelta *d;
    TtBlob *blob;               /* NULL: none, or on disk */
    uint32_t blob_bytes;
    uint64_t blob_offset, blob_sum;
    uint64_t record_bytes;      /* of its add in the journal; 0: not there */
} TtNode;

typedef struct TtCell {
    TtVersion version;          /* of the page at map_at */
    uint32_t touch;             /* index into the touch list of this operation,
                                   if the entry there is about this page */
} TtCell;

/* The pages an operation has to look at, each once. */
typedef struct TtTouch {
    uint32_t page;
    TtVersion base;             /* version at the base, or TOUCH_DIRTY */
} TtTouch;

#define TOUCH_DIRTY     UINT32_MAX  /* no version: the pool ends far below */

typedef struct TtTouchList {
    TtTouch *t;
    size_t n, cap;
} TtTouchList;

typedef struct TtPageMap {
    TtPageMem mem;
    TtPagePool *pool;
    GPtrArray *nodes;           /* of TtNode, S1 */
    GHashTable *by_id;          /* looked up only, never walked */
    TtNodeId last_id;
    size_t n_tombstones;
    TtNode *map_at;             /* S6 */
    TtCell **leaf;
    size_t cap_leaves, n_leaves;
} TtPageMap;

static_assert(TT_PAGES_MAX <= UINT32_MAX, "page numbers fit 32 bits");

static inline TtNode *node_at(const TtPageMap *pm, size_t index)
{
    return g_ptr_array_index(pm->nodes, index);
}

/* NULL when there is none, or only a tombstone. */
static inline TtNode *node_get(const TtPageMap *pm, TtNodeId id)
{
    return g_hash_table_lookup(pm->by_id, GUINT_TO_POINTER(id));
}

/* Index of the first node after @pos. */
size_t tt_node_upper(const TtPageMap *pm, uint64_t pos);
/* How many nodes lead up to and include @node; 0 for the all-zero state. */
size_t tt_node_rank(const TtPageMap *pm, const TtNode *node);

static inline TtCell *cell_of(const TtPageMap *pm, uint32_t page)
{
    return &pm->leaf[page / LEAF_PAGES][page % LEAF_PAGES];
}

/* Makes sure that all @pages, ascending, have a cell. */
bool tt_pagemap_reserve(TtPageMap *pm, const uint64_t *pages, size_t n);
/* Moves the map to @to (NULL: all zero), touching what lies on the way. */
void tt_pagemap_move(TtPageMap *pm, TtNode *to, TtTouchList *tl);
void tt_pagemap_free(TtPageMap *pm);

/*
 * Lists the pages in which the state of @to can differ from the current RAM,
 * which is @base with @dirty changed, ascending; moves the map to @to. False
 * when memory is short. Clean up with tt_touch_cleanup in both cases.
 */
bool tt_touch_collect(TtPageMap *pm, TtNode *base, TtNode *to,
                      const uint64_t *dirty, size_t n_dirty, TtTouchList *tl);
void tt_touch_cleanup(TtPageMap *pm, TtTouchList *tl);

#endif
