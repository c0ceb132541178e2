/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Insides of the page store: what its files share. The model and the
 * invariants S1 to S6 are at the head of tt-pagestore.c.
 */
#ifndef TT_PAGESTORE_INT_H
#define TT_PAGESTORE_INT_H

#include "tt-pagepool.h"

#include <assert.h>
#include <glib.h>

#define LEAF_PAGES      1024u
#define LEAVES_MAX      (TT_PAGES_MAX / LEAF_PAGES)

typedef struct TtDelta {
    uint32_t page;
    TtVersion old, new;
} TtDelta;

typedef struct TtNode {
    uint64_t pos;
    TtNodeId id;
    bool is_ghost;
    size_t n, cap;              /* deltas used and allocated */
    TtDelta *d;
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

struct TtPageStore {
    TtPageMem mem;
    TtPagePool *pool;
    GPtrArray *nodes;           /* of TtNode, S1 */
    GHashTable *by_id;          /* looked up only, never walked */
    TtNodeId last_id;
    size_t n_ghosts;
    TtNode *map_at;             /* S6 */
    TtCell **leaf;
    size_t cap_leaves, n_leaves;
};

static_assert(TT_PAGES_MAX <= UINT32_MAX, "page numbers fit 32 bits");

/* ---- tt-pagemap.c: nodes in order, the map, what an operation touches ---- */

static inline TtNode *node_at(const TtPageStore *ps, size_t index)
{
    return g_ptr_array_index(ps->nodes, index);
}

/* NULL when there is none, or only a ghost. */
static inline TtNode *node_get(const TtPageStore *ps, TtNodeId id)
{
    return g_hash_table_lookup(ps->by_id, GUINT_TO_POINTER(id));
}

/* Index of the first node behind @pos. */
size_t tt_node_upper(const TtPageStore *ps, uint64_t pos);
/* How many nodes lead up to and include @node; 0 for the all-zero state. */
size_t tt_node_rank(const TtPageStore *ps, const TtNode *node);

static inline TtCell *cell_of(const TtPageStore *ps, uint32_t page)
{
    return &ps->leaf[page / LEAF_PAGES][page % LEAF_PAGES];
}

/* Moves the map to @to (NULL: all zero), touching what lies on the way. */
void tt_pagemap_move(TtPageStore *ps, TtNode *to, TtTouchList *tl);
void tt_pagemap_free(TtPageStore *ps);

/*
 * Lists the pages in which the state of @to can differ from the current RAM,
 * which is @base with @dirty changed, ascending; moves the map to @to. False
 * when memory is short. Clean up with tt_touch_cleanup in both cases.
 */
bool tt_touch_collect(TtPageStore *ps, TtNode *base, TtNode *to,
                      const uint64_t *dirty, size_t n_dirty, TtTouchList *tl);
void tt_touch_cleanup(TtPageStore *ps, TtTouchList *tl);

#endif
