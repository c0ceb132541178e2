/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block driver `tt`: versions that are made and deleted without waiting for the disk.
 *
 * Context: main thread, BQL; to make one, no request is under way (drained). Both are
 * durable with the next flush of @bs that succeeds. @bs has the driver `tt`.
 */
#ifndef TT_BLKVERSION_H
#define TT_BLKVERSION_H

#include "block/block-common.h"
#include "block/snapshot.h"
#include "block-tt/tt-blockmap.h"

/* The head becomes a version; @sn: name, dates, icount; gets its id. The id, or
 * -errno: nothing changed. */
int64_t GRAPH_RDLOCK tt_blk_version_new(BlockDriverState *bs, QEMUSnapshotInfo *sn);
/* Bytes that versions have, and the disk as it is now has not. */
uint64_t GRAPH_RDLOCK tt_blk_version_kept_bytes(BlockDriverState *bs);
/* False: there is no such version, or no memory. */
bool GRAPH_RDLOCK tt_blk_version_delete(BlockDriverState *bs, TtVersionId id);

#endif
