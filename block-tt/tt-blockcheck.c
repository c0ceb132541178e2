/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The figures of the map, and whether they add up: every ref is counted anew, and no
 * host cluster may serve two clusters of the disk.
 */
#include "block-tt/tt-blockmap-int.h"

static uint64_t journal_hosts(const TtBlockMap *bm)
{
    uint64_t n = 0;

    for (guint i = 0; i < bm->journal.segments->len; i++) {
        n += g_array_index(bm->journal.segments, TtHostRun, i).n;
    }
    return n;
}

void tt_blockmap_info(const TtBlockMap *bm, TtDiskInfo *info)
{
    *info = (TtDiskInfo) {
        .size_bytes = bm->table.size_bytes,
        .cluster_bytes = 1u << bm->table.cluster_bits,
        .backing = bm->backing,
        .backing_format = bm->backing_format,
        .n_versions = bm->versions->len,
        .parent = bm->parent ? bm->parent->info.id : 0,
        .head_clusters = bm->changed->len,
        .used_hosts = bm->alloc.n - bm->alloc.n_free,
        .kept_hosts = MAX(bm->alloc.n_named, bm->table.n_hosts) - bm->table.n_hosts,
        .file_hosts = bm->alloc.n,
        .journal_bytes = tt_host_offset(bm, journal_hosts(bm)),
    };
    memcpy(info->uuid, bm->uuid, sizeof(info->uuid));
}

typedef struct Sums {
    uint32_t *ref, *owner;      /* owner: cluster + 1 */
    uint32_t lost_from;
    TtBlockCheck *check;
} Sums;

static void error(TtBlockCheck *c, const char *what, uint32_t host)
{
    if (!c->errors++) {
        g_snprintf(c->text, sizeof(c->text), "host cluster %" G_GUINT32_FORMAT " %s",
                   host, what);
    }
}

static void count(Sums *s, uint32_t cluster, uint32_t v)
{
    if (!tt_v_is_host(v) || v >= s->lost_from) {
        return;
    }
    s->ref[v]++;
    if (s->owner[v] && s->owner[v] != cluster + 1) {
        error(s->check, "is used by two clusters of the disk", v);
    }
    s->owner[v] = cluster + 1;
}

static void count_all(const TtBlockMap *bm, Sums *s)
{
    for (guint i = 0; i < bm->versions->len; i++) {
        const TtBlockVersion *v = bm->versions->pdata[i];

        for (size_t k = 0; k < v->n; k++) {
            count(s, v->change[k].cluster, v->change[k].is);
        }
    }
    for (guint i = 0; i < bm->changed->len; i++) {
        uint32_t c = g_array_index(bm->changed, TtHeadChange, i).cluster;

        count(s, c, tt_table_get(&bm->table, c));
    }
}

static void compare(const TtBlockMap *bm, const Sums *s)
{
    const TtBlockAlloc *a = &bm->alloc;
    uint32_t n_free = 0, n_named = 0;

    for (uint32_t h = 0; h < a->n; h++) {
        bool busy = tt_bit(a->busy, h);

        n_free += !busy;
        n_named += s->ref[h] > 0;
        if (s->ref[h] != a->ref[h]) {
            error(s->check, "has a wrong reference count", h);
        } else if (s->ref[h] && !busy) {
            error(s->check, "is used, but marked as free", h);
        }
    }
    if ((n_free != a->n_free || n_named != a->n_named) && !s->check->errors++) {
        g_strlcpy(s->check->text, "the number of free host clusters is wrong",
                  sizeof(s->check->text));
    }
    s->check->free_hosts = n_free;
}

static void count_runs(const TtBlockMap *bm, TtBlockCheck *check)
{
    uint64_t at = 0, behind = 0;
    TtBlockRun run;

    for (; at < bm->table.size_bytes; at += run.len) {
        bool is_host;
        uint64_t n;

        tt_table_lookup(&bm->table, at, bm->table.size_bytes - at, &run);
        n = (run.len + (1u << bm->table.cluster_bits) - 1) >> bm->table.cluster_bits;
        is_host = run.kind == TT_BLOCK_HOST || run.kind == TT_BLOCK_LOST;
        check->mapped_clusters += run.kind == TT_BLOCK_BACKING ? 0 : n;
        check->host_clusters += is_host ? n : 0;
        check->fragments += is_host && run.host_offset != behind;
        behind = is_host ? run.host_offset + run.len : behind;
    }
    if (check->host_clusters != bm->table.n_hosts && !check->errors++) {
        g_strlcpy(check->text, "the number of the disk's own host clusters is wrong",
                  sizeof(check->text));
    }
}

TtStatus tt_blockmap_check(const TtBlockMap *bm, TtBlockCheck *check, TtDiag *diag)
{
    Sums s = { .ref = g_try_new0(uint32_t, bm->alloc.n + 1),
               .owner = g_try_new0(uint32_t, bm->alloc.n + 1),
               .lost_from = bm->alloc.lost_from, .check = check };
    bool ok = s.ref && s.owner;

    memset(check, 0, sizeof(*check));
    if (ok) {
        count_all(bm, &s);
        compare(bm, &s);
        count_runs(bm, check);
    }
    g_free(s.ref);
    g_free(s.owner);
    return ok ? TT_OK : tt_fail(diag, TT_ERR_NOMEM, "not enough memory to check the "
                             "disk");
}
