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

typedef struct TtStoreFile TtStoreFile;

struct TtPageStore {
    TtPageMem mem;
    TtStoreFile *file;          /* NULL: in memory only */
    TtPagePool *pool;
    GPtrArray *nodes;           /* of TtNode, S1 */
    GHashTable *by_id;          /* looked up only, never walked */
    TtNodeId last_id;
    size_t n_tombstones;
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

/* NULL when there is none, or only a tombstone. */
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

/* Makes sure that all @pages, ascending, have a cell. */
bool tt_pagemap_reserve(TtPageStore *ps, const uint64_t *pages, size_t n);
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

/* ---- tt-pagestore.c: also for loading ---- */

TtNode *tt_node_new(TtPageStore *ps, uint64_t pos, size_t cap);
/* With the references of its delta. */
void tt_node_drop(TtPageStore *ps, TtNode *node);
/* Puts @node, filled against the state before @index, in at @index; the map is
 * at the node before. False: memory is short, nothing changed. */
bool tt_node_insert(TtPageStore *ps, size_t index, TtNode *node);
/* Is there a node (no tombstone) at @pos? @upper: tt_node_upper(@pos). */
bool tt_node_is_taken(const TtPageStore *ps, size_t upper, uint64_t pos);
/* Merges what was deleted; ps->n_tombstones says what is left. */
void tt_tombstones_sweep(TtPageStore *ps);
void tt_blob_unref(TtPageStore *ps, TtBlob *blob);

/* ---- tt-pagestore-file.c ---- */

/* What will be written: noted before the operation, since it may fail. */
typedef struct TtPendingOp TtPendingOp;

/* False: memory is short. *@op is NULL when nothing is to be written. */
bool tt_storefile_prepare_add(TtPageStore *ps, const TtNode *node,
                              TtPendingOp **op);
void tt_storefile_commit(TtPageStore *ps, const TtNode *node, TtPendingOp *op);
void tt_storefile_cancel(TtPageStore *ps, TtPendingOp *op);
void tt_storefile_note_delete(TtPageStore *ps, const TtNode *node);
void tt_storefile_note_flags(TtPageStore *ps, const TtNode *node);
TtStatus tt_storefile_read_blob(TtPageStore *ps, const TtNode *node, void *to,
                                TtDiag *diag);
void tt_storefile_stats(const TtPageStore *ps, TtPageStoreStats *st);
void tt_storefile_free(TtPageStore *ps);
/* For tests: every reference that pending operations hold. */
void tt_storefile_each_ref(const TtPageStore *ps,
                           void (*ref)(void *opaque, TtVersion v),
                           void *opaque);

#endif
