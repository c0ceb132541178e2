/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * File systems of ext2, 3 and 4 in a part of a disk, by libext2fs. Only where that was
 * there when we were built.
 */
#ifndef TT_TOOL_EXTIO_H
#define TT_TOOL_EXTIO_H

#include "tt-tool-disk.h"
#include "block-tt/tt-extjournal.h"

#include <et/com_err.h>
#include <ext2fs/ext2fs.h>

/* A part of a disk; all but the first three are private. */
typedef struct ToolExtVolume {
    TtIo *disk;
    uint64_t start, len;
    TtExtJournal *journal;      /* NULL: not looked at */
    uint64_t *journal_block;    /* where each of its blocks is */
    uint32_t journal_blocks, journal_block_bytes;
} ToolExtVolume;

/* Opens it as it would be after its journal was recovered. NULL: said why, beginning
 * with @what. One at a time is opened; several may be open. */
ext2_filsys tool_ext_open(ToolExtVolume *v, const char *what);
void tool_ext_close(ToolExtVolume *v, ext2_filsys fs);

/* What was said about one pair of file systems. */
typedef struct ToolFileReport {
    bool json;
    unsigned n;                 /* files */
} ToolFileReport;

/* Prints which files differ between the file systems in part[i] of disk[i], of which only
 * @changed (of ToolRange) differs. Returns a status, having said what is wrong. */
int tool_ext_compare(TtIo *disk[2], const char *const name[2], const TtDiskPart *part,
                     const GArray *changed, ToolFileReport *r);

#endif
