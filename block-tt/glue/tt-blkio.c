/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block driver `tt`: reads, writes, zeros, discards, flushes. The map says where; this
 * file moves the bytes. Requests that would change the map at a place where another one is
 * under way wait for it.
 */
#include "qemu/osdep.h"
#include "block-tt/glue/tt-blk-int.h"
#include "block-tt/glue/tt-blkwatch.h"
#include "qemu/memalign.h"

/* ---- requests that wait for each other ---- */

/* Whole clusters of the range; map_lock is held, before and after. */
static void coroutine_fn wait_for_others(TtBlkState *s, int64_t offset, int64_t bytes,
                                         bool for_all)
{
    int64_t start = QEMU_ALIGN_DOWN(offset, s->cluster_bytes);
    int64_t end = QEMU_ALIGN_UP(offset + bytes, s->cluster_bytes);
    TtBlkRequest *r;

again:
    QLIST_FOREACH(r, &s->requests, next) {
        if (r->start < end && start < r->end && (for_all || !r->in_place)) {
            qemu_co_queue_wait(&r->waiting, &s->map_lock);
            goto again;
        }
    }
}

static void begin_request(TtBlkState *s, TtBlkRequest *r, int64_t offset, int64_t bytes,
                          bool in_place)
{
    r->start = QEMU_ALIGN_DOWN(offset, s->cluster_bytes);
    r->end = QEMU_ALIGN_UP(offset + bytes, s->cluster_bytes);
    r->in_place = in_place;
    qemu_co_queue_init(&r->waiting);
    QLIST_INSERT_HEAD(&s->requests, r, next);
}

static void coroutine_fn end_request(TtBlkRequest *r)
{
    QLIST_REMOVE(r, next);
    qemu_co_queue_restart_all(&r->waiting);
}

/* ---- reading ---- */

TtBlkReadWatch *tt_blk_read_watch;

static int coroutine_fn GRAPH_RDLOCK
read_run(BlockDriverState *bs, const TtBlockRun *run, int64_t offset,
         QEMUIOVector *qiov, size_t qiov_offset)
{
    if (run->kind == TT_BLOCK_HOST) {
        BLKDBG_CO_EVENT(bs->file, BLKDBG_READ_AIO);
        if (tt_blk_fd_read(bs, run->host_offset, run->len, qiov, qiov_offset)) {
            return 0;
        }
        return bdrv_co_preadv_part(bs->file, run->host_offset, run->len, qiov,
                                   qiov_offset, 0);
    }
    if (run->kind == TT_BLOCK_BACKING && bs->backing) {
        BLKDBG_CO_EVENT(bs->file, BLKDBG_READ_BACKING_AIO);
        return bdrv_co_preadv_part(bs->backing, offset, run->len, qiov, qiov_offset, 0);
    }
    if (run->kind == TT_BLOCK_LOST) {
        return -EIO;
    }
    qemu_iovec_memset(qiov, qiov_offset, 0, run->len);
    return 0;
}

int coroutine_fn GRAPH_RDLOCK
tt_blk_co_preadv_part(BlockDriverState *bs, int64_t offset, int64_t bytes,
                      QEMUIOVector *qiov, size_t qiov_offset, BdrvRequestFlags flags)
{
    TtBlkState *s = bs->opaque;
    int64_t most = bytes;
    int ret = 0;

    while (bytes && ret >= 0) {
        TtBlkReadWatch *watch = qatomic_read(&tt_blk_read_watch);
        TtVersionId kept_in = 0;
        uint64_t n_deleted, frees;
        TtBlockRun run;

        WITH_QEMU_LOCK_GUARD(&s->map_lock) {
            n_deleted = s->n_deleted;
            frees = s->frees;
            tt_blockmap_lookup(s->map, offset, MIN(bytes, most), &run);
            if (watch && tt_blockmap_is_kept(s->map, offset, run.len)) {
                TtDiskInfo info;

                tt_blockmap_info(s->map, &info);
                kept_in = info.parent;
            }
        }
        ret = read_run(bs, &run, offset, qiov, qiov_offset);
        if (ret >= 0 && (n_deleted != qatomic_read(&s->n_deleted) ||
                         (run.kind == TT_BLOCK_HOST && frees != qatomic_read(&s->frees)))) {
            most = s->cluster_bytes;    /* so this comes to an end beside many flushes */
            continue;           /* what was read may have become free meanwhile */
        }
        if (ret >= 0 && kept_in) {
            watch(bs, kept_in, offset, qiov, qiov_offset, run.len);
        }
        offset += run.len;
        qiov_offset += run.len;
        bytes -= run.len;
    }
    return ret < 0 ? ret : 0;
}

