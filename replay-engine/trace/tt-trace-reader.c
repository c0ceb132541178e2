/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reader of branch traces. Bytes may come from anybody: a length is compared with
 * its limit, and with the file, before it is used.
 */
#include "tt-trace-format.h"

#include <glib.h>
#include <inttypes.h>
#include <zstd.h>

typedef struct Chunk {
    uint32_t length, flags, count, raw, stored;
    uint64_t to, body_sum;
} Chunk;

struct TtTraceReader {
    TtIo *io;
    TtTraceInfo info;
    uint64_t seed;
    uint64_t first, n_chunks, seq;      /* offset of chunk 0; next to load */
    uint64_t at;                /* offset of the next chunk */
    uint64_t last_pos;
    uint32_t left;              /* entries of the loaded chunk */
    uint64_t to;                /* of the loaded chunk */
    TtBranch last;
    const uint8_t *p, *end;
    uint8_t *raw, *stored;
    TtDiag failure;             /* status TT_OK: none */
};

/* TT_END: the file is over before @len bytes. */
static TtStatus read_exactly(TtIo *io, uint64_t at, void *buf, size_t len,
                             TtDiag *diag)
{
    size_t got;
    TtStatus st = io->ops->read_at(io, at, buf, len, &got, diag);

    return st != TT_OK ? st : got < len ? TT_END : TT_OK;
}

static TtStatus read_head(TtTraceReader *r, TtDiag *diag)
{
    uint8_t h[TT_F_TRACE_BYTES_MAX];
    uint32_t len;
    TtStatus st = read_exactly(r->io, 0, h, TT_F_TRACE_BYTES, diag);

    if (st < 0) {
        return st;
    }
    if (st == TT_END || memcmp(h, TT_F_TRACE_MAGIC, 8)) {
        return tt_fail(diag, TT_ERR_FORMAT, "this is not a branch trace (tt trace makes "
                       "them)");
    }
    len = tt_get_le32(h + TT_F_TRACE_LENGTH);
    if (len < TT_F_TRACE_BYTES || len > sizeof(h)) {
        return tt_fail(diag, TT_ERR_FORMAT, "the header of the trace is damaged");
    }
    st = read_exactly(r->io, 0, h, len, diag);
    if (st < 0) {
        return st;
    }
    if (st == TT_END || tt_get_le64(h + TT_F_TRACE_SUM) !=
        tt_header_sum(h, len, TT_F_TRACE_SUM, 0)) {
        return tt_fail(diag, TT_ERR_FORMAT, "the header of the trace is damaged");
    }
    if (tt_get_le64(h + TT_F_TRACE_MUST_KNOW)) {
        return tt_fail(diag, TT_ERR_VERSION, "the trace was made by a newer "
                       "version: use that version");
    }
    memcpy(r->info.uuid, h + TT_F_TRACE_UUID, 16);
    r->info.from = r->info.to = tt_get_le64(h + TT_F_TRACE_FROM);
    r->seed = tt_get_le64(r->info.uuid);
    r->first = r->at = len;
    return r->info.from <= TT_TRACE_POS_MAX ? TT_OK :
        tt_fail(diag, TT_ERR_FORMAT, "the trace begins at an impossible "
                "position");
}

static bool is_plausible(const Chunk *c, uint64_t to_before)
{
    return c->raw <= TT_TRACE_CHUNK_MAX && c->count <= c->raw / 2 &&
        c->stored <= TT_F_CHUNK_STORED_MAX && c->to >= to_before &&
        c->to <= TT_TRACE_POS_MAX;
}

/* TT_END: no whole header is at @at. */
static TtStatus read_chunk_header(TtTraceReader *r, uint64_t at, uint64_t seq,
                                  uint64_t to_before, Chunk *c, TtDiag *diag)
{
    uint8_t h[TT_F_CHUNK_BYTES_MAX];
    TtStatus st = read_exactly(r->io, at, h, TT_F_CHUNK_BYTES, diag);

    if (st != TT_OK) {
        return st;
    }
    c->length = tt_get_le32(h + TT_F_CHUNK_LENGTH);
    if (memcmp(h, TT_F_CHUNK_MAGIC, 8) || c->length < TT_F_CHUNK_BYTES ||
        c->length > sizeof(h)) {
        return tt_fail(diag, TT_ERR_FORMAT, "chunk %" PRIu64 " of the trace is "
                       "damaged", seq);
    }
    st = read_exactly(r->io, at, h, c->length, diag);
    if (st != TT_OK) {
        return st;
    }
    c->flags = tt_get_le32(h + TT_F_CHUNK_FLAGS);
    c->count = tt_get_le32(h + TT_F_CHUNK_COUNT);
    c->raw = tt_get_le32(h + TT_F_CHUNK_RAW);
    c->stored = tt_get_le32(h + TT_F_CHUNK_STORED);
    c->to = tt_get_le64(h + TT_F_CHUNK_TO);
    c->body_sum = tt_get_le64(h + TT_F_CHUNK_BODY_SUM);
    if (tt_get_le64(h + TT_F_CHUNK_SUM) !=
        tt_header_sum(h, c->length, TT_F_CHUNK_SUM, r->seed) ||
        tt_get_le64(h + TT_F_CHUNK_SEQ) != seq || !is_plausible(c, to_before)) {
        return tt_fail(diag, TT_ERR_FORMAT, "chunk %" PRIu64 " of the trace is "
                       "damaged", seq);
    }
    return c->flags & TT_F_CHUNK_MUST_KNOW ?
        tt_fail(diag, TT_ERR_VERSION, "the trace was made by a newer version: "
                "use that version") : TT_OK;
}

