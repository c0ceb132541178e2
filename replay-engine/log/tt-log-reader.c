/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reader: the segments of an open log, one at a time. Finding them is in
 * tt-log-scan.c, the invariants are in tt-log-reader.h.
 */
#include "tt-log-decoder.h"
#include "tt-log-reader.h"

#include <inttypes.h>
#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static TtStatus open_log(TtIo *io, bool may_be_part, TtLogReader **out,
                         TtDiag *diag)
{
    TtLogReader *r = g_new0(TtLogReader, 1);
    TtDiag why = { 0 };
    TtStatus status;

    *out = NULL;
    r->io = io;
    r->entries = g_array_new(false, false, sizeof(TtLogEntry));
    r->dctx = ZSTD_createDCtx();
    status = r->dctx ? io->ops->size(io, &r->file_bytes, &why)
                     : tt_fail(&why, TT_ERR_NOMEM,
                               "not enough memory to read the log");
    if (status == TT_OK) {
        status = tt_log_scan(r, &why);
    }
    if (status != TT_OK && diag) {
        *diag = why;
    }
    if (may_be_part && r->entries->len &&
        (status == TT_ERR_FORMAT || status == TT_ERR_LIMIT)) {
        r->damage = why;
        r->damage.status = status;
    } else if (status < 0) {
        tt_log_reader_free(r);
        return status;
    }
    *out = r;
    return status;
}

TtStatus tt_log_reader_open(TtIo *io, TtLogReader **out, TtDiag *diag)
{
    return open_log(io, false, out, diag);
}

TtStatus tt_log_reader_open_part(TtIo *io, TtLogReader **out, TtDiag *diag)
{
    return open_log(io, true, out, diag);
}

const TtDiag *tt_log_reader_damage(const TtLogReader *r)
{
    return r->damage.status != TT_OK ? &r->damage : NULL;
}

void tt_log_reader_free(TtLogReader *r)
{
    if (r) {
        for (unsigned i = 0; i < TT_LOG_CACHE_SEGMENTS; i++) {
            tt_segment_unref(r->cache[i].segment);
        }
        tt_io_close(r->io);
        ZSTD_freeDCtx(r->dctx);
        g_array_unref(r->entries);
        g_free(r);
    }
}

const uint8_t *tt_log_reader_uuid(const TtLogReader *r)
{
    return r->uuid;
}

bool tt_log_reader_is_torn(const TtLogReader *r)
{
    return r->torn;
}

uint64_t tt_log_reader_bytes(const TtLogReader *r)
{
    return r->file_bytes;
}

uint64_t tt_log_reader_n_segments(const TtLogReader *r)
{
    return r->entries->len;
}

uint64_t tt_log_reader_first(const TtLogReader *r)
{
    return r->first.segment;
}

uint64_t tt_log_reader_end(const TtLogReader *r)
{
    return r->first.segment + r->entries->len;
}

bool tt_log_reader_is_window(const TtLogReader *r)
{
    return r->first.segment > 0;
}

const TtSegInfo *tt_log_reader_info(const TtLogReader *r, uint64_t seq)
{
    return &tt_log_entry(r, seq)->info;
}

uint64_t tt_log_reader_find(const TtLogReader *r, uint64_t pos)
{
    uint64_t first = r->first.segment, low = first;
    uint64_t high = first + r->entries->len;

    /* Segments below low start at or before pos, those from high on after. */
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (tt_log_entry(r, mid)->info.first_pos <= pos) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low > first ? low - 1 : first;
}

/* ---- loading ---- */

TtStatus tt_log_read_body(TtLogReader *r, const TtLogEntry *e, uint8_t *buf,
                          TtDiag *diag)
{
    size_t len = (size_t)e->info.ev_stored + e->info.pl_stored;
    uint64_t offset = e->info.offset_bytes + e->header_len;
    TtStatus status = tt_log_read_all(r, offset, buf, len, diag);

    if (status != TT_OK) {
        return status;
    }
    if (XXH3_64bits_withSeed(buf, len, r->seed) != e->body_sum) {
        return tt_fail_at(diag, TT_ERR_FORMAT, e->info.offset_bytes,
                          "segment %" PRIu64 " is damaged (its checksum is "
                          "wrong)", e->info.seq);
    }
    return TT_OK;
}

