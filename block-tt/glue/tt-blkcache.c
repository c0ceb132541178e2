/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block driver `tt`: data in the host's page cache is read at once, without a thread.
 *
 * When the guest writes a part of a new cluster, the rest is filled from the disk
 * (tt-blkio.c). With the thread pool, that made three requests of one. Data that is not
 * cached, or cannot be read like this, still goes that way. A try costs time, since the
 * kernel begins to read what is not cached: with each failure in a row, more of the next
 * reads go the other way without a try.
 */
#include "qemu/osdep.h"
#include "block-tt/glue/tt-blk-int.h"
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

void tt_blk_cache_open(BlockDriverState *bs)
{
    TtBlkState *s = bs->opaque;
    BlockDriverState *file = bs->file->bs;

    s->cache_fd = -1;
    if (strcmp(file->drv->format_name, "file") || file->open_flags & BDRV_O_NOCACHE) {
        return;
    }
    s->cache_fd = open(file->filename, O_RDONLY | O_CLOEXEC);
    if (s->cache_fd >= 0 && !is_same_file(bs, s->cache_fd)) {
        tt_blk_cache_close(bs);
    }
    s->cache_of = file;
}

void tt_blk_cache_close(BlockDriverState *bs)
{
    TtBlkState *s = bs->opaque;

    if (s->cache_fd >= 0) {
        close(s->cache_fd);
        s->cache_fd = -1;
    }
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

bool tt_blk_cache_read(BlockDriverState *bs, int64_t host_offset, int64_t bytes,
                       QEMUIOVector *qiov, size_t qiov_offset)
{
    TtBlkState *s = bs->opaque;
    unsigned left_out = qatomic_read(&s->cache_left_out);
    unsigned failed;

    if (s->cache_fd < 0 || bytes > AT_ONCE_MAX || bs->file->bs != s->cache_of) {
        return false;
    }
    if (left_out) {
        qatomic_set(&s->cache_left_out, left_out - 1);
        return false;
    }
    failed = read_at_once(s->cache_fd, host_offset, bytes, qiov, qiov_offset) ? 0 :
        MIN(2 * qatomic_read(&s->cache_failed) + 1, LEFT_OUT_MAX);
    qatomic_set(&s->cache_failed, failed);
    qatomic_set(&s->cache_left_out, failed);
    return !failed;
}
