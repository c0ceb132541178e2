/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writer: seals segments into the file, from the writer thread.
 *
 * The events of a segment are small and compress ten to one; the payload (disk
 * and network data, kernel images) is large and mostly does not. So a few
 * samples of the payload decide whether a compressor runs over it at all:
 * incompressible payload then costs a checksum and a write (bench-log).
 *
 * A segment goes out in two appends, in file order: header with events, then
 * the payload. Killed in between, the file ends in a torn tail (R7 b).
 */
#include "tt-log-format.h"

#include <assert.h>
#include <glib.h>
#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* Of a boot (3 MB of events): level 3 takes 10 ms for 676 kB, level 6 23 ms for
 * 657 kB, level 9 42 ms for 652 kB (2026-11). */
#define EVENT_LEVEL     6
#define PAYLOAD_LEVEL   1

/* Samples: 8 of 2 KiB, evenly spread; payload that is not larger than this is
 * simply tried. Compression must save an eighth of them. */
#define SAMPLES         8
#define SAMPLE_BYTES    2048

struct TtLogWriter {
    TtIo *io;
    ZSTD_CCtx *cctx;
    uint8_t *head;              /* segment header, then stored events */
    uint8_t *pl;                /* compressed payload */
    size_t pl_room;
    uint64_t seed;
    uint64_t bytes;
    uint8_t uuid[16];
    uint64_t part_seq;          /* number of the part's first segment */
    uint64_t seq, n_events, pos;    /* what the next segment must start with */
    bool closed;                /* the last segment is written */
    TtStatus poison;
    TtDiag first_failure;
};

static TtStatus poison(TtLogWriter *w, const TtDiag *why, TtDiag *diag)
{
    w->poison = why->status;
    w->first_failure = *why;
    if (diag) {
        *diag = *why;
    }
    return why->status;
}

static TtStatus put(TtLogWriter *w, const void *bytes, size_t len,
                    TtDiag *diag)
{
    TtDiag why;

    if (len && w->io->ops->append(w->io, bytes, len, &why) != TT_OK) {
        why.offset = w->bytes;
        return poison(w, &why, diag);
    }
    w->bytes += len;
    return TT_OK;
}

static TtStatus put_head(TtLogWriter *w, bool is_part, TtDiag *diag)
{
    uint8_t head[TT_F_HEAD_PART_BYTES] = { 0 };
    uint32_t len = is_part ? TT_F_HEAD_PART_BYTES : TT_F_HEAD_BYTES;

    memcpy(head, TT_F_HEAD_MAGIC, 8);
    tt_put_le32(head + TT_F_HEAD_LENGTH, len);
    memcpy(head + TT_F_HEAD_UUID, w->uuid, 16);
    if (is_part) {                                          /* R11 */
        tt_put_le64(head + TT_F_HEAD_MUST_KNOW, TT_F_HEAD_PART);
        tt_put_le64(head + TT_F_HEAD_FIRST_SEG, w->seq);
        tt_put_le64(head + TT_F_HEAD_FIRST_EVENT, w->n_events);
        tt_put_le64(head + TT_F_HEAD_FIRST_POS, w->pos);
    }
    tt_put_le64(head + TT_F_HEAD_SUM,
                tt_header_sum(head, len, TT_F_HEAD_SUM, 0));
    return put(w, head, len, diag);
}

static TtStatus cut(TtLogWriter *w, uint64_t bytes, TtDiag *diag)
{
    uint64_t size;
    TtStatus s = w->io->ops->size(w->io, &size, diag);

    w->bytes = bytes;
    if (s == TT_OK && size < bytes) {
        return tt_fail(diag, TT_ERR_FORMAT, "the log is shorter than it was");
    }
    return s == TT_OK ? w->io->ops->truncate(w->io, bytes, diag) : s;
}

/* @at: of a part; NULL: the log is one file. @bytes: not 0: it goes on there. */
static TtStatus writer_new(TtIo *io, const uint8_t uuid[16],
                           const TtLogPlace *at, uint64_t bytes, TtLogWriter **out,
                           TtDiag *diag)
{
    TtLogWriter *w = g_new0(TtLogWriter, 1);
    TtStatus status;

    *out = NULL;
    w->io = io;
    w->seed = tt_log_seed(uuid);
    memcpy(w->uuid, uuid, 16);
    if (at) {
        w->seq = w->part_seq = at->segment;
        w->n_events = at->event;
        w->pos = at->pos;
    }
    w->cctx = ZSTD_createCCtx();
    w->head = g_try_malloc(TT_F_SEG_BYTES + TT_SEG_EVENTS_MAX);
    w->pl_room = TT_SEG_PAYLOAD_MAX;
    w->pl = g_try_malloc(w->pl_room);
    if (!w->cctx || !w->head || !w->pl) {
        status = tt_fail(diag, TT_ERR_NOMEM,
                         "not enough memory to write the log");
    } else {
        status = bytes ? cut(w, bytes, diag) : put_head(w, at, diag);
    }
    if (status != TT_OK) {
        tt_log_writer_free(w);
        return status;
    }
    *out = w;
    return TT_OK;
}

