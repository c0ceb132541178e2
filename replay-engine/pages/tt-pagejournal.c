/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RUN/checkpoints: reading, writing and rewriting the journal.
 *
 *   file     head | record 0 | record 1 | ...
 *   record   header | list of pages | blob
 */
#include "tt-pagejournal.h"
#include "io/tt-bytes.h"
#include "tt-pagetail.h"

#include <glib.h>
#include <inttypes.h>

#define CHUNK_BYTES     65536u

struct TtPageJournal {
    TtIo *io;
    uint8_t uuid[16];
    uint64_t seed;
    uint64_t end, seq;          /* where the next record goes, its number */
    uint64_t size;              /* of the file, while reading */
    bool is_broken;
    uint8_t *list;              /* of the record read last */
    size_t cap_list;
    /* A rewrite: the new file, and what to go back to. */
    TtIo *fresh;
    uint64_t old_end, old_seq;
    bool fresh_is_broken;
};

/* ---- lists ---- */

void tt_pagelist_begin(TtPageListCursor *c, const TtPageRecord *rec)
{
    *c = (TtPageListCursor) {
        .at = rec->list,
        .end = rec->list_bytes ? rec->list + rec->list_bytes : rec->list,
        .left = rec->n_pages, .page = UINT64_MAX,
    };
}

TtStatus tt_pagelist_next(TtPageListCursor *c, uint64_t *page,
                          uint64_t *version)
{
    uint64_t gap, code;

    if (!c->left) {
        return c->at == c->end ? TT_END : TT_ERR_FORMAT;
    }
    c->left--;
    c->at = tt_get_varint(c->at, c->end, &gap);
    if (c->at) {
        c->at = tt_get_varint(c->at, c->end, &code);
    }
    if (!c->at || gap >= TT_PAGES_MAX) {
        return TT_ERR_FORMAT;
    }
    c->page += gap + 1;
    if (c->page >= TT_PAGES_MAX) {
        return TT_ERR_FORMAT;
    }
    *page = c->page;
    *version = 0;
    if (code) {
        c->version += tt_unzigzag(code - 1) + 1;
        if (!c->version) {
            return TT_ERR_FORMAT;
        }
        *version = c->version;
    }
    return TT_OK;
}

uint8_t *tt_pagelist_put(TtPageListCursor *c, uint8_t *buf, uint64_t page,
                         uint64_t version)
{
    buf = tt_put_varint(buf, page - c->page - 1);
    c->page = page;
    if (!version) {
        *buf++ = 0;
        return buf;
    }
    buf = tt_put_varint(buf, tt_zigzag(version - c->version - 1) + 1);
    c->version = version;
    return buf;
}

/* ---- reading ---- */

/* The header of the record at j->end. TT_END_TORN: there is none. */
static TtStatus read_header(TtPageJournal *j, TtPageRecord *rec,
                            uint64_t *list_sum, TtDiag *diag)
{
    uint8_t h[TT_F_REC_BYTES_MAX];
    uint64_t left = j->size - j->end;
    uint32_t length;
    size_t got;
    TtStatus st = j->io->ops->read_at(j->io, j->end, h, TT_F_REC_BYTES, &got,
                                      diag);

    if (st != TT_OK) {
        return st;
    }
    if (got < TT_F_REC_BYTES || memcmp(h, TT_F_REC_MAGIC, 8)) {
        return TT_END_TORN;
    }
    length = tt_get_le32(h + TT_F_REC_LENGTH);
    if (length < TT_F_REC_BYTES || length > TT_F_REC_BYTES_MAX) {
        return TT_END_TORN;
    }
    if (length > TT_F_REC_BYTES) {
        st = j->io->ops->read_at(j->io, j->end, h, length, &got, diag);
        if (st != TT_OK) {
            return st;
        }
    }
    if (got < length || tt_get_le64(h + TT_F_REC_SUM) !=
                        tt_header_sum(h, length, TT_F_REC_SUM, j->seed)) {
        return TT_END_TORN;
    }
    *rec = (TtPageRecord) {
        .kind = tt_get_le32(h + TT_F_REC_KIND),
        .id = tt_get_le32(h + TT_F_REC_ID),
        .flags = tt_get_le32(h + TT_F_REC_FLAGS),
        .pos = tt_get_le64(h + TT_F_REC_POS),
        .host_ns = tt_get_le64(h + TT_F_REC_HOST_NS),
        .n_pages = tt_get_le32(h + TT_F_REC_PAGES),
        .list_bytes = tt_get_le32(h + TT_F_REC_LIST_BYTES),
        .blob_bytes = tt_get_le32(h + TT_F_REC_BLOB_BYTES),
        .blob_sum = tt_get_le64(h + TT_F_REC_BLOB_SUM),
        .offset = j->end,
    };
    *list_sum = tt_get_le64(h + TT_F_REC_LIST_SUM);
    rec->bytes = (uint64_t)length + rec->list_bytes + rec->blob_bytes;
    rec->blob_offset = j->end + length + rec->list_bytes;
    if (rec->bytes > left || tt_get_le64(h + TT_F_REC_SEQ) != j->seq) {
        return TT_END_TORN;
    }
    return TT_OK;
}

