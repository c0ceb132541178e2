/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of a disk: a value for each cluster, in leaves of 512, which are made when
 * the first of their clusters gets a value. 4 bytes a cluster and two bits: 4 MiB for
 * 64 GiB in clusters of 64 KiB.
 */
#include "block-tt/tt-blockmap-int.h"

bool tt_table_init(TtBlockTable *t, uint64_t size_bytes, unsigned cluster_bits)
{
    uint64_t n = (size_bytes + (1ull << cluster_bits) - 1) >> cluster_bits;

    assert(n <= TT_BLOCKMAP_CLUSTERS_MAX);
    t->size_bytes = size_bytes;
    t->cluster_bits = cluster_bits;
    t->n_clusters = n;
    t->n_leaves = (n + TT_LEAF - 1) / TT_LEAF;
    t->n_hosts = 0;
    t->file_bytes = UINT64_MAX;
    t->leaf = g_try_new0(TtBlockLeaf *, t->n_leaves + 1);
    return t->leaf;
}

bool tt_table_grow(TtBlockTable *t, uint64_t size_bytes)
{
    TtBlockTable big;

    if (!tt_table_init(&big, size_bytes, t->cluster_bits)) {
        return false;
    }
    assert(big.n_leaves >= t->n_leaves);
    memcpy(big.leaf, t->leaf, t->n_leaves * sizeof(*t->leaf));
    big.n_hosts = t->n_hosts;
    big.file_bytes = t->file_bytes;
    g_free(t->leaf);
    *t = big;
    return true;
}

void tt_table_shrink(TtBlockTable *t, uint64_t size_bytes)
{
    uint64_t n = (size_bytes + (1ull << t->cluster_bits) - 1) >> t->cluster_bits;

    assert(size_bytes <= t->size_bytes);
    t->size_bytes = size_bytes;
    t->n_clusters = n;
    while (t->n_leaves > (n + TT_LEAF - 1) / TT_LEAF) {
        t->n_leaves--;
        g_free(t->leaf[t->n_leaves]);
        t->leaf[t->n_leaves] = NULL;
    }
}

void tt_table_cleanup(TtBlockTable *t)
{
    for (uint32_t i = 0; t->leaf && i < t->n_leaves; i++) {
        g_free(t->leaf[i]);
    }
    g_free(t->leaf);
    t->leaf = NULL;
}

bool tt_table_copy(TtBlockTable *to, const TtBlockTable *from)
{
    if (!tt_table_init(to, from->size_bytes, from->cluster_bits)) {
        return false;
    }
    to->n_hosts = from->n_hosts;
    to->file_bytes = from->file_bytes;
    for (uint32_t i = 0; i < from->n_leaves; i++) {
        if (from->leaf[i]) {
            to->leaf[i] = g_try_new(TtBlockLeaf, 1);
            if (!to->leaf[i]) {
                tt_table_cleanup(to);
                return false;
            }
            *to->leaf[i] = *from->leaf[i];
        }
    }
    return true;
}

TtBlockLeaf *tt_table_leaf(TtBlockTable *t, uint32_t cluster)
{
    TtBlockLeaf **l = &t->leaf[cluster >> TT_LEAF_BITS];

    assert(cluster < t->n_clusters);
    if (!*l) {
        *l = g_try_new0(TtBlockLeaf, 1);
    }
    return *l;
}

static TtBlockKind kind_of(uint32_t v)
{
    return tt_v_is_host(v) ? TT_BLOCK_HOST :
           v == TT_V_ZERO ? TT_BLOCK_ZERO : TT_BLOCK_BACKING;
}

/* How many clusters from @c on, below @end, have the backing file's contents because
 * there is no leaf. */
static uint32_t skip_leaf(const TtBlockTable *t, uint32_t c, uint32_t end)
{
    uint32_t n = 0;

    while (c + n < end && !t->leaf[(c + n) >> TT_LEAF_BITS]) {
        n += TT_LEAF - ((c + n) & (TT_LEAF - 1));
    }
    return MIN(n, end - c);
}

void tt_table_lookup(const TtBlockTable *t, uint64_t offset, uint64_t len,
                     TtBlockRun *run)
{
    uint32_t first = offset >> t->cluster_bits, c = first;
    uint32_t end = ((offset + len - 1) >> t->cluster_bits) + 1;
    uint64_t in_cluster = offset & ((1ull << t->cluster_bits) - 1);
    uint32_t v = tt_table_get(t, c);
    bool is_cut = t->file_bytes != UINT64_MAX;
    bool is_lost = is_cut && tt_table_is_lost(t, c, v);

    assert(len && offset < t->size_bytes && len <= t->size_bytes - offset);
    run->kind = is_lost ? TT_BLOCK_LOST : kind_of(v);
    run->host_offset = tt_v_is_host(v) ? ((uint64_t)v << t->cluster_bits) + in_cluster : 0;
    for (c++; c < end; c++) {
        if (run->kind == TT_BLOCK_BACKING) {
            c += skip_leaf(t, c, end);
            if (c == end) {
                break;
            }
        }
        if (tt_table_get(t, c) != (tt_v_is_host(v) ? v + (c - first) : v) ||
            (is_cut && tt_table_is_lost(t, c, v + (c - first)) != is_lost)) {
            break;
        }
    }
    run->len = MIN(len, ((uint64_t)(c - first) << t->cluster_bits) - in_cluster);
}
