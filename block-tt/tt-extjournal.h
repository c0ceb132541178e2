/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The journal of an ext3 or ext4 file system, read only. A version of a disk whose guest
 * was running is a disk after a power cut: the last changes are in the journal and not
 * yet at their places. This says which blocks have a newer copy there, as mounting would
 * put them back; it writes nothing.
 *
 * Context: any thread, one at a time. Blocks in TtIo::read_at only, and keeps no TtIo.
 */
#ifndef TT_EXTJOURNAL_H
#define TT_EXTJOURNAL_H

#include "io/tt-io.h"

typedef struct TtExtJournal TtExtJournal;

/*
 * tt_extjournal_open: read the journal
 * @journal: the bytes of the journal, from its superblock on
 * @block_bytes: of the file system, 1024 to 65536
 * TT_ERR_FORMAT: it is not one, or of another block size; TT_ERR_VERSION: of a kind that
 * is not known here; TT_ERR_IO. Whatever a transaction without its end says is ignored.
 * Cost: reads the used part of the journal; memory for each block named there.
 */
TtStatus tt_extjournal_open(TtIo *journal, uint32_t block_bytes, TtExtJournal **out,
                            TtDiag *diag);
void tt_extjournal_free(TtExtJournal *j);       /* NULL is fine */
/* Transactions that were not yet at their places, and blocks in them. */
uint32_t tt_extjournal_transactions(const TtExtJournal *j);
uint32_t tt_extjournal_blocks(const TtExtJournal *j);
/* Are there fast commits of ext4 after them? They change the file system further, and are
 * not read here. */
bool tt_extjournal_has_fast(const TtExtJournal *j);
/* Has @block of the file system a newer copy? Then @at is its block in the journal; if
 * @is_escaped the first four bytes are the journal's magic, and stand there as zeros. */
bool tt_extjournal_find(const TtExtJournal *j, uint64_t block, uint32_t *at,
                        bool *is_escaped);
#define TT_EXTJOURNAL_MAGIC "\xc0\x3b\x39\x98"

#endif