/* Damage that no cut makes: the sums are right, the content is not. */
static TtStatus check_header(const TtPageRecord *rec, TtDiag *diag)
{
    if (rec->kind < TT_F_REC_ADD || rec->kind > TT_F_REC_SET_FLAGS) {
        return tt_fail(diag, TT_ERR_VERSION, "checkpoints: the record at byte "
                       "%" PRIu64 " was made by a newer version: use that version",
                       rec->offset);
    }
    if (rec->blob_bytes > TT_PAGESTORE_BLOB_MAX ||
        rec->n_pages > rec->list_bytes / 2 ||
        (rec->kind != TT_F_REC_ADD && (rec->list_bytes || rec->blob_bytes))) {
        return tt_fail(diag, TT_ERR_FORMAT, "checkpoints: the record at byte "
                       "%" PRIu64 " has wrong lengths", rec->offset);
    }
    return TT_OK;
}

static TtStatus read_list(TtPageJournal *j, TtPageRecord *rec, uint64_t sum,
                          TtDiag *diag)
{
    uint64_t offset = rec->blob_offset - rec->list_bytes;
    size_t got;
    TtStatus st;

    if (rec->list_bytes > j->cap_list) {
        uint8_t *bigger = g_try_realloc(j->list, rec->list_bytes);

        if (!bigger) {
            return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for a list of "
                           "%u bytes", rec->list_bytes);
        }
        j->list = bigger;
        j->cap_list = rec->list_bytes;
    }
    rec->list = j->list;
    if (!rec->list_bytes) {
        return TT_OK;
    }
    st = j->io->ops->read_at(j->io, offset, j->list, rec->list_bytes, &got,
                             diag);
    if (st != TT_OK) {
        return st;
    }
    return got == rec->list_bytes &&
           XXH3_64bits_withSeed(j->list, got, j->seed) == sum ? TT_OK
                                                              : TT_END_TORN;
}

/* TT_END_TORN: the sum is wrong. @to may be NULL. */
static TtStatus sum_blob(TtPageJournal *j, uint64_t offset, uint32_t bytes,
                         uint64_t sum, uint8_t *to, TtDiag *diag)
{
    XXH3_state_t *state = XXH3_createState();
    g_autofree uint8_t *chunk = to ? NULL : g_malloc(CHUNK_BYTES);
    TtStatus st = TT_OK;

    XXH3_64bits_reset_withSeed(state, j->seed);
    for (uint32_t done = 0; st == TT_OK && done < bytes; ) {
        size_t n = MIN(bytes - done, CHUNK_BYTES), got;
        uint8_t *p = to ? to + done : chunk;

        st = j->io->ops->read_at(j->io, offset + done, p, n, &got, diag);
        if (st == TT_OK && got < n) {
            st = TT_END_TORN;
        }
        if (st == TT_OK) {
            XXH3_64bits_update(state, p, n);
            done += n;
        }
    }
    if (st == TT_OK && bytes && XXH3_64bits_digest(state) != sum) {
        st = TT_END_TORN;
    }
    XXH3_freeState(state);
    return st;
}

TtStatus tt_pagejournal_next(TtPageJournal *j, TtPageRecord *rec, TtDiag *diag)
{
    uint64_t list_sum;
    TtStatus st;

    if (j->end >= j->size) {
        return TT_END;
    }
    st = read_header(j, rec, &list_sum, diag);
    if (st == TT_OK) {
        st = check_header(rec, diag);
    }
    if (st == TT_OK) {
        st = read_list(j, rec, list_sum, diag);
    }
    if (st == TT_OK) {
        st = sum_blob(j, rec->blob_offset, rec->blob_bytes, rec->blob_sum,
                      NULL, diag);
    }
    if (st == TT_OK) {
        j->end += rec->bytes;
        j->seq++;
    }
    return st;
}

