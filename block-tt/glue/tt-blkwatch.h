/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block driver `tt`: reports reads to a listener, if there is one.
 *
 * Context: where the request runs, which need not hold the BQL.
 */
#ifndef TT_BLKWATCH_H
#define TT_BLKWATCH_H

#include "block/block-common.h"
#include "block-tt/tt-blockmap.h"

/* @bytes of the disk @bs from @offset on were read into @qiov, from @qiov_offset on. They
 * are also those of @version, and stay so while that is there. */
typedef void TtBlkReadWatch(BlockDriverState *bs, TtVersionId version, int64_t offset,
                            const QEMUIOVector *qiov, size_t qiov_offset, size_t bytes);

extern TtBlkReadWatch *tt_blk_read_watch;       /* NULL: nobody; main thread sets it */

#endif