/* Goes from header to header, up to the last chunk or to where it was cut off. */
static TtStatus scan(TtTraceReader *r, TtDiag *diag)
{
    uint64_t at = r->first, bytes;
    TtStatus st = r->io->ops->size(r->io, &bytes, diag);
    Chunk c = { 0 };

    if (st != TT_OK) {
        return st;
    }
    while (!(c.flags & TT_F_CHUNK_LAST)) {
        if (r->n_chunks >= TT_TRACE_CHUNKS_MAX) {
            return tt_fail(diag, TT_ERR_LIMIT, "the trace has too many chunks");
        }
        st = read_chunk_header(r, at, r->n_chunks, r->info.to, &c, diag);
        if (st < 0) {
            return st;
        }
        if (st == TT_END || c.stored > bytes - at - c.length) {
            r->info.is_torn = true;
            return TT_OK;
        }
        at += c.length + c.stored;
        r->n_chunks++;
        r->info.to = c.to;
        r->info.n_branches += c.count;
    }
    return at == bytes ? TT_OK :
        tt_fail(diag, TT_ERR_FORMAT, "there are bytes after the end of the trace");
}

TtStatus tt_trace_open(TtIo *io, TtTraceReader **out, TtDiag *diag)
{
    TtTraceReader *r = g_new0(TtTraceReader, 1);
    TtStatus st;

    r->io = io;
    *out = NULL;
    st = read_head(r, diag);
    if (st == TT_OK) {
        st = scan(r, diag);
    }
    if (st == TT_OK) {
        r->raw = g_try_malloc(TT_TRACE_CHUNK_MAX);
        r->stored = g_try_malloc(TT_F_CHUNK_STORED_MAX);
        if (!r->raw || !r->stored) {
            st = tt_fail(diag, TT_ERR_NOMEM, "not enough memory to read the "
                         "trace");
        }
    }
    if (st != TT_OK) {
        tt_trace_reader_free(r);
        return st;
    }
    r->to = r->last_pos = r->info.from;
    *out = r;
    return TT_OK;
}

const TtTraceInfo *tt_trace_info(const TtTraceReader *r)
{
    return &r->info;
}

static TtStatus load_chunk(TtTraceReader *r, TtDiag *diag)
{
    Chunk c;
    TtStatus st = read_chunk_header(r, r->at, r->seq, r->to, &c, diag);

    if (st == TT_OK) {
        st = read_exactly(r->io, r->at + c.length, r->stored, c.stored, diag);
    }
    if (st < 0) {
        return st;
    }
    if (st == TT_END ||
        XXH3_64bits_withSeed(r->stored, c.stored, r->seed) != c.body_sum ||
        ZSTD_decompress(r->raw, TT_TRACE_CHUNK_MAX, r->stored, c.stored) !=
        c.raw) {
        return tt_fail(diag, TT_ERR_FORMAT, "chunk %" PRIu64 " of the trace is "
                       "damaged", r->seq);
    }
    r->at += c.length + c.stored;
    r->seq++;
    r->left = c.count;
    r->to = c.to;
    r->p = r->raw;
    r->end = r->raw + c.raw;
    r->last = (TtBranch) { 0 };
    return TT_OK;
}

static bool decode(TtTraceReader *r)
{
    uint64_t step, move;
    const uint8_t *p = tt_get_varint(r->p, r->end, &step);

    if (p && (step & 1)) {
        if (p == r->end || *p >= TT_TRACE_CPUS_MAX) {
            return false;
        }
        r->last.cpu = *p++;
    }
    p = p ? tt_get_varint(p, r->end, &move) : NULL;
    if (!p) {
        return false;
    }
    r->last.is_start = step & 2;
    r->last.pos += step >> 2;
    r->last.pc += tt_unzigzag(move);
    r->p = p;
    return r->last.pos >= r->last_pos && r->last.pos <= r->to;
}

static TtStatus next(TtTraceReader *r, TtBranch *b, TtDiag *diag)
{
    while (!r->left) {
        TtStatus st;

        if (r->p != r->end) {
            return tt_fail(diag, TT_ERR_FORMAT, "chunk %" PRIu64 " of the trace "
                           "is longer than its entries", r->seq - 1);
        }
        if (r->seq == r->n_chunks) {
            return TT_END;
        }
        st = load_chunk(r, diag);
        if (st != TT_OK) {
            return st;
        }
    }
    if (!decode(r)) {
        return tt_fail(diag, TT_ERR_FORMAT, "an entry in chunk %" PRIu64 " of "
                       "the trace is invalid", r->seq - 1);
    }
    r->left--;
    r->last_pos = r->last.pos;
    *b = r->last;
    return TT_OK;
}

TtStatus tt_trace_next(TtTraceReader *r, TtBranch *b, TtDiag *diag)
{
    TtStatus st;

    if (!r->failure.status) {
        st = next(r, b, &r->failure);
        if (st >= 0) {
            return st;
        }
        r->failure.status = st;
    }
    if (diag) {
        *diag = r->failure;
    }
    return r->failure.status;
}

void tt_trace_reader_free(TtTraceReader *r)
{
    if (r) {
        tt_io_close(r->io);
        g_free(r->raw);
        g_free(r->stored);
        g_free(r);
    }
}
