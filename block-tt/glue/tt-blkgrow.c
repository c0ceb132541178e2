/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Block driver `tt`: a larger disk. */
#include "qemu/osdep.h"
#include "block-tt/glue/tt-blk-int.h"
#include "qapi/error.h"
#include "qemu/error-report.h"

static bool has_versions(TtBlkState *s)
{
    TtDiskInfo info;

    tt_blockmap_info(s->map, &info);
    return info.n_versions;
}

/* Bytes after the old end in its cluster were never the disk's. */
static int coroutine_fn GRAPH_RDLOCK
clear_rest(BlockDriverState *bs, int64_t old, int64_t size)
{
    TtBlkState *s = bs->opaque;
    int64_t len = MIN(ROUND_UP(old, s->cluster_bytes), size) - old;
    g_autofree void *zeros = g_malloc0(len);
    QEMUIOVector qiov = QEMU_IOVEC_INIT_BUF(qiov, zeros, len);

    return tt_blk_co_pwritev_part(bs, old, len, &qiov, 0, 0);
}

int coroutine_fn GRAPH_RDLOCK
tt_blk_co_truncate(BlockDriverState *bs, int64_t offset, bool exact,
                   PreallocMode prealloc, BdrvRequestFlags flags, Error **errp)
{
    TtBlkState *s = bs->opaque;
    int64_t old = bs->total_sectors * BDRV_SECTOR_SIZE;
    int64_t whole = ROUND_UP(old, s->cluster_bytes);
    TtDiag diag;
    TtStatus st;
    int ret = 0;

    if (prealloc != PREALLOC_MODE_OFF) {
        error_setg(errp, "a disk with versions takes space only as it is written: use "
                   "preallocation=off");
        return -ENOTSUP;
    }
    if (offset < old) {
        error_setg(errp, "a disk with versions cannot be made smaller");
        return -ENOTSUP;
    }
    WITH_QEMU_LOCK_GUARD(&s->map_lock) {
        if (whole != old && offset > old && has_versions(s)) {
            error_setg(errp, "the disk ends within a cluster that its versions use, too: "
                       "delete them first");
            return -ENOTSUP;
        }
        st = tt_blockmap_grow(s->map, offset, &diag);
    }
    if (st != TT_OK) {
        tt_blk_error(errp, &diag);
        return tt_blk_errno(st, &diag);
    }
    if (whole != old && offset > old) {
        ret = clear_rest(bs, old, offset);
    }
    /* The backing file is longer than the disk was, and must not become visible. */
    if (ret >= 0 && flags & BDRV_REQ_ZERO_WRITE && offset > whole) {
        uint64_t before, after;

        QEMU_LOCK_GUARD(&s->map_lock);
        st = tt_blockmap_zero(s->map, whole, offset - whole, bs->backing, &before, &after,
                              &diag);
        ret = st == TT_OK ? 0 : tt_blk_errno(st, &diag);
    }
    if (ret >= 0) {
        ret = bdrv_co_flush(bs);    /* waits for one that is running */
    }
    if (ret < 0) {
        WITH_QEMU_LOCK_GUARD(&s->map_lock) {
            tt_blockmap_grow_undo(s->map, old);     /* which the node still has */
        }
        error_setg_errno(errp, -ret, "the disk cannot be made larger");
    } else if (offset % s->cluster_bytes && offset > old) {
        warn_report("%" PRId64 " bytes are no multiple of the disk's clusters of %" PRIu32
                    " bytes: it cannot grow again once it has versions", offset,
                    s->cluster_bytes);
    }
    return ret;
}