static int coroutine_fn GRAPH_RDLOCK
read_buf(BlockDriverState *bs, int64_t offset, int64_t bytes, void *buf)
{
    QEMUIOVector qiov = QEMU_IOVEC_INIT_BUF(qiov, buf, bytes);

    return bytes ? tt_blk_co_preadv_part(bs, offset, bytes, &qiov, 0, 0) : 0;
}

/* ---- writing ---- */

/* Like bdrv_co_pwritev, of as many pieces as there may be. */
static int coroutine_fn GRAPH_RDLOCK
write_pieces(BlockDriverState *bs, int64_t host_offset, QEMUIOVector *qiov)
{
    uint8_t *whole;
    int ret;

    if (qiov->niov <= IOV_MAX) {
        return bdrv_co_pwritev(bs->file, host_offset, qiov->size, qiov, 0);
    }
    whole = qemu_try_blockalign(bs->file->bs, qiov->size);
    if (!whole) {
        return -ENOMEM;
    }
    qemu_iovec_to_buf(qiov, 0, whole, qiov->size);
    ret = bdrv_co_pwrite(bs->file, host_offset, qiov->size, whole, 0);
    qemu_vfree(whole);
    return ret;
}

/* A new cluster, of which the guest writes a part: what the disk has around it goes
 * with it, so that the file is written in one go. */
static int coroutine_fn GRAPH_RDLOCK
write_filled(BlockDriverState *bs, const TtBlockWrite *w, QEMUIOVector *qiov,
             size_t qiov_offset)
{
    uint8_t *fill = qemu_try_blockalign(bs->file->bs, w->fill_before + w->fill_after);
    QEMUIOVector all;
    int ret;

    if (!fill) {
        return -ENOMEM;
    }
    ret = read_buf(bs, w->offset - w->fill_before, w->fill_before, fill);
    if (ret >= 0) {
        ret = read_buf(bs, w->offset + w->len, w->fill_after, fill + w->fill_before);
    }
    if (ret >= 0) {
        qemu_iovec_init(&all, qiov->niov + 2);
        if (w->fill_before) {
            qemu_iovec_add(&all, fill, w->fill_before);
        }
        qemu_iovec_concat(&all, qiov, qiov_offset, w->len);
        if (w->fill_after) {
            qemu_iovec_add(&all, fill + w->fill_before, w->fill_after);
        }
        ret = write_pieces(bs, w->host_offset - w->fill_before, &all);
        qemu_iovec_destroy(&all);
    }
    qemu_vfree(fill);
    return ret;
}

static int coroutine_fn GRAPH_RDLOCK
write_one(BlockDriverState *bs, int64_t offset, int64_t bytes, QEMUIOVector *qiov,
          size_t qiov_offset, int64_t *done)
{
    TtBlkState *s = bs->opaque;
    TtBlkRequest req;
    TtBlockWrite w;
    TtDiag diag;
    int ret;

    WITH_QEMU_LOCK_GUARD(&s->map_lock) {
        TtStatus st;

        wait_for_others(s, offset, bytes, false);
        st = tt_blockmap_write_begin(s->map, offset, bytes, &w, &diag);
        if (st != TT_OK) {
            return tt_blk_errno(st, &diag);
        }
        begin_request(s, &req, offset, w.len, !w.is_new);
    }
    BLKDBG_CO_EVENT(bs->file, BLKDBG_WRITE_AIO);
    if (w.fill_before || w.fill_after) {
        ret = write_filled(bs, &w, qiov, qiov_offset);
    } else {
        ret = bdrv_co_pwritev_part(bs->file, w.host_offset, w.len, qiov, qiov_offset, 0);
    }
    WITH_QEMU_LOCK_GUARD(&s->map_lock) {
        tt_blockmap_write_end(s->map, &w, ret >= 0);
        end_request(&req);
    }
    *done = w.len;
    return ret;
}

