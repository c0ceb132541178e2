/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block driver `tt`: the image file, opened once more, for reads and journal records that
 * would cost more requests to the thread pool of the block layer.
 *
 * Reads: when the guest writes a part of a new cluster, the rest is filled from the disk
 * (tt-blkio.c). With the thread pool, that made three requests of one, so what is in the
 * host's page cache is read at once. Data that is not cached, or cannot be read like
 * this, still goes that way. A try costs time, since the kernel begins to read what is
 * not cached: with each failure in a row, more of the next reads go the other way without
 * a try.
 *
 * Records of the journal: the record and the sync after it are one request. The file
 * node is told that it was flushed, as its own flush would do it. It does not see these
 * writes otherwise (block-set-write-threshold, statistics). A mark that follows (J6 of
 * docs/reference/disk-format.rst) costs a write to the host's page cache: it must not make
 * the next flush of the file node necessary.
 */
#include "qemu/osdep.h"
#include "block-tt/glue/tt-blk-int.h"
#include "block/thread-pool.h"
#include "qemu/iov.h"

#include <sys/uio.h>

#define AT_ONCE_MAX     (128u << 10)    /* the BQL is held for as long as it takes */
#define LEFT_OUT_MAX    7               /* reads, after failures */
#define HEADS           8192            /* both file heads: they have a UUID */

/* Is @fd what @bs->file reads? */
static bool is_same_file(BlockDriverState *bs, int fd)
{
    g_autofree uint8_t *ours = g_malloc(HEADS);
    g_autofree uint8_t *its = g_malloc(HEADS);

    return pread(fd, ours, HEADS, 0) == HEADS &&
           bdrv_pread(bs->file, 0, HEADS, its, 0) >= 0 && !memcmp(ours, its, HEADS);
}

