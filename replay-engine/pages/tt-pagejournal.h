/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RUN/checkpoints: records of the operations on the checkpoints, in order.
 * docs/reference/page-store-format.rst is the authority; J-numbers are its rules. This
 * module reads and writes records; it does not carry them out.
 *
 * Context: one thread at a time. Blocks only in TtIo. Private to the page store.
 * Memory: one record, which the file has bytes for.
 */
#ifndef TT_PAGEJOURNAL_H
#define TT_PAGEJOURNAL_H

#include "pages/tt-page.h"
#include "tt-pagehead.h"

#define TT_F_REC_MAGIC      "TTVMREC\n"
#define TT_F_REC_BYTES      88u
#define TT_F_REC_BYTES_MAX  4096u
enum {
    TT_F_REC_LENGTH = 8,
    TT_F_REC_KIND = 12,
    TT_F_REC_SEQ = 16,
    TT_F_REC_ID = 24,
    TT_F_REC_FLAGS = 28,
    TT_F_REC_POS = 32,
    TT_F_REC_HOST_NS = 40,
    TT_F_REC_PAGES = 48,
    TT_F_REC_LIST_BYTES = 52,
    TT_F_REC_BLOB_BYTES = 56,
    TT_F_REC_LIST_SUM = 64,
    TT_F_REC_BLOB_SUM = 72,
    TT_F_REC_SUM = 80,
};
enum {
    TT_F_REC_ADD = 1,
    TT_F_REC_DELETE = 2,
    TT_F_REC_SET_FLAGS = 3,
};

/* One record, decoded or to be written. */
typedef struct TtPageRecord {
    uint32_t kind, id, flags;
    uint64_t pos, host_ns;
    uint32_t n_pages;
    const uint8_t *list;        /* until the next call */
    uint32_t list_bytes;
    const uint8_t *blob;        /* written only */
    uint32_t blob_bytes;
    /* Filled by reading, and by writing. */
    uint64_t offset, bytes;     /* of the whole record */
    uint64_t blob_offset, blob_sum;
} TtPageRecord;

typedef struct TtPageJournal TtPageJournal;

/* @io is borrowed. It is empty; a head is written. */
TtStatus tt_pagejournal_create(TtIo *io, const uint8_t uuid[16],
                               TtPageJournal **out, TtDiag *diag);
/* @last_id: the highest id that the head knows of. */
TtStatus tt_pagejournal_open(TtIo *io, const uint8_t uuid[16],
                             TtPageJournal **out, uint32_t *last_id,
                             TtDiag *diag);
void tt_pagejournal_free(TtPageJournal *j);

/* TT_END or TT_END_TORN (J1) at the end; the tail is then still there. */
TtStatus tt_pagejournal_next(TtPageJournal *j, TtPageRecord *rec,
                             TtDiag *diag);
/* The record read last is the first of the tail (J1). */
void tt_pagejournal_unread(TtPageJournal *j, const TtPageRecord *rec);
/* Cuts the tail off, so that there can be written. */
TtStatus tt_pagejournal_cut(TtPageJournal *j, TtDiag *diag);
uint64_t tt_pagejournal_torn_bytes(const TtPageJournal *j);
/* Is the tail what a killed writer leaves (TT_OK), or damage (TT_ERR_FORMAT, one
 * sentence)? TT_ERR_IO. */
TtStatus tt_pagejournal_tail(const TtPageJournal *j, TtDiag *diag);

/* Walks the list of @rec: *@n counts up from 0; *@version 0 is the zero page.
 * TT_END after the last page. */
typedef struct TtPageListCursor {
    const uint8_t *at, *end;
    uint32_t left;
    uint64_t page, version;
} TtPageListCursor;

void tt_pagelist_begin(TtPageListCursor *c, const TtPageRecord *rec);
TtStatus tt_pagelist_next(TtPageListCursor *c, uint64_t *page,
                          uint64_t *version);
/* Encoding: @buf has room for TT_PAGELIST_ITEM_MAX more bytes. */
#define TT_PAGELIST_ITEM_MAX    20u
uint8_t *tt_pagelist_put(TtPageListCursor *c, uint8_t *buf, uint64_t page,
                         uint64_t version);

/* Writes @rec; a failure changes nothing, unless tt_pagejournal_broken. */
TtStatus tt_pagejournal_append(TtPageJournal *j, TtPageRecord *rec,
                               TtDiag *diag);
bool tt_pagejournal_broken(const TtPageJournal *j);
/* Between begin and commit, appended records go into a new file. After a
 * failure of any of them the old file counts, as it was. */
TtStatus tt_pagejournal_rewrite_begin(TtPageJournal *j, uint32_t last_id,
                                      TtDiag *diag);
TtStatus tt_pagejournal_rewrite_commit(TtPageJournal *j, TtDiag *diag);
void tt_pagejournal_rewrite_abort(TtPageJournal *j);

/* Reads a blob and checks it. @to: room for @bytes. */
TtStatus tt_pagejournal_read_blob(TtPageJournal *j, uint64_t offset,
                                  uint32_t bytes, uint64_t sum, void *to,
                                  TtDiag *diag);
/* Length of the file in use. */
uint64_t tt_pagejournal_bytes(const TtPageJournal *j);

#endif
