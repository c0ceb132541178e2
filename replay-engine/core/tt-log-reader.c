/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reader: finds the segments of a log, and decodes one at a time.
 *
 * Opening walks the headers and judges the tail (R6 to R8); bodies are checked
 * when they are loaded, except the last one's, whose checksum decides whether
 * the log is torn before it.
 *
 * I1: info[i] describes segment i; all of R3 and all limits hold for it, and
 *     its stored bytes lie inside the file as it was when opened.
 * I2: every TtSegment in the cache holds one reference.
 */
#include "tt-log-decoder.h"
#include "tt-log-format.h"

#include <assert.h>
#include <stdarg.h>
#include <inttypes.h>
#include <glib.h>
#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define CACHE_SEGMENTS 4

typedef struct Slot {
    uint64_t index;
    uint64_t used;              /* clock of the last use */
    TtSegment *segment;         /* NULL: free */
} Slot;

typedef struct SegEntry {
    TtSegInfo info;
    uint64_t body_sum;
    uint32_t header_len;
    uint32_t flags;
} SegEntry;

struct TtLogReader {
    TtIo *io;
    uint64_t file_bytes;
    uint64_t seed;
    uint8_t uuid[16];
    bool torn;
    GArray *entries;            /* SegEntry */
    ZSTD_DCtx *dctx;
    uint64_t clock;
    Slot cache[CACHE_SEGMENTS];
};

static SegEntry *entry_at(const TtLogReader *r, uint64_t index)
{
    assert(index < r->entries->len);
    return &g_array_index(r->entries, SegEntry, index);
}

