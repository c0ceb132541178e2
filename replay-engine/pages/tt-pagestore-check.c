/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store, for tests: every invariant as a check.
 */
#include "tt-pagestore-int.h"
#include "tt-pagestore-test.h"

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

    for (size_t i = 0; i < ps->map.nodes->len; i++) {
        const TtNode *node = node_at(&ps->map, i);

        for (size_t k = 0; k < node->n; k++) {
            count_ref(refs, node->d[k].new);
        }
    }
    tt_storefile_each_ref(ps->file, count_ref, refs);
    g_hash_table_remove(refs, GUINT_TO_POINTER(TT_VERSION_ZERO));
    g_assert(g_hash_table_size(refs) == tt_pagepool_count(ps->map.pool));
    g_hash_table_iter_init(&it, refs);
    while (g_hash_table_iter_next(&it, &key, &value)) {
        g_assert(tt_pagepool_refs(ps->map.pool, GPOINTER_TO_UINT(key)) ==
                 GPOINTER_TO_UINT(value));
    }
    g_hash_table_destroy(refs);
}

void tt_pagestore_check(TtPageStore *ps)
{
    TtNode *map_at = ps->map.map_at;
    size_t n_tombstones = 0;

    tt_pagepool_check(ps->map.pool);
    check_refs(ps);
    for (size_t i = 0; i < ps->map.nodes->len; i++) {
        const TtNode *node = node_at(&ps->map, i);

        g_assert(node->n <= node->cap);
        for (size_t k = 1; k < node->n; k++) {
            g_assert(node->d[k - 1].page < node->d[k].page);    /* S2 */
        }
        if (i) {
            const TtNode *prev = node_at(&ps->map, i - 1);

            g_assert(prev->pos < node->pos ||
                     (prev->pos == node->pos && prev->is_tombstone)); /* S1 */
        }
        n_tombstones += node->is_tombstone;
        g_assert(node->is_tombstone || node_get(&ps->map, node->id) == node);
    }
    g_assert(n_tombstones == ps->map.n_tombstones);
    g_assert(ps->map.nodes->len - n_tombstones == g_hash_table_size(ps->map.by_id));
    tt_pagemap_move(&ps->map, NULL, NULL);                        /* S3, S6 */
    for (size_t i = 0; i < ps->map.cap_leaves; i++) {
        for (size_t k = 0; ps->map.leaf[i] && k < LEAF_PAGES; k++) {
            g_assert(ps->map.leaf[i][k].version == TT_VERSION_ZERO);
        }
    }
    if (ps->map.nodes->len) {
        tt_pagemap_move(&ps->map, node_at(&ps->map, ps->map.nodes->len - 1), NULL);
    }
    tt_pagemap_move(&ps->map, map_at, NULL);
}

