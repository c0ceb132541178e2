/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of the block driver `tt`. They translate between QEMU's block layer
 * and the block map (block-tt/tt-blockmap.h), which decides everything.
 *
 * Locks: map_lock is held for calls of the map only, never while waiting for a disk,
 * except in qemu_co_queue_wait, which releases it. The block layer lets one flush run at
 * a time; versions are made, left and deleted with no request in flight (drained).
 */
#ifndef TT_BLK_INT_H
#define TT_BLK_INT_H

#include "block/block-io.h"
#include "block/block_int.h"
#include "qapi/qapi-types-block-core.h"
#include "qemu/coroutine.h"
#include "qemu/lockable.h"
#include "qemu/queue.h"
#include "block-tt/tt-blockmap.h"

/* A request that changes the disk, while it lasts. */
typedef struct TtBlkRequest {
    int64_t start, end;                 /* bytes, whole clusters */
    bool in_place;                      /* leaves the map as it is */
    CoQueue waiting;
    QLIST_ENTRY(TtBlkRequest) next;
} TtBlkRequest;

typedef struct TtBlkState {
    TtBlockMap *map;
    QemuMutex map_lock;
    QLIST_HEAD(, TtBlkRequest) requests;
    uint32_t cluster_bytes;
    TtVersionId version;                /* 0: the head, to be written */
    bool may_be_damaged;                /* the user has agreed to what is left */
    bool is_frozen;                     /* an old version: nothing is ever written */
    uint64_t n_deleted;                 /* versions, since it was opened; map_lock */
    uint64_t frees;                     /* tt_blockmap_frees, when the last flush ended */
    int fd;                             /* the file once more (tt-blkfd.c); -1: not open */
    bool fd_writes;                     /* it may be written */
    int sync_failed;                    /* -errno of the first sync that failed: nobody
                                           knows what is on the disk since, as with the
                                           file driver */
    BlockDriverState *fd_of;            /* while this is bs->file; no reference */
    unsigned cache_failed;              /* reads to leave out after the last failure */
    unsigned cache_left_out;            /* and how many of them still are to come */
} TtBlkState;

/* tt-blkerror.c: -errno for a status. */
int tt_blk_errno(TtStatus status, const TtDiag *diag);
void tt_blk_error(Error **errp, const TtDiag *diag);

/* tt-blkfd.c: open and close in the main thread. */
void GRAPH_RDLOCK tt_blk_fd_open(BlockDriverState *bs);
void tt_blk_fd_close(BlockDriverState *bs);
/* Reads from bs->file without waiting. False: what is in @qiov is undefined, read it by
 * way of the block layer. */
bool tt_blk_fd_read(BlockDriverState *bs, int64_t host_offset, int64_t bytes,
                    QEMUIOVector *qiov, size_t qiov_offset);
/* Writes, then makes all that was written to bs->file durable, and then writes @after, if
 * its length is not 0, as one request; @ret: 0 or -errno. False: nothing was done, do it
 * by way of the block layer. */
bool coroutine_fn GRAPH_RDLOCK
tt_blk_fd_write_sync(BlockDriverState *bs, const TtBlockStep *step,
                     const TtBlockStep *after, int *ret);
/* Of the file, to the byte. -1: not known. */
int64_t tt_blk_fd_size(BlockDriverState *bs);

/* tt-blkio.c */
int coroutine_fn GRAPH_RDLOCK
tt_blk_co_preadv_part(BlockDriverState *bs, int64_t offset, int64_t bytes,
                      QEMUIOVector *qiov, size_t qiov_offset, BdrvRequestFlags flags);
int coroutine_fn GRAPH_RDLOCK
tt_blk_co_pwritev_part(BlockDriverState *bs, int64_t offset, int64_t bytes,
                       QEMUIOVector *qiov, size_t qiov_offset, BdrvRequestFlags flags);
int coroutine_fn GRAPH_RDLOCK
tt_blk_co_pwrite_zeroes(BlockDriverState *bs, int64_t offset, int64_t bytes,
                        BdrvRequestFlags flags);
int coroutine_fn GRAPH_RDLOCK
tt_blk_co_pdiscard(BlockDriverState *bs, int64_t offset, int64_t bytes);
int coroutine_fn GRAPH_RDLOCK tt_blk_co_flush_to_os(BlockDriverState *bs);
int coroutine_fn GRAPH_RDLOCK
tt_blk_co_block_status(BlockDriverState *bs, bool want_zero, int64_t offset,
                       int64_t bytes, int64_t *pnum, int64_t *map,
                       BlockDriverState **file);

/* tt-blkgrow.c */
int coroutine_fn GRAPH_RDLOCK
tt_blk_co_truncate(BlockDriverState *bs, int64_t offset, bool exact,
                   PreallocMode prealloc, BdrvRequestFlags flags, Error **errp);

/* tt-blksnap.c: a version is one of QEMU's internal snapshots. */
int GRAPH_RDLOCK tt_blk_snapshot_create(BlockDriverState *bs, QEMUSnapshotInfo *sn);
int GRAPH_UNLOCKED tt_blk_snapshot_goto(BlockDriverState *bs, const char *id);
int GRAPH_RDLOCK tt_blk_snapshot_delete(BlockDriverState *bs, const char *id,
                                        const char *name, Error **errp);
int GRAPH_RDLOCK tt_blk_snapshot_list(BlockDriverState *bs, QEMUSnapshotInfo **list);
int GRAPH_RDLOCK tt_blk_snapshot_load_tmp(BlockDriverState *bs, const char *id,
                                          const char *name, Error **errp);

/* tt-blkcreate.c */
extern QemuOptsList tt_blk_create_opts;
int coroutine_fn GRAPH_UNLOCKED
tt_blk_co_create_opts(BlockDriver *drv, const char *filename, QemuOpts *opts,
                      Error **errp);
int coroutine_fn GRAPH_UNLOCKED
tt_blk_co_create(BlockdevCreateOptions *options, Error **errp);

#endif