int coroutine_fn GRAPH_RDLOCK
tt_blk_co_pwritev_part(BlockDriverState *bs, int64_t offset, int64_t bytes,
                       QEMUIOVector *qiov, size_t qiov_offset, BdrvRequestFlags flags)
{
    int ret = 0;

    while (bytes && ret >= 0) {
        int64_t done = 0;

        ret = write_one(bs, offset, bytes, qiov, qiov_offset, &done);
        offset += done;
        qiov_offset += done;
        bytes -= done;
    }
    return ret < 0 ? ret : 0;
}

/* ---- zeros and discards ---- */

/* Are they zeros already, whatever is put below? map_lock is held. */
static bool are_zeros(BlockDriverState *bs, int64_t offset, int64_t bytes)
{
    TtBlkState *s = bs->opaque;
    TtDiskInfo info;
    TtBlockRun run;

    tt_blockmap_info(s->map, &info);
    tt_blockmap_lookup(s->map, offset, bytes, &run);
    return run.len == bytes &&
           (run.kind == TT_BLOCK_ZERO ||
            (run.kind == TT_BLOCK_BACKING && !bs->backing && !info.backing));
}

int coroutine_fn GRAPH_RDLOCK
tt_blk_co_pwrite_zeroes(BlockDriverState *bs, int64_t offset, int64_t bytes,
                        BdrvRequestFlags flags)
{
    TtBlkState *s = bs->opaque;
    uint64_t before, after;
    TtDiag diag;
    TtStatus st;

    QEMU_LOCK_GUARD(&s->map_lock);
    wait_for_others(s, offset, bytes, true);
    if (are_zeros(bs, offset, bytes)) {
        return 0;
    }
    st = tt_blockmap_zero(s->map, offset, bytes, bs->backing, &before, &after, &diag);
    if (st != TT_OK) {
        return tt_blk_errno(st, &diag);
    }
    /* The block layer cuts at clusters, so then it is all a part of one: it writes
     * zeros as data. */
    return before || after ? -ENOTSUP : 0;
}

int coroutine_fn GRAPH_RDLOCK
tt_blk_co_pdiscard(BlockDriverState *bs, int64_t offset, int64_t bytes)
{
    TtBlkState *s = bs->opaque;

    QEMU_LOCK_GUARD(&s->map_lock);
    wait_for_others(s, offset, bytes, true);
    tt_blockmap_discard(s->map, offset, bytes);
    return 0;
}

/* ---- flushing ---- */

static int coroutine_fn GRAPH_RDLOCK grow_file(BlockDriverState *bs, int64_t bytes)
{
    int64_t now = bdrv_co_getlength(bs->file->bs);

    return now < 0 ? now : now >= bytes ? 0 :
        bdrv_co_truncate(bs->file, bytes, false, PREALLOC_MODE_OFF, 0, NULL);
}

static int coroutine_fn GRAPH_RDLOCK run_step(BlockDriverState *bs,
                                              const TtBlockStep *step)
{
    TtBlkState *s = bs->opaque;
    int ret;

    if (step->kind == TT_BLOCK_WRITE) {
        return bdrv_co_pwrite(bs->file, step->offset, step->len, step->data, 0);
    }
    if (step->kind == TT_BLOCK_GROW) {
        return grow_file(bs, step->offset);
    }
    ret = bdrv_co_flush(bs->file->bs);
    s->fd_writes &= ret >= 0;           /* the file node remembers what failed */
    return ret;
}

/* What follows a plan that ended well. It need not be durable, so the file node is told
 * that no flush is due for it, if it was not before. */
static void coroutine_fn GRAPH_RDLOCK run_after(BlockDriverState *bs,
                                                const TtBlockStep *step)
{
    BlockDriverState *file = bs->file->bs;
    unsigned gen = qatomic_read(&file->write_gen);

    if (!step->len || bdrv_co_pwrite(bs->file, step->offset, step->len, step->data, 0) < 0) {
        return;
    }
    WITH_QEMU_LOCK_GUARD(&file->reqs_lock) {
        if (!file->active_flush_req && file->flushed_gen == gen &&
            qatomic_read(&file->write_gen) == gen + 1) {
            file->flushed_gen = gen + 1;
        }
    }
}

