/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The head: its table, and the list of what changed in it since its parent. A write
 * goes in place if the cluster is the head's own (I2), else to a free host cluster.
 */
#include "block-tt/tt-blockmap-int.h"

#include <stdlib.h>

#define ASKED_BYTES     (1u << 20)      /* of changes: less is always there */

void tt_blockmap_lookup(const TtBlockMap *bm, uint64_t offset, uint64_t len,
                        TtBlockRun *run)
{
    tt_table_lookup(&bm->table, offset, len, run);
}

bool tt_blockmap_is_kept(const TtBlockMap *bm, uint64_t offset, uint64_t len)
{
    uint32_t end = (offset + len - 1) >> bm->table.cluster_bits;

    for (uint32_t c = offset >> bm->table.cluster_bits; c <= end; c++) {
        const TtBlockLeaf *l = bm->table.leaf[c >> TT_LEAF_BITS];

        if (l && tt_bit(l->own, c & (TT_LEAF - 1))) {
            return false;
        }
    }
    return true;
}

/* The array grows to twice its size at a time, and must find the memory then. In a file, a
 * few bytes can ask for gigabytes. */
static bool has_room(const TtBlockMap *bm)
{
    size_t bytes = bm->changed->len * sizeof(TtHeadChange);
    void *room;

    if (!bm->is_loading || bytes < ASKED_BYTES || bytes & (bytes - 1)) {
        return true;
    }
    room = g_try_malloc(2 * bytes);
    g_free(room);
    return room;
}

bool tt_head_set(TtBlockMap *bm, uint32_t cluster, uint32_t value)
{
    TtBlockLeaf *l = tt_table_leaf(&bm->table, cluster);
    uint32_t i = cluster & (TT_LEAF - 1);

    if (!l) {
        return false;
    }
    if (tt_bit(l->own, i) && l->value[i] == value) {
        return true;
    }
    if (!tt_bit(l->own, i)) {
        TtHeadChange c = { cluster, l->value[i] };

        if (!has_room(bm)) {
            return false;
        }
        g_array_append_val(bm->changed, c);
        tt_bit_put(l->own, i, true);
    } else {
        tt_alloc_unref(&bm->alloc, l->value[i]);
    }
    tt_table_put(&bm->table, l, i, value);
    tt_alloc_ref(&bm->alloc, value);
    if (!bm->is_loading && !tt_bit(l->dirty, i)) {
        tt_bit_put(l->dirty, i, true);
        g_array_append_val(bm->dirty, cluster);
    }
    return true;
}

void tt_head_cut(TtBlockMap *bm, uint32_t first)
{
    guint kept = 0;

    for (guint i = 0; i < bm->changed->len; i++) {
        TtHeadChange c = g_array_index(bm->changed, TtHeadChange, i);

        if (c.cluster < first) {
            g_array_index(bm->changed, TtHeadChange, kept++) = c;
        } else {
            TtBlockLeaf *l = bm->table.leaf[c.cluster >> TT_LEAF_BITS];
            uint32_t at = c.cluster & (TT_LEAF - 1);

            tt_alloc_unref(&bm->alloc, l->value[at]);
            tt_table_put(&bm->table, l, at, c.was);
            tt_bit_put(l->own, at, false);
        }
    }
    g_array_set_size(bm->changed, kept);
    kept = 0;
    for (guint i = 0; i < bm->dirty->len; i++) {
        uint32_t c = g_array_index(bm->dirty, uint32_t, i);

        if (c < first) {
            g_array_index(bm->dirty, uint32_t, kept++) = c;
        } else {
            tt_bit_put(bm->table.leaf[c >> TT_LEAF_BITS]->dirty, c & (TT_LEAF - 1), false);
        }
    }
    g_array_set_size(bm->dirty, kept);
}

void tt_head_disown(TtBlockMap *bm)
{
    for (guint i = 0; i < bm->changed->len; i++) {
        uint32_t c = g_array_index(bm->changed, TtHeadChange, i).cluster;

        tt_bit_put(tt_table_leaf(&bm->table, c)->own, c & (TT_LEAF - 1), false);
    }
    g_array_set_size(bm->changed, 0);
}

static int by_cluster(const void *a, const void *b)
{
    uint32_t x = ((const TtHeadChange *)a)->cluster;
    uint32_t y = ((const TtHeadChange *)b)->cluster;

    return (x > y) - (x < y);
}

void tt_head_sort(TtBlockMap *bm)
{
    if (bm->changed->len) {
        qsort(bm->changed->data, bm->changed->len, sizeof(TtHeadChange), by_cluster);
    }
}

/* ---- writes ---- */

/* I2 */
static bool is_in_place(const TtBlockMap *bm, uint32_t cluster)
{
    const TtBlockLeaf *l = bm->table.leaf[cluster >> TT_LEAF_BITS];
    uint32_t i = cluster & (TT_LEAF - 1);

    return l && tt_bit(l->own, i) && tt_v_is_host(l->value[i]) &&
           bm->alloc.ref[l->value[i]] == 1 && !tt_bit(bm->alloc.held, l->value[i]);
}