TtSegment *tt_segment_ref(TtSegment *s)
{
    s->refs++;
    return s;
}

void tt_segment_unref(TtSegment *s)
{
    if (s && --s->refs == 0) {
        g_free(s->events);
        g_free(s->bytes);
        g_free(s->told);
        g_free(s);
    }
}

/* Stored bytes to exactly @raw bytes at @to. */
static bool unpack(TtLogReader *r, bool packed, uint8_t *to, uint32_t raw,
                   const uint8_t *from, uint32_t stored)
{
    if (!packed) {
        memcpy(to, from, raw);
        return true;
    }
    return ZSTD_decompressDCtx(r->dctx, to, raw, from, stored) == raw;
}

static TtStatus decode_entry(TtLogReader *r, const TtLogEntry *e,
                             const uint8_t *stored, TtSegment *s, TtDiag *diag)
{
    const TtSegInfo *i = &e->info;
    uint8_t *pl = s->bytes, *ev = pl + i->pl_raw;

    if (!unpack(r, e->flags & TT_F_SEG_EV_ZSTD, ev, i->ev_raw,
                stored, i->ev_stored) ||
        !unpack(r, e->flags & TT_F_SEG_PL_ZSTD, pl, i->pl_raw,
                stored + i->ev_stored, i->pl_stored)) {
        return tt_fail_at(diag, TT_ERR_FORMAT, i->offset_bytes,
                          "segment %" PRIu64 " does not decompress to the "
                          "announced length", i->seq);
    }
    return tt_log_decode(i, e->flags, ev, pl, s->events, &s->told, diag);
}

static TtStatus load_entry(TtLogReader *r, const TtLogEntry *e, TtSegment **out,
                           TtDiag *diag)
{
    const TtSegInfo *i = &e->info;
    size_t stored_len = (size_t)i->ev_stored + i->pl_stored;
    g_autofree uint8_t *stored = g_try_malloc(MAX(stored_len, 1));
    TtSegment *s = g_new0(TtSegment, 1);
    TtStatus status;

    s->refs = 1;
    s->info = *i;
    s->n_events = i->n_events;
    s->events = g_try_new(TtEvent, MAX(i->n_events, 1));
    s->bytes = g_try_malloc(MAX((size_t)i->pl_raw + i->ev_raw, 1));
    if (!stored || !s->events || !s->bytes) {
        status = tt_fail_at(diag, TT_ERR_NOMEM, i->offset_bytes,
                            "not enough memory to read the log");
    } else {
        status = tt_log_read_body(r, e, stored, diag);
    }
    if (status == TT_OK) {
        status = decode_entry(r, e, stored, s, diag);
    }
    if (status != TT_OK) {
        tt_segment_unref(s);
        return status;
    }
    *out = s;
    return TT_OK;
}

/* The slot that holds @seq, else the one that was not used for longest. */
static TtLogSlot *cache_slot(TtLogReader *r, uint64_t seq)
{
    TtLogSlot *best = &r->cache[0];

    for (unsigned i = 0; i < TT_LOG_CACHE_SEGMENTS; i++) {
        TtLogSlot *slot = &r->cache[i];
        if (slot->segment && slot->seq == seq) {
            return slot;
        }
        if (slot->used < best->used) {
            best = slot;
        }
    }
    return best;
}

TtStatus tt_log_reader_load(TtLogReader *r, uint64_t seq, TtSegment **out,
                            TtDiag *diag)
{
    TtLogSlot *slot = cache_slot(r, seq);

    *out = NULL;
    if (seq < r->first.segment ||
        seq - r->first.segment >= r->entries->len) {
        return tt_fail(diag, TT_ERR_INVALID, "segment %" PRIu64 " is not in "
                       "the log", seq);
    }
    if (!slot->segment || slot->seq != seq) {
        TtSegment *s;
        TtStatus status = load_entry(r, tt_log_entry(r, seq), &s, diag);
        if (status != TT_OK) {
            return status;
        }
        tt_segment_unref(slot->segment);
        slot->segment = s;
        slot->seq = seq;
    }
    slot->used = ++r->clock;
    *out = tt_segment_ref(slot->segment);
    return TT_OK;
}