void tt_pagejournal_unread(TtPageJournal *j, const TtPageRecord *rec)
{
    j->end = rec->offset;
    j->seq--;
}

uint64_t tt_pagejournal_torn_bytes(const TtPageJournal *j)
{
    return j->size > j->end ? j->size - j->end : 0;
}

static uint64_t record_bytes(const uint8_t *h)
{
    return (uint64_t)tt_get_le32(h + TT_F_REC_LENGTH) +
        tt_get_le32(h + TT_F_REC_LIST_BYTES) +
        tt_get_le32(h + TT_F_REC_BLOB_BYTES);
}

TtStatus tt_pagejournal_tail(const TtPageJournal *j, TtDiag *diag)
{
    const TtPageTail how = {
        .name = "checkpoints", .magic = TT_F_REC_MAGIC,
        .header_bytes = TT_F_REC_BYTES, .header_bytes_max = TT_F_REC_BYTES_MAX,
        .length_at = TT_F_REC_LENGTH, .sum_at = TT_F_REC_SUM,
        .seed = j->seed, .part_bytes = record_bytes,
    };

    return tt_page_tail(j->io, j->end, j->size, &how, diag);
}

TtStatus tt_pagejournal_cut(TtPageJournal *j, TtDiag *diag)
{
    TtStatus st;

    if (!tt_pagejournal_torn_bytes(j)) {
        return TT_OK;
    }
    if (!j->io->ops->truncate) {
        return tt_fail(diag, TT_ERR_INVALID, "checkpoints: the file cannot be "
                       "truncated where its writer was killed");
    }
    st = j->io->ops->truncate(j->io, j->end, diag);
    if (st == TT_OK) {
        j->size = j->end;
    }
    return st;
}

TtStatus tt_pagejournal_read_blob(TtPageJournal *j, uint64_t offset,
                                  uint32_t bytes, uint64_t sum, void *to,
                                  TtDiag *diag)
{
    TtStatus st = sum_blob(j, offset, bytes, sum, to, diag);

    if (st == TT_END_TORN) {
        st = tt_fail(diag, TT_ERR_FORMAT, "checkpoints: the state at byte %"
                     PRIu64 " is damaged: its checksum is wrong", offset);
        if (diag) {
            diag->offset = offset;
        }
    }
    return st;
}

/* ---- writing ---- */

static void fill_header(const TtPageJournal *j, const TtPageRecord *rec,
                        uint8_t *h)
{
    memset(h, 0, TT_F_REC_BYTES);
    memcpy(h, TT_F_REC_MAGIC, 8);
    tt_put_le32(h + TT_F_REC_LENGTH, TT_F_REC_BYTES);
    tt_put_le32(h + TT_F_REC_KIND, rec->kind);
    tt_put_le64(h + TT_F_REC_SEQ, j->seq);
    tt_put_le32(h + TT_F_REC_ID, rec->id);
    tt_put_le32(h + TT_F_REC_FLAGS, rec->flags);
    tt_put_le64(h + TT_F_REC_POS, rec->pos);
    tt_put_le64(h + TT_F_REC_HOST_NS, rec->host_ns);
    tt_put_le32(h + TT_F_REC_PAGES, rec->n_pages);
    tt_put_le32(h + TT_F_REC_LIST_BYTES, rec->list_bytes);
    tt_put_le32(h + TT_F_REC_BLOB_BYTES, rec->blob_bytes);
    tt_put_le64(h + TT_F_REC_LIST_SUM, rec->list_bytes ?
                XXH3_64bits_withSeed(rec->list, rec->list_bytes, j->seed) :
                XXH3_64bits_withSeed("", 0, j->seed));
    tt_put_le64(h + TT_F_REC_BLOB_SUM, rec->blob_sum);
    tt_put_le64(h + TT_F_REC_SUM, tt_header_sum(h, TT_F_REC_BYTES,
                                                TT_F_REC_SUM, j->seed));
}