static void begin_in_place(const TtBlockMap *bm, TtBlockWrite *w, uint64_t len,
                           uint32_t first, uint32_t end)
{
    uint64_t in_cluster = w->offset & ((1ull << bm->table.cluster_bits) - 1);
    uint32_t host = tt_table_get(&bm->table, first), n = 1;

    while (first + n < end && is_in_place(bm, first + n) &&
           tt_table_get(&bm->table, first + n) == host + n) {
        n++;
    }
    w->is_new = false;
    w->host_offset = tt_host_offset(bm, host) + in_cluster;
    w->len = MIN(len, tt_host_offset(bm, n) - in_cluster);
}

TtStatus tt_blockmap_write_begin(TtBlockMap *bm, uint64_t offset, uint64_t len,
                                 TtBlockWrite *w, TtDiag *diag)
{
    const TtBlockTable *t = &bm->table;
    uint32_t first = offset >> t->cluster_bits, n = 1;
    uint32_t end = ((offset + len - 1) >> t->cluster_bits) + 1;
    uint64_t start = tt_host_offset(bm, first), stop;
    TtHostRun run;
    TtStatus st;

    assert(len && offset < t->size_bytes && len <= t->size_bytes - offset);
    memset(w, 0, sizeof(*w));
    w->offset = offset;
    if (is_in_place(bm, first)) {
        begin_in_place(bm, w, len, first, end);
        bm->writes++;
        return TT_OK;
    }
    while (first + n < end && !is_in_place(bm, first + n)) {
        n++;
    }
    st = tt_alloc_take(&bm->alloc, n, false, &run, diag);
    if (st != TT_OK) {
        return st;
    }
    for (uint32_t i = 0; i < run.n; i++) {
        if (!tt_table_leaf(&bm->table, first + i)) {
            tt_alloc_untake(&bm->alloc, run.host, run.n);
            return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for the disk's table");
        }
    }
    stop = MIN(start + tt_host_offset(bm, run.n), t->size_bytes);
    w->is_new = true;
    w->fill_before = offset - start;
    w->len = MIN(len, stop - offset);
    w->fill_after = stop - (offset + w->len);
    w->host_offset = tt_host_offset(bm, run.host) + w->fill_before;
    w->cluster = first;
    w->host = run.host;
    w->n = run.n;
    bm->writes++;
    return TT_OK;
}

void tt_blockmap_write_end(TtBlockMap *bm, const TtBlockWrite *w, bool ok)
{
    assert(bm->writes > 0);
    bm->writes--;
    bm->has_fill |= w->is_new && (w->fill_before || w->fill_after);
    for (uint32_t i = 0; w->is_new && i < w->n; i++) {
        if (ok) {
            tt_head_set(bm, w->cluster + i, w->host + i);   /* the leaf is there */
        } else {
            tt_alloc_untake(&bm->alloc, w->host + i, 1);
        }
    }
}

/* ---- zeros ---- */

/* And will, whatever is put below: a backing file that is named may be left out for a
 * while, and one that is not named may be there. */
static bool stays_zeros(const TtBlockMap *bm, uint32_t v, bool has_below)
{
    return v == TT_V_ZERO || (v == TT_V_BACKING && !bm->backing && !has_below);
}

/* The whole clusters of a range; the disk's last one may be short. */
static void whole_clusters(const TtBlockMap *bm, uint64_t offset, uint64_t len,
                           uint32_t *first, uint32_t *end)
{
    uint64_t mask = (1ull << bm->table.cluster_bits) - 1;
    uint64_t stop = offset + len;

    assert(offset <= bm->table.size_bytes && len <= bm->table.size_bytes - offset);
    *first = (offset + mask) >> bm->table.cluster_bits;
    *end = stop == bm->table.size_bytes ? bm->table.n_clusters :
           stop >> bm->table.cluster_bits;
}

TtStatus tt_blockmap_zero(TtBlockMap *bm, uint64_t offset, uint64_t len, bool has_below,
                          uint64_t *before, uint64_t *after, TtDiag *diag)
{
    uint32_t first, end;

    whole_clusters(bm, offset, len, &first, &end);
    *before = len;
    *after = 0;
    if (first >= end) {
        return TT_OK;
    }
    for (uint32_t c = first; c < end; c++) {
        if (!stays_zeros(bm, tt_table_get(&bm->table, c), has_below) &&
            !tt_head_set(bm, c, TT_V_ZERO)) {
            return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for the disk's table");
        }
    }
    *before = tt_host_offset(bm, first) - offset;
    *after = offset + len - MIN(offset + len, tt_host_offset(bm, end));
    return TT_OK;
}

void tt_blockmap_discard(TtBlockMap *bm, uint64_t offset, uint64_t len)
{
    uint32_t first, end;

    whole_clusters(bm, offset, len, &first, &end);
    for (uint32_t c = first; c < end; c++) {
        if (!bm->table.leaf[c >> TT_LEAF_BITS]) {
            c |= TT_LEAF - 1;
        } else if (tt_v_is_host(tt_table_get(&bm->table, c))) {
            tt_head_set(bm, c, TT_V_ZERO);      /* the leaf is there: cannot fail */
        }
    }
}
