/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Partitions of a disk: those of a GPT, or of an MBR with its logical partitions. The
 * bytes may come from anybody and are not trusted: a partition that lies outside the
 * disk, or is named in a circle, is left out.
 *
 * Context: any thread; nothing here has state. Blocks in TtIo::read_at only.
 */
#ifndef TT_DISKPARTS_H
#define TT_DISKPARTS_H

#include "io/tt-io.h"

#define TT_DISKPARTS_MAX 128

typedef struct TtDiskPart {
    uint32_t number;            /* as Linux counts them, from 1 on */
    uint64_t start, len;        /* bytes; inside the disk, not empty */
} TtDiskPart;

/*
 * tt_diskparts_read: the partitions of @disk, by number
 * @part: room for TT_DISKPARTS_MAX. @n: 0 where there is no table that can be believed.
 * TT_ERR_IO: the disk cannot be read. Cost: some reads of a sector, and the GPT's table.
 */
TtStatus tt_diskparts_read(TtIo *disk, TtDiskPart *part, unsigned *n, TtDiag *diag);

#endif