TtStatus tt_pagejournal_append(TtPageJournal *j, TtPageRecord *rec,
                               TtDiag *diag)
{
    TtIo *io = j->fresh ? j->fresh : j->io;
    bool *is_broken = j->fresh ? &j->fresh_is_broken : &j->is_broken;
    g_autofree uint8_t *buf = NULL;
    TtStatus st;

    if (*is_broken) {
        return tt_fail(diag, TT_ERR_IO, "checkpoints: an earlier failure left "
                       "the file in an unknown state");
    }
    rec->bytes = (uint64_t)TT_F_REC_BYTES + rec->list_bytes + rec->blob_bytes;
    buf = g_try_malloc(rec->bytes);
    if (!buf) {
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory to write a "
                       "checkpoint of %" PRIu64 " bytes", rec->bytes);
    }
    rec->offset = j->end;
    rec->blob_offset = j->end + TT_F_REC_BYTES + rec->list_bytes;
    rec->blob_sum = XXH3_64bits_withSeed(rec->blob_bytes ? rec->blob
                                                         : (uint8_t *)"",
                                         rec->blob_bytes, j->seed);
    fill_header(j, rec, buf);
    if (rec->list_bytes) {
        memcpy(buf + TT_F_REC_BYTES, rec->list, rec->list_bytes);
    }
    if (rec->blob_bytes) {
        memcpy(buf + TT_F_REC_BYTES + rec->list_bytes, rec->blob,
               rec->blob_bytes);
    }
    st = tt_page_append(io, j->end, buf, rec->bytes, is_broken, diag);
    if (st == TT_OK) {
        j->end += rec->bytes;
        j->seq++;
    }
    return st;
}

bool tt_pagejournal_broken(const TtPageJournal *j)
{
    return j->is_broken;
}

TtStatus tt_pagejournal_rewrite_begin(TtPageJournal *j, uint32_t last_id,
                                      TtDiag *diag)
{
    TtStatus st;

    g_assert(!j->fresh);
    if (!j->io->ops->replace_begin) {
        return tt_fail(diag, TT_ERR_INVALID,
                       "checkpoints: the file cannot be replaced");
    }
    st = j->io->ops->replace_begin(j->io, &j->fresh, diag);
    if (st != TT_OK) {
        j->fresh = NULL;
        return st;
    }
    j->old_end = j->end;
    j->old_seq = j->seq;
    j->end = TT_F_PHEAD_BYTES;
    j->seq = 0;
    j->fresh_is_broken = false;
    st = tt_page_head_write(j->fresh, TT_F_CHECKPOINTS_MAGIC, j->uuid, last_id,
                            diag);
    if (st != TT_OK) {
        tt_pagejournal_rewrite_abort(j);
    }
    return st;
}

void tt_pagejournal_rewrite_abort(TtPageJournal *j)
{
    tt_io_close(j->fresh);
    j->fresh = NULL;
    j->end = j->old_end;
    j->seq = j->old_seq;
}

TtStatus tt_pagejournal_rewrite_commit(TtPageJournal *j, TtDiag *diag)
{
    TtStatus st = j->io->ops->replace_commit(j->io, j->fresh, diag);

    j->fresh = NULL;
    if (st == TT_OK) {
        j->is_broken = false;           /* the broken one is gone */
    } else {
        j->end = j->old_end;
        j->seq = j->old_seq;
    }
    return st;
}

uint64_t tt_pagejournal_bytes(const TtPageJournal *j)
{
    return j->end;
}

/* ---- life ---- */

static TtPageJournal *journal_new(TtIo *io, const uint8_t uuid[16])
{
    TtPageJournal *j = g_new0(TtPageJournal, 1);

    j->io = io;
    memcpy(j->uuid, uuid, 16);
    j->seed = tt_page_seed(uuid);
    j->end = TT_F_PHEAD_BYTES;
    return j;
}

TtStatus tt_pagejournal_create(TtIo *io, const uint8_t uuid[16],
                               TtPageJournal **out, TtDiag *diag)
{
    TtStatus st = tt_page_head_write(io, TT_F_CHECKPOINTS_MAGIC, uuid, 0,
                                     diag);

    *out = st == TT_OK ? journal_new(io, uuid) : NULL;
    return st;
}

TtStatus tt_pagejournal_open(TtIo *io, const uint8_t uuid[16],
                             TtPageJournal **out, uint32_t *last_id,
                             TtDiag *diag)
{
    uint32_t length;
    uint64_t size = 0;
    TtStatus st = tt_page_head_read(io, "checkpoints", TT_F_CHECKPOINTS_MAGIC,
                                    uuid, &length, last_id, diag);

    *out = NULL;
    if (st == TT_OK) {
        st = io->ops->size(io, &size, diag);
    }
    if (st == TT_OK) {
        *out = journal_new(io, uuid);
        (*out)->end = length;
        (*out)->size = size;
    }
    return st;
}

void tt_pagejournal_free(TtPageJournal *j)
{
    if (j) {
        if (j->fresh) {
            tt_pagejournal_rewrite_abort(j);
        }
        g_free(j->list);
        g_free(j);
    }
}
