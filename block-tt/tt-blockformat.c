/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A new image, and what of its file head can be changed later.
 */
#include "block-tt/tt-blockmap-int.h"

#define JOURNAL_BYTES   (64u << 10)     /* first segment of a new image */
#define FIRST_GENERATION 2              /* in older images 1, with neither records nor marks */

unsigned tt_blockmap_cluster_bits_for(uint64_t size_bytes)
{
    unsigned bits = TT_BLOCKMAP_CLUSTER_BITS;

    while (bits < TT_BLOCKMAP_CLUSTER_BITS_MAX &&
           size_bytes >> bits >= TT_BLOCKMAP_CLUSTERS_MAX) {
        bits++;
    }
    return bits;
}

TtStatus tt_block_check_size(uint64_t bytes, unsigned bits, TtDiag *diag)
{
    if (bits < TT_BLOCKMAP_CLUSTER_BITS_MIN || bits > TT_BLOCKMAP_CLUSTER_BITS_MAX) {
        return tt_fail(diag, TT_ERR_INVALID, "the size of a cluster must be a power "
                       "of two from 4096 bytes to 2 MiB");
    }
    if (bytes % 512) {
        return tt_fail(diag, TT_ERR_INVALID, "the size of a disk must be a multiple "
                       "of 512 bytes");
    }
    if (bytes >> bits >= TT_BLOCKMAP_CLUSTERS_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "the disk is too large for its clusters: "
                       "give it at most %" G_GUINT64_FORMAT " bytes%s",
                       ((uint64_t)TT_BLOCKMAP_CLUSTERS_MAX - 1) << bits,
                       bits < TT_BLOCKMAP_CLUSTER_BITS_MAX ? ", or larger clusters" : "");
    }
    return TT_OK;
}

static TtStatus check_backing(const char *name, const char *format, TtDiag *diag)
{
    if ((name && strlen(name) > TT_BLOCKMAP_BACKING_MAX) ||
        (format && strlen(format) > TT_BLOCKMAP_FORMAT_MAX)) {
        return tt_fail(diag, TT_ERR_LIMIT, "the name of the backing file is longer than "
                       "%d bytes: give a shorter one", TT_BLOCKMAP_BACKING_MAX);
    }
    return TT_OK;
}

TtStatus tt_blockmap_set_backing(TtBlockMap *bm, const char *backing,
                                 const char *format, TtDiag *diag)
{
    TtStatus st = check_backing(backing, format, diag);

    if (st == TT_OK) {
        g_free(bm->backing);
        g_free(bm->backing_format);
        bm->backing = backing && backing[0] ? g_strdup(backing) : NULL;
        bm->backing_format = format && format[0] && bm->backing ? g_strdup(format) :
                             NULL;
        bm->journal.must_be_anew = true;
    }
    return st;
}

TtStatus tt_blockmap_grow(TtBlockMap *bm, uint64_t size_bytes, TtDiag *diag)
{
    unsigned bits = bm->table.cluster_bits;
    TtStatus st = tt_block_check_size(size_bytes, bits, diag);

    if (st == TT_ERR_LIMIT) {
        st = tt_fail(diag, st, "with its clusters, which were chosen when it was made, the "
                     "disk can have %" G_GUINT64_FORMAT " bytes at most",
                     ((uint64_t)TT_BLOCKMAP_CLUSTERS_MAX - 1) << bits);
    }
    if (st == TT_OK && size_bytes < bm->table.size_bytes) {
        st = tt_fail(diag, TT_ERR_INVALID, "a disk with versions cannot be made smaller");
    }
    if (st == TT_OK && !tt_table_grow(&bm->table, size_bytes)) {
        st = tt_fail(diag, TT_ERR_NOMEM, "there is not enough memory for a disk of that "
                     "size");
    }
    if (st == TT_OK) {
        bm->journal.must_be_anew = true;
    }
    return st;
}

/* Operations that wait may name what is gone: the journal anew has none of them. */
void tt_blockmap_grow_undo(TtBlockMap *bm, uint64_t size_bytes)
{
    unsigned bits = bm->table.cluster_bits;

    tt_head_cut(bm, (size_bytes + (1ull << bits) - 1) >> bits);
    tt_table_shrink(&bm->table, size_bytes);
    bm->journal.must_be_anew = true;
}

/* A journal that was just written anew, of a disk without versions or changes. */
static void plan_format(const TtBlockMap *like, TtBlockPlan *plan, uint8_t *heads,
                        const uint8_t *segment, size_t len)
{
    TtHostRun run = { tt_head_hosts(like->table.cluster_bits),
                      MAX(JOURNAL_BYTES >> like->table.cluster_bits, 1) };
    uint64_t at = tt_host_offset(like, run.host);

    for (unsigned copy = 0; copy < 2; copy++) {
        tt_block_head_put(heads + copy * TT_F_BLOCK_HEAD_BYTES, like, FIRST_GENERATION, run);
    }
    *plan = (TtBlockPlan) { .n = 4, .step = {
        { TT_BLOCK_WRITE, at, segment, len },
        { TT_BLOCK_GROW, at + tt_host_offset(like, run.n), NULL, 0 },
        { TT_BLOCK_WRITE, 0, heads, 2 * TT_F_BLOCK_HEAD_BYTES },
        { TT_BLOCK_SYNC, 0, NULL, 0 },
    } };
}

TtStatus tt_blockmap_format(const TtBlockSpec *spec, TtBlockPlan *plan, uint8_t **bytes,
                            TtDiag *diag)
{
    unsigned bits = spec->cluster_bits ? spec->cluster_bits :
                    tt_blockmap_cluster_bits_for(spec->size_bytes);
    TtBlockMap like = {
        .table = { .size_bytes = spec->size_bytes, .cluster_bits = bits },
        .backing = (char *)spec->backing, .backing_format = (char *)spec->backing_format,
    };
    g_autofree uint8_t *segment = NULL;
    TtStatus st = tt_block_check_size(spec->size_bytes, bits, diag);
    size_t len;

    *bytes = NULL;
    st = st == TT_OK ? check_backing(spec->backing, spec->backing_format, diag) : st;
    if (st != TT_OK) {
        return st;
    }
    memcpy(like.uuid, spec->uuid, sizeof(like.uuid));
    segment = tt_block_first_segment(like.uuid, FIRST_GENERATION, &len);
    *bytes = g_malloc(2 * TT_F_BLOCK_HEAD_BYTES + len);
    memcpy(*bytes + 2 * TT_F_BLOCK_HEAD_BYTES, segment, len);
    plan_format(&like, plan, *bytes, *bytes + 2 * TT_F_BLOCK_HEAD_BYTES, len);
    return TT_OK;
}

TtStatus tt_blockmap_format_io(const TtBlockSpec *spec, TtIo *io, TtDiag *diag)
{
    g_autofree uint8_t *bytes = NULL;
    TtBlockPlan plan;
    TtStatus st = tt_blockmap_format(spec, &plan, &bytes, diag);

    for (unsigned i = 0; st == TT_OK && i < plan.n; i++) {
        st = tt_block_step_io(&plan.step[i], io, diag);
    }
    return st;
}
