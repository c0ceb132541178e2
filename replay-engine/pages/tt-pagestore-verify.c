/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store: is all there that the checkpoints need?
 */
#include "tt-pagestore-int.h"

/* Versions that cannot be read, with the first reason. */
static GHashTable *find_bad(TtPageStore *ps, TtDiag *first)
{
    GHashTable *bad = g_hash_table_new(NULL, NULL);
    g_autofree uint8_t *page = g_malloc(TT_PAGE_BYTES);
    TtVersion v = TT_VERSION_ZERO;

    while ((v = tt_pagepool_next(ps->map.pool, v))) {
        TtPlace place = tt_pagepool_place(ps->map.pool, v);
        TtDiag diag;

        if (!place.id) {                /* not written yet: in memory */
            continue;
        }
        if (tt_pagefile_load(ps->file->pages, &place, page, &diag) != TT_OK) {
            if (!g_hash_table_size(bad)) {
                *first = diag;
            }
            g_hash_table_add(bad, GUINT_TO_POINTER(v));
        }
    }
    return bad;
}

/* Of the pages that @node lists: those with a bad version into @pages, others
 * out of it. */
static void carry_on(const TtNode *node, GHashTable *bad, GHashTable *pages)
{
    for (size_t i = 0; i < node->n; i++) {
        gpointer page = GUINT_TO_POINTER(node->d[i].page);

        if (g_hash_table_contains(bad, GUINT_TO_POINTER(node->d[i].new))) {
            g_hash_table_add(pages, page);
        } else {
            g_hash_table_remove(pages, page);
        }
    }
}

static uint64_t lowest(GHashTable *pages)
{
    uint64_t low = UINT64_MAX;
    GHashTableIter it;
    gpointer page;

    g_hash_table_iter_init(&it, pages);
    while (g_hash_table_iter_next(&it, &page, NULL)) {
        low = MIN(low, GPOINTER_TO_UINT(page));
    }
    return low;
}

uint64_t tt_pagestore_verify(TtPageStore *ps, TtPageProblem problem,
                             void *opaque)
{
    GHashTable *bad, *pages;
    uint64_t n_bad;
    TtDiag first;

    if (!ps->file) {
        return 0;
    }
    bad = find_bad(ps, &first);
    n_bad = g_hash_table_size(bad);
    pages = g_hash_table_new(NULL, NULL);
    for (size_t i = 0; n_bad && i < ps->map.nodes->len; i++) {
        const TtNode *node = node_at(&ps->map, i);

        carry_on(node, bad, pages);
        if (!node->is_tombstone && g_hash_table_size(pages)) {
            problem(opaque, node->id, node->pos, g_hash_table_size(pages),
                    lowest(pages), &first);
        }
    }
    g_hash_table_destroy(pages);
    g_hash_table_destroy(bad);
    return n_bad;
}

const TtDiag *tt_pagestore_damage(const TtPageStore *ps, unsigned which)
{
    const TtDiag *d = ps->file ? &ps->file->damage[which] : NULL;

    g_assert(which < G_N_ELEMENTS(ps->file->damage));
    return d && d->status != TT_OK ? d : NULL;
}