TtStatus tt_log_writer_new(TtIo *io, const uint8_t uuid[16],
                           TtLogWriter **out, TtDiag *diag)
{
    return writer_new(io, uuid, NULL, 0, out, diag);
}

TtStatus tt_log_writer_go_on(TtIo *io, const uint8_t uuid[16], const TtLogPlace *at,
                             uint64_t bytes, TtLogWriter **out, TtDiag *diag)
{
    assert(bytes >= TT_F_HEAD_BYTES);
    return writer_new(io, uuid, at, bytes, out, diag);
}

TtStatus tt_log_writer_new_part(TtIo *io, const uint8_t uuid[16],
                                const TtLogPlace *at, TtLogWriter **out,
                                TtDiag *diag)
{
    return writer_new(io, uuid, at, 0, out, diag);
}

TtLogPlace tt_log_writer_place(const TtLogWriter *w)
{
    return (TtLogPlace) {
        .segment = w->seq, .event = w->n_events, .pos = w->pos,
    };
}

TtStatus tt_log_writer_next_part(TtLogWriter *w, TtIo *io, TtDiag *diag)
{
    TtStatus status = tt_log_writer_sync(w, diag);

    assert(!w->closed);
    tt_io_close(w->io);
    w->io = io;
    w->part_seq = w->seq;
    return status == TT_OK ? put_head(w, true, diag) : status;
}

/* Returns the stored length and sets *@packed; falls back to "as is". */
static uint32_t pack(TtLogWriter *w, uint8_t *to, const uint8_t *from,
                     uint32_t len, int level, bool *packed)
{
    size_t n = 0;

    *packed = false;
    if (len > 1) {
        /* Room for one byte less than @len: what is not smaller, fails. */
        n = ZSTD_compressCCtx(w->cctx, to, len - 1, from, len, level);
        *packed = !ZSTD_isError(n);
    }
    return *packed ? n : len;
}

static bool looks_compressible(TtLogWriter *w, const uint8_t *pl, uint32_t len)
{
    uint8_t sample[SAMPLES * SAMPLE_BYTES];

    if (len <= sizeof(sample)) {
        return true;
    }
    for (unsigned i = 0; i < SAMPLES; i++) {
        uint64_t at = (uint64_t)(len - SAMPLE_BYTES) * i / (SAMPLES - 1);
        memcpy(sample + i * SAMPLE_BYTES, pl + at, SAMPLE_BYTES);
    }
    size_t n = ZSTD_compressCCtx(w->cctx, w->pl,
                                 sizeof(sample) - sizeof(sample) / 8,
                                 sample, sizeof(sample), PAYLOAD_LEVEL);
    return !ZSTD_isError(n);
}

static uint64_t body_sum(uint64_t seed, const void *ev, size_t ev_len,
                         const void *pl, size_t pl_len)
{
    XXH3_state_t state;

    XXH3_INITSTATE(&state);
    XXH3_64bits_reset_withSeed(&state, seed);
    XXH3_64bits_update(&state, ev, ev_len);
    XXH3_64bits_update(&state, pl, pl_len);
    return XXH3_64bits_digest(&state);
}

static void fill_header(const TtLogWriter *w, uint8_t *h, const TtSegBuf *sb)
{
    memset(h, 0, TT_F_SEG_BYTES);
    memcpy(h, TT_F_SEG_MAGIC, 8);
    tt_put_le32(h + TT_F_SEG_LENGTH, TT_F_SEG_BYTES);
    tt_put_le64(h + TT_F_SEG_SEQ, sb->seq);
    tt_put_le64(h + TT_F_SEG_FIRST_EVENT, sb->first_event);
    tt_put_le64(h + TT_F_SEG_FIRST_POS, sb->first_pos);
    tt_put_le64(h + TT_F_SEG_HOST_NS, sb->host_ns);
    tt_put_le32(h + TT_F_SEG_N_EVENTS, sb->n_events);
    tt_put_le32(h + TT_F_SEG_EV_RAW, sb->ev_len);
    tt_put_le32(h + TT_F_SEG_PL_RAW, sb->pl_len);
    tt_put_le64(h + TT_F_SEG_END_POS, sb->end_pos);
}

