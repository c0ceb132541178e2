/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run as one file: its files one after the other, each with its checksum. Format:
 * docs/reference/pack-format.rst. The content of a member is not examined here; a
 * reader accepts only names that a run has, so that unpacking writes nowhere else.
 *
 * Context: one thread at a time. Blocks only in TtIo. Memory: 1 MiB.
 */
#ifndef TT_PACK_H
#define TT_PACK_H

#include "io/tt-base.h"
#include "io/tt-io.h"

#define TT_PACK_DEPTH_MAX   64      /* parents of parents */
#define TT_PACK_NAME_MAX    (TT_PACK_DEPTH_MAX * 7 + 16)
#define TT_PACK_MEMBERS_MAX (5 * (TT_PACK_DEPTH_MAX + 1))

/* "log", "parent/pages", ...: "parent/" any number of times up to the limit, then
 * manifest, log, pages, checkpoints or marks. */
bool tt_pack_name_is_known(const char *name);

/* ---- writing ---- */
typedef struct TtPackWriter TtPackWriter;

/* Writes the head to @io, which is empty, and the writer's from now on, also on
 * failure. */
TtStatus tt_pack_create(TtIo *io, const uint8_t uuid[16], TtPackWriter **out,
                        TtDiag *diag);
/* Adds the first @bytes of @from. TT_ERR_FORMAT: @from is shorter. After a
 * failure the pack is of no use. */
TtStatus tt_pack_add(TtPackWriter *w, const char *name, TtIo *from,
                     uint64_t bytes, TtDiag *diag);
/* Without this the pack counts as cut off. Flushes it to disk. */
TtStatus tt_pack_end(TtPackWriter *w, TtDiag *diag);
void tt_pack_writer_free(TtPackWriter *w);

/* ---- reading ---- */
typedef struct TtPackReader TtPackReader;

typedef struct TtPackMember {
    char name[TT_PACK_NAME_MAX + 1];
    uint64_t bytes;
    uint64_t offset;            /* of the data in the pack */
} TtPackMember;

/* @io is the reader's from now on, also on failure. TT_ERR_FORMAT, _VERSION,
 * _IO. */
TtStatus tt_pack_open(TtIo *io, TtPackReader **out, TtDiag *diag);
const uint8_t *tt_pack_uuid(const TtPackReader *r);
/* TT_OK; TT_END after the last; TT_ERR_FORMAT for damage and for a pack that was
 * cut off, _LIMIT, _IO. */
TtStatus tt_pack_next(TtPackReader *r, TtPackMember *m, TtDiag *diag);
/* Appends the data of @m, which tt_pack_next gave last, to @to, and checks them;
 * @to NULL: checks only. TT_ERR_FORMAT: they are damaged; @to has them. */
TtStatus tt_pack_copy(TtPackReader *r, const TtPackMember *m, TtIo *to,
                      TtDiag *diag);
void tt_pack_reader_free(TtPackReader *r);

#endif