/* Called by one coroutine at a time. *@at: the step that failed. */
static int coroutine_fn GRAPH_RDLOCK run_plan(BlockDriverState *bs,
                                              const TtBlockPlan *plan, unsigned *at)
{
    static const TtBlockStep nothing = { TT_BLOCK_WRITE };
    const TtBlockStep *after = &plan->after;
    TtBlkState *s = bs->opaque;

    for (unsigned i = 0; i < plan->n; i++) {
        int ret;
        const TtBlockStep *step = &plan->step[i];
        bool is_synced = step->kind == TT_BLOCK_WRITE && i + 1 < plan->n &&
                         step[1].kind == TT_BLOCK_SYNC;
        bool is_last = i + 2 == plan->n;

        if (is_synced && tt_blk_fd_write_sync(bs, step, is_last ? after : &nothing,
                                              &ret)) {
            i += ret >= 0 || s->sync_failed;
            after = is_last ? &nothing : after;
        } else {
            ret = run_step(bs, step);
        }
        if (ret < 0) {
            *at = i;
            return ret;
        }
    }
    run_after(bs, after);
    return 0;
}

/* Space that is free now goes back to the file system, where that can take it. */
static void coroutine_fn GRAPH_RDLOCK give_space_back(BlockDriverState *bs)
{
    TtBlkState *s = bs->opaque;
    uint64_t at, len;

    while (true) {
        bool some;

        WITH_QEMU_LOCK_GUARD(&s->map_lock) {
            some = tt_blockmap_next_freed(s->map, &at, &len);
        }
        if (!some) {
            return;
        }
        (void)bdrv_co_pdiscard(bs->file, at, len);
        WITH_QEMU_LOCK_GUARD(&s->map_lock) {
            tt_blockmap_release(s->map, at, len);
        }
    }
}

/* *@again: it failed, but the next one may do. */
static int coroutine_fn GRAPH_RDLOCK commit(BlockDriverState *bs, bool *again)
{
    TtBlkState *s = bs->opaque;
    TtBlockPlan plan;
    unsigned at = 0;
    TtDiag diag;
    int ret;

    *again = false;
    WITH_QEMU_LOCK_GUARD(&s->map_lock) {
        TtStatus st;

        if (s->is_frozen || !tt_blockmap_is_dirty(s->map)) {
            return 0;
        }
        st = tt_blockmap_commit_begin(s->map, &plan, &diag);
        if (st != TT_OK) {
            return tt_blk_errno(st, &diag);
        }
    }
    ret = run_plan(bs, &plan, &at);
    WITH_QEMU_LOCK_GUARD(&s->map_lock) {
        if (ret < 0) {
            *again = tt_blockmap_commit_stop(s->map, &plan, at);
        } else {
            tt_blockmap_commit_end(s->map, true);
        }
        qatomic_set(&s->frees, tt_blockmap_frees(s->map));
    }
    return ret;
}

int coroutine_fn GRAPH_RDLOCK tt_blk_co_flush_to_os(BlockDriverState *bs)
{
    TtBlkState *s = bs->opaque;
    bool again;
    int ret;

    if (s->sync_failed) {
        return s->sync_failed;
    }
    if (bs->open_flags & BDRV_O_INACTIVE) {
        return 0;                       /* the image is another process's now */
    }
    ret = commit(bs, &again);
    if (again && !s->sync_failed) {
        ret = commit(bs, &again);
    }
    give_space_back(bs);
    return ret;
}

/* ---- where is what ---- */

int coroutine_fn GRAPH_RDLOCK
tt_blk_co_block_status(BlockDriverState *bs, bool want_zero, int64_t offset,
                       int64_t bytes, int64_t *pnum, int64_t *map,
                       BlockDriverState **file)
{
    TtBlkState *s = bs->opaque;
    TtBlockRun run;

    WITH_QEMU_LOCK_GUARD(&s->map_lock) {
        tt_blockmap_lookup(s->map, offset, bytes, &run);
    }
    *pnum = run.len;
    if (run.kind == TT_BLOCK_HOST) {
        *map = run.host_offset;
        *file = bs->file->bs;
        return BDRV_BLOCK_DATA | BDRV_BLOCK_OFFSET_VALID;
    }
    if (run.kind == TT_BLOCK_LOST) {
        return BDRV_BLOCK_DATA;         /* whoever reads it gets an error */
    }
    return run.kind == TT_BLOCK_ZERO ? BDRV_BLOCK_ZERO : 0;
}