/* As tt_fail, with the place in the file. */
static TtStatus __attribute__((format(printf, 4, 5)))
fail_at(TtDiag *diag, TtStatus status, uint64_t offset, const char *fmt, ...)
{
    char text[TT_DIAG_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    g_vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    tt_fail(diag, status, "log, byte %" PRIu64 ": %s", offset, text);
    if (diag) {
        diag->offset = offset;
    }
    return status;
}

/* Reads exactly @len bytes, which lie inside the file. */
static TtStatus read_all(TtLogReader *r, uint64_t offset, void *buf, size_t len,
                         TtDiag *diag)
{
    size_t got;
    TtStatus status = r->io->ops->read_at(r->io, offset, buf, len, &got, diag);

    if (status == TT_OK && got != len) {
        return fail_at(diag, TT_ERR_IO, offset,
                       "the file became shorter while it was read");
    }
    return status;
}

/* ---- file head ---- */

static TtStatus check_head(TtLogReader *r, uint8_t *head, uint32_t len,
                           TtDiag *diag)
{
    if (tt_get_le64(head + TT_F_HEAD_SUM) !=
        tt_log_header_sum(head, len, TT_F_HEAD_SUM, 0)) {
        return fail_at(diag, TT_ERR_FORMAT, 0,
                       "the head of the log is damaged (its checksum is "
                       "wrong)");
    }
    uint64_t unknown = tt_get_le64(head + TT_F_HEAD_MUST_KNOW) &
                       ~TT_F_HEAD_KNOWN;
    if (unknown) {
        return fail_at(diag, TT_ERR_VERSION, TT_F_HEAD_MUST_KNOW,
                       "the log needs features (0x%" PRIx64 ") that this "
                       "version does not have; use the version that recorded "
                       "it or a newer one", unknown);
    }
    memcpy(r->uuid, head + TT_F_HEAD_UUID, 16);
    r->seed = tt_log_seed(r->uuid);
    return TT_OK;
}

/* R1, R2. *@len: where the first segment starts. */
static TtStatus read_head(TtLogReader *r, uint32_t *len, TtDiag *diag)
{
    uint8_t head[TT_F_HEAD_BYTES_MAX];
    size_t got;
    TtStatus status = r->io->ops->read_at(r->io, 0, head, sizeof(head), &got,
                                          diag);

    if (status != TT_OK) {
        return status;
    }
    if (got < TT_F_HEAD_BYTES) {
        return fail_at(diag, TT_ERR_FORMAT, got, "the file ends inside the "
                       "head of the log, so it holds nothing to replay");
    }
    if (memcmp(head, TT_F_HEAD_MAGIC, 8) != 0) {
        return fail_at(diag, TT_ERR_FORMAT, 0, "this is not the log of a run "
                       "(it does not start with TTVMLOG)");
    }
    *len = tt_get_le32(head + TT_F_HEAD_LENGTH);
    if (*len < TT_F_HEAD_BYTES || *len > TT_F_HEAD_BYTES_MAX) {
        return fail_at(diag, TT_ERR_FORMAT, TT_F_HEAD_LENGTH,
                       "the head of the log has an impossible length, %"
                       PRIu32, *len);
    }
    if (*len > got) {
        return fail_at(diag, TT_ERR_FORMAT, got, "the file ends inside the "
                       "head of the log, so it holds nothing to replay");
    }
    return check_head(r, head, *len, diag);
}

/* ---- segment headers ---- */

/* Is there a header with right magic and checksum at @h? (@len bytes there) */
static bool header_is_whole(const TtLogReader *r, uint8_t *h, size_t len)
{
    if (len < TT_F_SEG_BYTES || memcmp(h, TT_F_SEG_MAGIC, 8) != 0) {
        return false;
    }
    uint32_t hlen = tt_get_le32(h + TT_F_SEG_LENGTH);
    return hlen >= TT_F_SEG_BYTES && hlen <= TT_F_SEG_BYTES_MAX &&
           hlen <= len &&
           tt_get_le64(h + TT_F_SEG_SUM) ==
           tt_log_header_sum(h, hlen, TT_F_SEG_SUM, r->seed);
}

static void parse_header(const uint8_t *h, uint64_t offset, SegEntry *e)
{
    e->flags = tt_get_le32(h + TT_F_SEG_FLAGS);
    e->header_len = tt_get_le32(h + TT_F_SEG_LENGTH);
    e->body_sum = tt_get_le64(h + TT_F_SEG_BODY_SUM);
    e->info = (TtSegInfo) {
        .offset_bytes = offset,
        .seq = tt_get_le64(h + TT_F_SEG_SEQ),
        .first_event = tt_get_le64(h + TT_F_SEG_FIRST_EVENT),
        .first_pos = tt_get_le64(h + TT_F_SEG_FIRST_POS),
        .end_pos = tt_get_le64(h + TT_F_SEG_END_POS),
        .host_ns = tt_get_le64(h + TT_F_SEG_HOST_NS),
        .n_events = tt_get_le32(h + TT_F_SEG_N_EVENTS),
        .ev_raw = tt_get_le32(h + TT_F_SEG_EV_RAW),
        .ev_stored = tt_get_le32(h + TT_F_SEG_EV_STORED),
        .pl_raw = tt_get_le32(h + TT_F_SEG_PL_RAW),
        .pl_stored = tt_get_le32(h + TT_F_SEG_PL_STORED),
        .last = e->flags & TT_F_SEG_LAST,
    };
}

/* R3 and limits. NULL when fine, else what is wrong. */
static const char *check_order(const TtLogReader *r, const TtSegInfo *i)
{
    uint64_t seq = r->entries->len, first_event = 0, pos = 0;

    if (seq > 0) {
        const TtSegInfo *before = &entry_at(r, seq - 1)->info;
        first_event = before->first_event + before->n_events;
        pos = before->end_pos;
    }
    if (i->seq != seq || i->first_event != first_event) {
        return "a segment is missing or out of order";
    }
    if (i->first_pos < pos || i->end_pos < i->first_pos) {
        return "positions run backwards";
    }
    return NULL;
}

static const char *check_limits(const SegEntry *e)
{
    const TtSegInfo *i = &e->info;

    if (i->seq >= TT_LOG_SEGMENTS_MAX) {
        return "there are too many segments";
    }
    if (i->ev_raw > TT_SEG_EVENTS_MAX || i->pl_raw > TT_SEG_PAYLOAD_MAX) {
        return "a segment is larger than allowed";
    }
    if (i->n_events > i->ev_raw / TT_F_EV_BYTES_MIN) {
        return "a segment announces more events than it has room for";
    }
    if (i->end_pos > TT_LOG_POS_MAX) {
        return "a position is above the limit";
    }
    return NULL;
}

static const char *check_stored(const SegEntry *e)
{
    const TtSegInfo *i = &e->info;
    bool ev_packed = e->flags & TT_F_SEG_EV_ZSTD;
    bool pl_packed = e->flags & TT_F_SEG_PL_ZSTD;

    if ((ev_packed ? i->ev_stored >= i->ev_raw : i->ev_stored != i->ev_raw) ||
        (pl_packed ? i->pl_stored >= i->pl_raw : i->pl_stored != i->pl_raw)) {
        return "stored and decoded lengths disagree";
    }
    return NULL;
}

/* Everything a header with a right checksum may still get wrong (R8). */
static TtStatus check_entry(const TtLogReader *r, const SegEntry *e,
                            TtDiag *diag)
{
    uint32_t unknown = e->flags & TT_F_SEG_FLAGS_MUST_KNOW &
                       ~TT_F_SEG_FLAGS_KNOWN;
    uint64_t offset = e->info.offset_bytes;
    const char *what;

    if (unknown) {
        return fail_at(diag, TT_ERR_VERSION, offset,
                       "a segment needs features (0x%x) that this version "
                       "does not have; use a newer one", unknown);
    }
    what = check_limits(e);
    if (what) {
        return fail_at(diag, TT_ERR_LIMIT, offset, "%s", what);
    }
    what = check_order(r, &e->info);
    if (!what) {
        what = check_stored(e);
    }
    return what ? fail_at(diag, TT_ERR_FORMAT, offset, "%s", what) : TT_OK;
}

/* ---- bodies ---- */

static uint64_t entry_end(const SegEntry *e)
{
    return e->info.offset_bytes + e->header_len + e->info.ev_stored +
           e->info.pl_stored;
}

/* Reads stored events and payload into @buf and compares their checksum.
 * TT_ERR_FORMAT when it is wrong. */
static TtStatus read_body(TtLogReader *r, const SegEntry *e, uint8_t *buf,
                          TtDiag *diag)
{
    size_t len = (size_t)e->info.ev_stored + e->info.pl_stored;
    TtStatus status = read_all(r, e->info.offset_bytes + e->header_len, buf,
                               len, diag);

    if (status != TT_OK) {
        return status;
    }
    if (XXH3_64bits_withSeed(buf, len, r->seed) != e->body_sum) {
        return fail_at(diag, TT_ERR_FORMAT, e->info.offset_bytes,
                       "segment %" PRIu64 " is damaged (its checksum is "
                       "wrong)", e->info.seq);
    }
    return TT_OK;
}

static TtStatus check_body(TtLogReader *r, const SegEntry *e, TtDiag *diag)
{
    size_t len = (size_t)e->info.ev_stored + e->info.pl_stored;
    g_autofree uint8_t *buf = g_try_malloc(MAX(len, 1));

    if (!buf) {
        return fail_at(diag, TT_ERR_NOMEM, e->info.offset_bytes,
                       "not enough memory to read the log");
    }
    return read_body(r, e, buf, diag);
}

/* ---- the walk over the headers ---- */

static TtStatus torn(TtLogReader *r, uint64_t offset, const char *how,
                     TtDiag *diag)
{
    r->torn = true;
    return fail_at(diag, TT_END_TORN, offset, "the recording was cut off here "
                   "(%s); everything before it is intact", how);
}

/* At @offset there is no whole header: torn tail (R7 b, d) or damage (R8)? */
static TtStatus judge_tail(TtLogReader *r, uint64_t offset, TtDiag *diag)
{
    uint64_t left = r->file_bytes - offset;
    TtStatus status;

    if (left <= TT_F_SEG_STORED_MAX) {
        g_autofree uint8_t *tail = g_try_malloc(left);
        bool more = false;
        if (!tail) {
            return fail_at(diag, TT_ERR_NOMEM, offset,
                           "not enough memory to read the log");
        }
        status = read_all(r, offset, tail, left, diag);
        if (status != TT_OK) {
            return status;
        }
        for (uint64_t i = 1; i + TT_F_SEG_BYTES <= left && !more; i++) {
            more = header_is_whole(r, tail + i, left - i);
        }
        if (!more) {
            return torn(r, offset, left < TT_F_SEG_BYTES
                        ? "inside the header of a segment"
                        : "what follows is no segment", diag);
        }
    }
    return fail_at(diag, TT_ERR_FORMAT, offset, "the header of segment %u is "
                   "damaged; %u whole segments are before it", r->entries->len,
                   r->entries->len);
}

/* The segment @e has a right header. Takes it in, or says why not.
 * TT_END: the log is at its end, @diag is filled when it is torn. */
static TtStatus take_segment(TtLogReader *r, const SegEntry *e, TtDiag *diag)
{
    uint64_t offset = e->info.offset_bytes;
    TtStatus status = check_entry(r, e, diag);

    if (status != TT_OK) {
        return status;
    }
    if (entry_end(e) > r->file_bytes) {
        torn(r, offset, "inside a segment", diag);
        return TT_END;
    }
    if (entry_end(e) == r->file_bytes) {
        status = check_body(r, e, diag);
        if (status == TT_ERR_FORMAT) {
            torn(r, offset, "the checksum of the last segment is wrong", diag);
            return TT_END;
        }
    } else if (e->info.last) {
        return fail_at(diag, TT_ERR_FORMAT, entry_end(e),
                       "there are bytes after the end of the log");
    }
    if (status == TT_OK) {
        g_array_append_vals(r->entries, e, 1);
    }
    return status;
}

static TtStatus walk(TtLogReader *r, uint64_t offset, TtDiag *diag)
{
    uint8_t h[TT_F_SEG_BYTES_MAX];
    size_t want = TT_F_SEG_BYTES, got;
    bool is_closed = false;
    TtStatus status;
    SegEntry e;

    while (offset < r->file_bytes) {
        status = r->io->ops->read_at(r->io, offset, h, want, &got, diag);
        if (status != TT_OK) {
            return status;
        }
        got = MIN(got, r->file_bytes - offset);
        /* A header of a newer writer may be longer: read again, once. */
        if (want < sizeof(h) && got == want &&
            tt_get_le32(h + TT_F_SEG_LENGTH) > want) {
            want = sizeof(h);
            continue;
        }
        want = TT_F_SEG_BYTES;
        if (!header_is_whole(r, h, got)) {
            return judge_tail(r, offset, diag);
        }
        parse_header(h, offset, &e);
        status = take_segment(r, &e, diag);
        if (status != TT_OK) {
            return status == TT_END ? TT_END_TORN : status;
        }
        is_closed = e.info.last;
        offset = entry_end(&e);
    }
    return is_closed ? TT_OK
                     : torn(r, offset, "it was not closed", diag);  /* R7 a */
}

TtStatus tt_log_reader_open(TtIo *io, TtLogReader **out, TtDiag *diag)
{
    TtLogReader *r = g_new0(TtLogReader, 1);
    uint32_t head_len = 0;
    TtStatus status;

    *out = NULL;
    r->io = io;
    r->entries = g_array_new(false, false, sizeof(SegEntry));
    r->dctx = ZSTD_createDCtx();
    status = r->dctx ? io->ops->size(io, &r->file_bytes, diag)
                     : tt_fail(diag, TT_ERR_NOMEM,
                               "not enough memory to read the log");
    if (status == TT_OK) {
        status = read_head(r, &head_len, diag);
    }
    if (status == TT_OK) {
        status = walk(r, head_len, diag);
    }
    if (status < 0) {
        tt_log_reader_free(r);
        return status;
    }
    *out = r;
    return status;
}

void tt_log_reader_free(TtLogReader *r)
{
    if (r) {
        for (unsigned i = 0; i < CACHE_SEGMENTS; i++) {
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

const TtSegInfo *tt_log_reader_info(const TtLogReader *r, uint64_t index)
{
    return &entry_at(r, index)->info;
}

uint64_t tt_log_reader_find(const TtLogReader *r, uint64_t pos)
{
    uint64_t low = 0, high = r->entries->len;

    /* Segments below low start at or before pos, those from high on after. */
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (entry_at(r, mid)->info.first_pos <= pos) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low ? low - 1 : 0;
}

/* ---- loading ---- */

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

static TtStatus decode_entry(TtLogReader *r, const SegEntry *e,
                             const uint8_t *stored, TtSegment *s, TtDiag *diag)
{
    const TtSegInfo *i = &e->info;
    uint8_t *pl = s->bytes, *ev = pl + i->pl_raw;

    if (!unpack(r, e->flags & TT_F_SEG_EV_ZSTD, ev, i->ev_raw,
                stored, i->ev_stored) ||
        !unpack(r, e->flags & TT_F_SEG_PL_ZSTD, pl, i->pl_raw,
                stored + i->ev_stored, i->pl_stored)) {
        return fail_at(diag, TT_ERR_FORMAT, i->offset_bytes,
                       "segment %" PRIu64 " does not decompress to the "
                       "announced length", i->seq);
    }
    return tt_log_decode(i, ev, pl, s->events, diag);
}

static TtStatus load_entry(TtLogReader *r, const SegEntry *e, TtSegment **out,
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
        status = fail_at(diag, TT_ERR_NOMEM, i->offset_bytes,
                         "not enough memory to read the log");
    } else {
        status = read_body(r, e, stored, diag);
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

/* The slot that holds @index, else the one that was not used for longest. */
static Slot *cache_slot(TtLogReader *r, uint64_t index)
{
    Slot *best = &r->cache[0];

    for (unsigned i = 0; i < CACHE_SEGMENTS; i++) {
        Slot *slot = &r->cache[i];
        if (slot->segment && slot->index == index) {
            return slot;
        }
        if (slot->used < best->used) {
            best = slot;
        }
    }
    return best;
}

TtStatus tt_log_reader_load(TtLogReader *r, uint64_t index, TtSegment **out,
                            TtDiag *diag)
{
    Slot *slot = cache_slot(r, index);

    *out = NULL;
    if (index >= r->entries->len) {
        return tt_fail(diag, TT_ERR_INVALID, "segment %" PRIu64 " is beyond "
                       "the end of the log", index);
    }
    if (!slot->segment || slot->index != index) {
        TtSegment *s;
        TtStatus status = load_entry(r, entry_at(r, index), &s, diag);
        if (status != TT_OK) {
            return status;
        }
        tt_segment_unref(slot->segment);
        slot->segment = s;
        slot->index = index;
    }
    slot->used = ++r->clock;
    *out = tt_segment_ref(slot->segment);
    return TT_OK;
}