void tt_blk_fd_open(BlockDriverState *bs)
{
    TtBlkState *s = bs->opaque;
    BlockDriverState *file = bs->file->bs;

    s->fd = -1;
    s->fd_writes = false;
    if (strcmp(file->drv->format_name, "file") || file->open_flags & BDRV_O_NOCACHE) {
        return;
    }
    s->fd_writes = !bdrv_is_read_only(file);
    s->fd = open(file->filename, (s->fd_writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (s->fd < 0 && s->fd_writes) {        /* auto-read-only */
        s->fd_writes = false;
        s->fd = open(file->filename, O_RDONLY | O_CLOEXEC);
    }
    if (s->fd >= 0 && !is_same_file(bs, s->fd)) {
        tt_blk_fd_close(bs);
    }
    s->fd_of = file;
}

void tt_blk_fd_close(BlockDriverState *bs)
{
    TtBlkState *s = bs->opaque;

    if (s->fd >= 0) {
        close(s->fd);
        s->fd = -1;
    }
}

int64_t tt_blk_fd_size(BlockDriverState *bs)
{
    TtBlkState *s = bs->opaque;
    struct stat st;

    return s->fd >= 0 && bs->file->bs == s->fd_of && fstat(s->fd, &st) == 0 &&
           S_ISREG(st.st_mode) ? st.st_size : -1;
}

/* Another node was here, if only for a moment: the next one's file may be another. */
static bool is_still_its(BlockDriverState *bs)
{
    TtBlkState *s = bs->opaque;

    if (bs->file->bs != s->fd_of) {
        s->fd_of = NULL;
    }
    return s->fd >= 0 && s->fd_of;
}

static bool read_at_once(int fd, int64_t host_offset, int64_t bytes, QEMUIOVector *qiov,
                         size_t qiov_offset)
{
    size_t head, tail;
    struct iovec *iov;
    int n;

    iov = qemu_iovec_slice(qiov, qiov_offset, bytes, &head, &tail, &n);
    if (head || tail) {
        g_autofree struct iovec *part = g_new(struct iovec, n);

        n = iov_copy(part, n, iov, n, head, bytes);
        return preadv2(fd, part, n, host_offset, RWF_NOWAIT) == bytes;
    }
    return n <= IOV_MAX &&
           preadv2(fd, iov, n, host_offset, RWF_NOWAIT) == bytes;
}

bool tt_blk_fd_read(BlockDriverState *bs, int64_t host_offset, int64_t bytes,
                    QEMUIOVector *qiov, size_t qiov_offset)
{
    TtBlkState *s = bs->opaque;
    unsigned left_out = qatomic_read(&s->cache_left_out);
    unsigned failed;

    if (!is_still_its(bs) || bytes > AT_ONCE_MAX) {
        return false;
    }
    if (left_out) {
        qatomic_set(&s->cache_left_out, left_out - 1);
        return false;
    }
    failed = read_at_once(s->fd, host_offset, bytes, qiov, qiov_offset) ? 0 :
        MIN(2 * qatomic_read(&s->cache_failed) + 1, LEFT_OUT_MAX);
    qatomic_set(&s->cache_failed, failed);
    qatomic_set(&s->cache_left_out, failed);
    return !failed;
}

/* ---- a record and its sync ---- */

typedef struct Record {
    int fd;
    bool is_written;                    /* what failed, if anything, was the sync */
    const TtBlockStep *step, *after;
} Record;

/* 0 or -errno. */
static int write_all(int fd, const TtBlockStep *s)
{
    size_t done = 0;

    while (done < s->len) {
        ssize_t n = pwrite(fd, s->data + done, s->len - done, s->offset + done);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : -EIO;
        }
        done += n;
    }
    return 0;
}

/* In a thread of the pool. 0 or -errno. */
static int write_and_sync(void *opaque)
{
    Record *r = opaque;
    int ret = write_all(r->fd, r->step);

    if (ret < 0) {
        return ret;
    }
    r->is_written = true;
    if (qemu_fdatasync(r->fd) < 0) {
        return -errno;
    }
    (void)write_all(r->fd, r->after);
    return 0;
}

/* What the block layer does for a write, and this does not, must not be needed. */
static bool can_write(BlockDriverState *bs, uint64_t end)
{
    TtBlkState *s = bs->opaque;
    BlockDriverState *file = bs->file->bs;

    return is_still_its(bs) && s->fd_writes && !bdrv_is_read_only(file) &&
           !(file->open_flags & (BDRV_O_NO_FLUSH | BDRV_O_NOCACHE | BDRV_O_INACTIVE)) &&
           bs->file->perm & BLK_PERM_WRITE &&
           QLIST_EMPTY(&file->dirty_bitmaps) &&
           end <= (uint64_t)file->total_sectors * BDRV_SECTOR_SIZE;
}

bool coroutine_fn tt_blk_fd_write_sync(BlockDriverState *bs, const TtBlockStep *step,
                                       const TtBlockStep *after, int *ret)
{
    TtBlkState *s = bs->opaque;
    BlockDriverState *file = bs->file->bs;
    Record record = { .fd = s->fd, .step = step, .after = after };
    int gen;

    if (!can_write(bs, MAX(step->offset + step->len, after->offset + after->len))) {
        return false;
    }
    WITH_QEMU_LOCK_GUARD(&file->reqs_lock) {
        gen = qatomic_read(&file->write_gen);
        while (file->active_flush_req) {
            qemu_co_queue_wait(&file->flush_queue, &file->reqs_lock);
        }
        file->active_flush_req = true;
    }
    *ret = thread_pool_submit_co(write_and_sync, &record);
    if (*ret >= 0) {
        file->flushed_gen = gen;
    } else if (record.is_written) {
        s->sync_failed = *ret;
    }
    WITH_QEMU_LOCK_GUARD(&file->reqs_lock) {
        file->active_flush_req = false;
        qemu_co_queue_next(&file->flush_queue);
    }
    return true;
}
