/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file in memory that knows what has reached its disk: a TtIo to read, and to write
 * anywhere. For tests of what is left after a cut. Never fails; bytes never written are
 * zeros.
 */
#ifndef BLOCKMAP_FILE_H
#define BLOCKMAP_FILE_H

#include "io/tt-io.h"

TtIo *cut_file_new(void);
/* The first @part bytes of a write that did not end. */
void cut_file_write_part(TtIo *io, uint64_t offset, const void *buf, size_t len,
                         size_t part);
void cut_file_punch(TtIo *io, uint64_t offset, uint64_t len);
/* The power is gone: of each write since the last sync, @keep says how many of its
 * bytes are there. What was there before is there else; the file is as long as it must
 * be. */
typedef size_t (*CutKeep)(void *opaque, size_t len);
void cut_file_power(TtIo *io, CutKeep keep, void *opaque);

#endif
