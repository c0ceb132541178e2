/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writer of branch traces. Entries are encoded into one buffer; when it is full
 * it becomes a chunk: compressed, summed, appended.
 */
#include "tt-trace-format.h"

#include <glib.h>
#include <zstd.h>

#define LEVEL 1                 /* of zstd: the vCPU waits */

struct TtTraceWriter {
    TtIo *io;
    uint64_t seed, seq, n_branches, bytes, last_put;
    uint32_t raw, count;        /* of the chunk that is being filled */
    TtBranch last;              /* in it */
    bool is_finished;
    TtDiag failure;             /* status TT_OK: none */
    uint8_t *buf, *stored;
};

static TtStatus put_head(TtTraceWriter *w, const uint8_t uuid[16],
                         uint64_t from, TtDiag *diag)
{
    uint8_t h[TT_F_TRACE_BYTES] = { 0 };

    memcpy(h, TT_F_TRACE_MAGIC, 8);
    tt_put_le32(h + TT_F_TRACE_LENGTH, sizeof(h));
    tt_put_le64(h + TT_F_TRACE_FROM, from);
    memcpy(h + TT_F_TRACE_UUID, uuid, 16);
    tt_put_le64(h + TT_F_TRACE_SUM,
                tt_header_sum(h, sizeof(h), TT_F_TRACE_SUM, 0));
    w->bytes = sizeof(h);
    return w->io->ops->append(w->io, h, sizeof(h), diag);
}

TtStatus tt_trace_writer_new(TtIo *io, const uint8_t uuid[16], uint64_t from,
                             TtTraceWriter **out, TtDiag *diag)
{
    TtTraceWriter *w = g_new0(TtTraceWriter, 1);
    TtStatus st;

    w->io = io;
    w->seed = tt_get_le64(uuid);
    w->last_put = from;
    w->buf = g_malloc(TT_TRACE_CHUNK_MAX);
    w->stored = g_malloc(TT_F_CHUNK_STORED_MAX);
    g_assert(ZSTD_compressBound(TT_TRACE_CHUNK_MAX) <= TT_F_CHUNK_STORED_MAX);
    st = put_head(w, uuid, from, diag);
    *out = NULL;
    if (st != TT_OK) {
        tt_trace_writer_free(w);
        return st;
    }
    *out = w;
    return TT_OK;
}

static TtStatus append_chunk(TtTraceWriter *w, uint64_t to, uint32_t flags,
                             TtDiag *diag)
{
    uint8_t h[TT_F_CHUNK_BYTES] = { 0 };
    TtStatus st;
    size_t n;

    n = ZSTD_compress(w->stored, TT_F_CHUNK_STORED_MAX, w->buf, w->raw, LEVEL);
    g_assert(!ZSTD_isError(n));
    memcpy(h, TT_F_CHUNK_MAGIC, 8);
    tt_put_le32(h + TT_F_CHUNK_LENGTH, sizeof(h));
    tt_put_le32(h + TT_F_CHUNK_FLAGS, flags);
    tt_put_le64(h + TT_F_CHUNK_SEQ, w->seq++);
    tt_put_le32(h + TT_F_CHUNK_COUNT, w->count);
    tt_put_le32(h + TT_F_CHUNK_RAW, w->raw);
    tt_put_le32(h + TT_F_CHUNK_STORED, n);
    tt_put_le64(h + TT_F_CHUNK_TO, to);
    tt_put_le64(h + TT_F_CHUNK_BODY_SUM,
                XXH3_64bits_withSeed(w->stored, n, w->seed));
    tt_put_le64(h + TT_F_CHUNK_SUM, tt_header_sum(h, sizeof(h), TT_F_CHUNK_SUM,
                                                  w->seed));
    st = w->io->ops->append(w->io, h, sizeof(h), diag);
    if (st == TT_OK) {
        st = w->io->ops->append(w->io, w->stored, n, diag);
    }
    w->bytes += sizeof(h) + n;
    return st;
}

/* The buffer is empty afterwards, whatever came of it: after a failure nothing is
 * written any more, and the caller need not know. */
static void put_chunk(TtTraceWriter *w, uint64_t to, uint32_t flags)
{
    TtDiag diag = { 0 };

    if (!w->failure.status) {
        TtStatus st = append_chunk(w, to, flags, &diag);

        if (st != TT_OK) {
            w->failure = diag;
            w->failure.status = st;
        }
    }
    w->raw = w->count = 0;
    w->last = (TtBranch) { 0 };
}

void tt_trace_put(TtTraceWriter *w, const TtBranch *b)
{
    bool turns;
    uint8_t *p;

    g_assert(b->pos >= w->last_put && b->pos < TT_TRACE_POS_MAX &&
             b->cpu < TT_TRACE_CPUS_MAX && !w->is_finished);
    if (w->raw > TT_TRACE_CHUNK_MAX - TT_F_BRANCH_BYTES_MAX) {
        put_chunk(w, b->pos, 0);
    }
    p = w->buf + w->raw;
    turns = b->cpu != w->last.cpu;
    p = tt_put_varint(p, (b->pos - w->last.pos) << 2 | b->is_start << 1 | turns);
    if (turns) {
        *p++ = b->cpu;
    }
    p = tt_put_varint(p, tt_zigzag(b->pc - w->last.pc));
    w->raw = p - w->buf;
    w->last = *b;
    w->last_put = b->pos;
    w->count++;
    w->n_branches++;
}

TtStatus tt_trace_finish(TtTraceWriter *w, uint64_t to, TtDiag *diag)
{
    g_assert(to >= w->last_put && !w->is_finished);
    put_chunk(w, to, TT_F_CHUNK_LAST);
    w->is_finished = true;
    if (w->failure.status && diag) {
        *diag = w->failure;
    }
    return w->failure.status;
}

uint64_t tt_trace_count(const TtTraceWriter *w)
{
    return w->n_branches;
}

uint64_t tt_trace_bytes(const TtTraceWriter *w)
{
    return w->bytes;
}

void tt_trace_writer_free(TtTraceWriter *w)
{
    if (w) {
        tt_io_close(w->io);
        g_free(w->buf);
        g_free(w->stored);
        g_free(w);
    }
}
