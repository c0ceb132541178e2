/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store, for tests: every invariant as a check.
 */
#include "tt-pagestore-int.h"

static void count_ref(void *opaque, TtVersion v)
{
    gpointer key = GUINT_TO_POINTER(v);
    gpointer value = g_hash_table_lookup(opaque, key);

    g_hash_table_insert(opaque, key,
                        GUINT_TO_POINTER(GPOINTER_TO_UINT(value) + 1));
}

/* S4, W3: every version has as many references as deltas name it as `new`, and
 * as operations that are not written yet. */
static void check_refs(TtPageStore *ps)
{
    GHashTable *refs = g_hash_table_new(NULL, NULL);
    GHashTableIter it;
    gpointer key, value;

    for (size_t i = 0; i < ps->nodes->len; i++) {
        const TtNode *node = node_at(ps, i);

        for (size_t k = 0; k < node->n; k++) {
            count_ref(refs, node->d[k].new);
        }
    }
    tt_storefile_each_ref(ps, count_ref, refs);
    g_hash_table_remove(refs, GUINT_TO_POINTER(TT_VERSION_ZERO));
    g_assert(g_hash_table_size(refs) == tt_pagepool_count(ps->pool));
    g_hash_table_iter_init(&it, refs);
    while (g_hash_table_iter_next(&it, &key, &value)) {
        g_assert(tt_pagepool_refs(ps->pool, GPOINTER_TO_UINT(key)) ==
                 GPOINTER_TO_UINT(value));
    }
    g_hash_table_destroy(refs);
}

void tt_pagestore_check(TtPageStore *ps)
{
    TtNode *map_at = ps->map_at;
    size_t n_tombstones = 0;

    tt_pagepool_check(ps->pool);
    check_refs(ps);
    for (size_t i = 0; i < ps->nodes->len; i++) {
        const TtNode *node = node_at(ps, i);

        g_assert(node->n <= node->cap);
        for (size_t k = 1; k < node->n; k++) {
            g_assert(node->d[k - 1].page < node->d[k].page);    /* S2 */
        }
        if (i) {
            const TtNode *prev = node_at(ps, i - 1);

            g_assert(prev->pos < node->pos ||
                     (prev->pos == node->pos && prev->is_tombstone)); /* S1 */
        }
        n_tombstones += node->is_tombstone;
        g_assert(node->is_tombstone || node_get(ps, node->id) == node);
    }
    g_assert(n_tombstones == ps->n_tombstones);
    g_assert(ps->nodes->len - n_tombstones == g_hash_table_size(ps->by_id));
    tt_pagemap_move(ps, NULL, NULL);                        /* S3, S6 */
    for (size_t i = 0; i < ps->cap_leaves; i++) {
        for (size_t k = 0; ps->leaf[i] && k < LEAF_PAGES; k++) {
            g_assert(ps->leaf[i][k].version == TT_VERSION_ZERO);
        }
    }
    if (ps->nodes->len) {
        tt_pagemap_move(ps, node_at(ps, ps->nodes->len - 1), NULL);
    }
    tt_pagemap_move(ps, map_at, NULL);
}