/* The same facts are checked by the reader, there as damage. */
static void assert_segment(const TtLogWriter *w, const TtSegBuf *sb)
{
    assert(!w->closed);
    assert(sb->seq == w->seq);                                      /* R3 */
    assert(sb->first_event == w->n_events);
    assert(sb->first_pos >= w->pos && sb->end_pos >= sb->first_pos);
    assert(sb->ev_len <= TT_SEG_EVENTS_MAX);
    assert(sb->pl_len <= TT_SEG_PAYLOAD_MAX);
    assert(sb->n_events <= sb->ev_len / TT_F_EV_BYTES_MIN);
}

TtStatus tt_log_writer_seal(TtLogWriter *w, const TtSegBuf *sb, TtDiag *diag)
{
    uint8_t *h = w->head, *ev = h + TT_F_SEG_BYTES;
    const uint8_t *pl = sb->pl;
    bool ev_packed, pl_packed = false;
    uint32_t pl_stored = sb->pl_len;

    if (w->poison) {
        return poison(w, &w->first_failure, diag);
    }
    if (sb->seq - w->part_seq >= TT_LOG_SEGMENTS_MAX) {     /* after 155 days */
        TtDiag why;

        tt_fail(&why, TT_ERR_LIMIT, "the log has %u segments, which is the "
                "limit: end this recording and start another one",
                TT_LOG_SEGMENTS_MAX);
        return poison(w, &why, diag);
    }
    assert_segment(w, sb);
    uint32_t ev_stored = pack(w, ev, sb->ev, sb->ev_len, EVENT_LEVEL,
                              &ev_packed);
    if (!ev_packed) {
        memcpy(ev, sb->ev, sb->ev_len);
    }
    if (looks_compressible(w, pl, sb->pl_len)) {
        pl_stored = pack(w, w->pl, pl, sb->pl_len, PAYLOAD_LEVEL, &pl_packed);
        pl = pl_packed ? w->pl : pl;
    }

    fill_header(w, h, sb);
    tt_put_le32(h + TT_F_SEG_FLAGS, (sb->last ? TT_F_SEG_LAST : 0) |
                                    (ev_packed ? TT_F_SEG_EV_ZSTD : 0) |
                                    (pl_packed ? TT_F_SEG_PL_ZSTD : 0) |
                                    TT_F_SEG_RAM_BY_LEN);
    tt_put_le32(h + TT_F_SEG_EV_STORED, ev_stored);
    tt_put_le32(h + TT_F_SEG_PL_STORED, pl_stored);
    tt_put_le64(h + TT_F_SEG_BODY_SUM,
                body_sum(w->seed, ev, ev_stored, pl, pl_stored));
    tt_put_le64(h + TT_F_SEG_SUM,
                tt_header_sum(h, TT_F_SEG_BYTES, TT_F_SEG_SUM, w->seed));

    TtStatus status = put(w, h, TT_F_SEG_BYTES + ev_stored, diag);
    if (status == TT_OK) {
        status = put(w, pl, pl_stored, diag);
    }
    w->seq++;
    w->n_events += sb->n_events;
    w->pos = sb->end_pos;
    w->closed = sb->last;
    return status;
}

TtStatus tt_log_writer_sync(TtLogWriter *w, TtDiag *diag)
{
    TtDiag why;

    if (w->poison) {
        return poison(w, &w->first_failure, diag);
    }
    if (w->io->ops->sync(w->io, &why) != TT_OK) {
        return poison(w, &why, diag);
    }
    return TT_OK;
}

uint64_t tt_log_writer_bytes(const TtLogWriter *w)
{
    return w->bytes;
}

void tt_log_writer_free(TtLogWriter *w)
{
    if (w) {
        tt_io_close(w->io);
        ZSTD_freeCCtx(w->cctx);
        g_free(w->head);
        g_free(w->pl);
        g_free(w);
    }
}

TtStatus tt_log_write_end(TtIo *io, const uint8_t uuid[16],
                          const TtLogPlace *at, uint64_t host_ns, unsigned how,
                          TtDiag *diag)
{
    TtEvent ev = { .kind = TT_EV_FINISH, .pos = at->pos, .val = how };
    TtLogEncoder *e = tt_log_encoder_new_at(at);
    TtSegBuf *sb = tt_segbuf_new();
    TtLogWriter *w = NULL;
    TtStatus status;

    if (!sb) {
        tt_io_close(io);
        status = tt_fail(diag, TT_ERR_NOMEM, "not enough memory to write the "
                         "log");
    } else {
        status = tt_log_writer_new_part(io, uuid, at, &w, diag);
    }
    if (status == TT_OK) {
        tt_log_encoder_begin(e, sb, at->pos, host_ns);
        tt_log_encoder_put(e, &ev);
        status = tt_log_writer_seal(w, tt_log_encoder_end(e, true), diag);
    }
    if (status == TT_OK) {
        status = tt_log_writer_sync(w, diag);
    }
    tt_log_writer_free(w);
    tt_log_encoder_free(e);
    tt_segbuf_free(sb);
    return status;
}
