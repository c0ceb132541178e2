/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store, lower half: nodes in order, the map of the whole RAM, and the
 * list of pages that an operation has to look at.
 */
#include "tt-pagemap.h"

#include <stdlib.h>

/* ---- nodes ---- */

size_t tt_node_upper(const TtPageMap *pm, uint64_t pos)
{
    size_t lo = 0, hi = pm->nodes->len;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (node_at(pm, mid)->pos <= pos) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

size_t tt_node_rank(const TtPageMap *pm, const TtNode *node)
{
    size_t i;

    if (!node) {
        return 0;
    }
    for (i = tt_node_upper(pm, node->pos); node_at(pm, i - 1) != node; i--) {
        g_assert(i > 1);
    }
    return i;
}

/* ---- map ---- */

static bool map_reserve_root(TtPageMap *pm, size_t n)
{
    size_t cap = MAX(pm->cap_leaves * 2, 256u);
    TtCell **bigger;

    if (n <= pm->cap_leaves) {
        return true;
    }
    cap = MIN(MAX(cap, n), LEAVES_MAX);
    bigger = tt_pagemem_try(&pm->mem, cap * sizeof(*bigger), true);
    if (!bigger) {
        return false;
    }
    if (pm->cap_leaves) {
        memcpy(bigger, pm->leaf, pm->cap_leaves * sizeof(*bigger));
    }
    tt_pagemem_free(&pm->mem, pm->leaf, pm->cap_leaves * sizeof(*bigger));
    pm->leaf = bigger;
    pm->cap_leaves = cap;
    return true;
}

bool tt_pagemap_reserve(TtPageMap *pm, const uint64_t *pages, size_t n)
{
    if (n && !map_reserve_root(pm, pages[n - 1] / LEAF_PAGES + 1)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        TtCell **leaf = &pm->leaf[pages[i] / LEAF_PAGES];

        if (!*leaf) {
            *leaf = tt_pagemem_try(&pm->mem, LEAF_PAGES * sizeof(TtCell), true);
            if (!*leaf) {
                return false;
            }
            pm->n_leaves++;
        }
    }
    return true;
}

/* The first to touch a page says what the base has there. */
static inline void touch(TtTouchList *tl, TtCell *cell, uint32_t page,
                         TtVersion base)
{
    if (cell->touch < tl->n && tl->t[cell->touch].page == page) {
        return;
    }
    g_assert(tl->n < tl->cap);
    cell->touch = tl->n;
    tl->t[tl->n++] = (TtTouch) { page, base };
}

static void map_forward(TtPageMap *pm, const TtNode *node, TtTouchList *tl)
{
    for (size_t i = 0; i < node->n; i++) {
        const TtDelta *d = &node->d[i];
        TtCell *cell = cell_of(pm, d->page);

        g_assert(cell->version == d->old);                      /* S3 */
        if (tl) {
            touch(tl, cell, d->page, d->old);
        }
        cell->version = d->new;
    }
}

static void map_backward(TtPageMap *pm, const TtNode *node, TtTouchList *tl)
{
    for (size_t i = 0; i < node->n; i++) {
        const TtDelta *d = &node->d[i];
        TtCell *cell = cell_of(pm, d->page);

        g_assert(cell->version == d->new);                      /* S3 */
        if (tl) {
            touch(tl, cell, d->page, d->new);
        }
        cell->version = d->old;
    }
}

void tt_pagemap_move(TtPageMap *pm, TtNode *to, TtTouchList *tl)
{
    size_t from_rank = tt_node_rank(pm, pm->map_at);
    size_t to_rank = tt_node_rank(pm, to);

    for (; from_rank < to_rank; from_rank++) {
        map_forward(pm, node_at(pm, from_rank), tl);
    }
    for (; from_rank > to_rank; from_rank--) {
        map_backward(pm, node_at(pm, from_rank - 1), tl);
    }
    pm->map_at = to;
}

/* ---- what an operation touches ---- */

static int touch_compare(const void *a, const void *b)
{
    uint32_t x = ((const TtTouch *)a)->page, y = ((const TtTouch *)b)->page;

    return (x > y) - (x < y);
}

/* Results go by page number, so that no order of walking shows. */
static void touch_sort(TtTouchList *tl)
{
    for (size_t i = 1; i < tl->n; i++) {
        if (tl->t[i - 1].page > tl->t[i].page) {
            qsort(tl->t, tl->n, sizeof(*tl->t), touch_compare);
            return;
        }
    }
}

void tt_touch_cleanup(TtPageMap *pm, TtTouchList *tl)
{
    tt_pagemem_free(&pm->mem, tl->t, tl->cap * sizeof(*tl->t));
}

bool tt_touch_collect(TtPageMap *pm, TtNode *base, TtNode *to,
                      const uint64_t *dirty, size_t n_dirty, TtTouchList *tl)
{
    size_t a = tt_node_rank(pm, base), b = tt_node_rank(pm, to);

    *tl = (TtTouchList) { .cap = n_dirty };
    if (!tt_pagemap_reserve(pm, dirty, n_dirty)) {
        return false;
    }
    /* Room for each page at most once. */
    for (size_t i = MIN(a, b); i < MAX(a, b); i++) {
        tl->cap += node_at(pm, i)->n;
    }
    tl->cap = MIN(tl->cap, pm->n_leaves * LEAF_PAGES);
    tl->t = tt_pagemem_try(&pm->mem, tl->cap * sizeof(*tl->t), false);
    if (!tl->t) {
        return false;
    }
    tt_pagemap_move(pm, base, NULL);
    for (size_t i = 0; i < n_dirty; i++) {
        g_assert(i == 0 || dirty[i - 1] < dirty[i]);
        touch(tl, cell_of(pm, dirty[i]), dirty[i], TOUCH_DIRTY);
    }
    tt_pagemap_move(pm, to, tl);
    touch_sort(tl);
    return true;
}

void tt_pagemap_free(TtPageMap *pm)
{
    for (size_t i = 0; i < pm->cap_leaves; i++) {
        tt_pagemem_free(&pm->mem, pm->leaf[i], LEAF_PAGES * sizeof(TtCell));
    }
    tt_pagemem_free(&pm->mem, pm->leaf, pm->cap_leaves * sizeof(*pm->leaf));
}
