/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store: nodes, and how the deltas of neighbours are split and merged.
 * S-numbers: the invariants at the head of tt-pagestore.c.
 */
#include "tt-pagenode.h"

TtNode *tt_node_new(TtPageMap *pm, uint64_t pos, size_t cap)
{
    TtDelta *d = tt_pagemem_try(&pm->mem, cap * sizeof(*d), false);
    TtNode *node;

    if (!d) {
        return NULL;
    }
    node = g_new0(TtNode, 1);
    node->pos = pos;
    node->cap = cap;
    node->d = d;
    return node;
}

void tt_blob_unref(TtPageMap *pm, TtBlob *blob)
{
    if (blob && --blob->refs == 0) {
        tt_pagemem_free(&pm->mem, blob, sizeof(*blob) + blob->len);
    }
}

void tt_node_free(TtPageMap *pm, TtNode *node)
{
    tt_blob_unref(pm, node->blob);
    tt_pagemem_free(&pm->mem, node->d, node->cap * sizeof(*node->d));
    g_free(node);
}

/* Gives back what a delta array has too much of, when that is worth it. */
static void node_trim(TtPageMap *pm, TtNode *node)
{
    TtDelta *d;

    if (node->cap - node->n <= node->cap / 8) {
        return;
    }
    d = tt_pagemem_try(&pm->mem, node->n * sizeof(*d), false);
    if (!d) {
        return;
    }
    if (node->n) {
        memcpy(d, node->d, node->n * sizeof(*d));
    }
    tt_pagemem_free(&pm->mem, node->d, node->cap * sizeof(*d));
    node->d = d;
    node->cap = node->n;
}

static void node_unref_all(TtPageMap *pm, const TtNode *node)
{
    for (size_t i = 0; i < node->n; i++) {
        tt_pagepool_unref(pm->pool, node->d[i].new);
    }
}

void tt_node_drop(TtPageMap *pm, TtNode *node)
{
    node_unref_all(pm, node);
    tt_node_free(pm, node);
}

/* ---- deleting ---- */

/* True when delta @d says nothing: before the first node all pages are zero,
 * and nothing was written there. */
static bool delta_is_idle(const TtDelta *d, size_t index)
{
    return index == 0 && d->old == d->new;
}

/* Merges the delta of node @index into its successor's. False when memory is
 * short: then nothing changed. O(pages of both). */
static bool node_merge(TtPageMap *pm, size_t index)
{
    TtNode *a = node_at(pm, index), *b = node_at(pm, index + 1);
    size_t i = 0, j = 0, n = 0, cap = a->n + b->n;
    TtDelta *d = tt_pagemem_try(&pm->mem, cap * sizeof(*d), false);

    if (!d) {
        return false;
    }
    if (pm->map_at == a) {
        tt_pagemap_move(pm, index ? node_at(pm, index - 1) : NULL, NULL);
    }
    while (i < a->n || j < b->n) {
        if (j == b->n || (i < a->n && a->d[i].page < b->d[j].page)) {
            d[n] = a->d[i++];
        } else if (i == a->n || b->d[j].page < a->d[i].page) {
            d[n] = b->d[j++];
        } else {
            g_assert(a->d[i].new == b->d[j].old);               /* S3 */
            d[n] = (TtDelta) { a->d[i].page, a->d[i].old, b->d[j].new };
            tt_pagepool_unref(pm->pool, a->d[i].new);           /* S4 */
            i++;
            j++;
        }
        n += !delta_is_idle(&d[n], index);
    }
    tt_pagemem_free(&pm->mem, b->d, b->cap * sizeof(*d));
    b->d = d;
    b->n = n;
    b->cap = cap;
    node_trim(pm, b);
    b->is_from_zero |= index == 0 || a->is_from_zero;
    pm->n_tombstones -= a->is_tombstone;
    g_ptr_array_remove_index(pm->nodes, index);
    tt_node_free(pm, a);
    return true;
}

/* Drops the last node: no other state needs its delta. */
static void node_drop_last(TtPageMap *pm)
{
    size_t index = pm->nodes->len - 1;
    TtNode *node = node_at(pm, index);

    if (pm->map_at == node) {
        tt_pagemap_move(pm, index ? node_at(pm, index - 1) : NULL, NULL);
    }
    pm->n_tombstones -= node->is_tombstone;
    g_ptr_array_remove_index(pm->nodes, index);
    tt_node_drop(pm, node);
}

void tt_tombstones_sweep(TtPageMap *pm)
{
    while (pm->nodes->len && node_at(pm, pm->nodes->len - 1)->is_tombstone) {
        node_drop_last(pm);
    }
    for (size_t i = pm->nodes->len; pm->n_tombstones && i-- > 0; ) {
        if (node_at(pm, i)->is_tombstone && !node_merge(pm, i)) {
            return;
        }
    }
}

/* ---- inserting ---- */

/*
 * The new delta of @next when @node comes before it, into @d (room for both); no
 * reference moves yet. Returns the number of entries.
 */
static size_t add_split(const TtNode *node, const TtNode *next, TtDelta *d)
{
    size_t i = 0, j = 0, n = 0;

    while (i < node->n || j < next->n) {
        const TtDelta *a = &node->d[i], *b = &next->d[j];

        if (j == next->n || (i < node->n && a->page < b->page)) {
            d[n++] = (TtDelta) { a->page, a->new, a->old };
            i++;
        } else if (i == node->n || b->page < a->page) {
            d[n++] = *b;
            j++;
        } else {
            g_assert(a->old == b->old);                         /* S3 */
            d[n++] = (TtDelta) { a->page, a->new, b->new };
            i++;
            j++;
        }
    }
    return n;
}

/* Puts the new delta @d of @n entries (room: @cap) in place of @next's. Pages
 * that only @node lists go back to their old version: one more reference. */
static void add_commit_split(TtPageMap *pm, const TtNode *node, TtNode *next,
                             TtDelta *d, size_t n, size_t cap)
{
    for (size_t i = 0, j = 0; i < node->n; i++) {
        while (j < next->n && next->d[j].page < node->d[i].page) {
            j++;
        }
        if (j == next->n || next->d[j].page != node->d[i].page) {
            tt_pagepool_ref(pm->pool, node->d[i].old);          /* S4 */
        }
    }
    tt_pagemem_free(&pm->mem, next->d, next->cap * sizeof(*d));
    next->d = d;
    next->n = n;
    next->cap = cap;
    node_trim(pm, next);
}

bool tt_node_insert(TtPageMap *pm, size_t index, TtNode *node)
{
    TtNode *next = index < pm->nodes->len ? node_at(pm, index) : NULL;
    size_t cap = next ? node->n + next->n : 0;
    TtDelta *split;

    if (next) {
        split = tt_pagemem_try(&pm->mem, cap * sizeof(*split), false);
        if (!split) {
            return false;
        }
        add_commit_split(pm, node, next, split, add_split(node, next, split),
                         cap);
    }
    node_trim(pm, node);
    node->is_from_zero = index == 0 || (next && next->is_from_zero);
    g_assert(node->id != 0);                                    /* S1 */
    g_ptr_array_insert(pm->nodes, index, node);
    g_hash_table_insert(pm->by_id, GUINT_TO_POINTER(node->id), node);
    tt_pagemap_move(pm, node, NULL);
    return true;
}

bool tt_node_is_taken(const TtPageMap *pm, size_t upper, uint64_t pos)
{
    for (size_t i = upper; i > 0 && node_at(pm, i - 1)->pos == pos; i--) {
        if (!node_at(pm, i - 1)->is_tombstone) {
            return true;
        }
    }
    return false;
}
