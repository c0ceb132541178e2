/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opening a log: finds its segments and judges its tail (rules R1 to R3, R6 to R8
 * and R11). Headers only; bodies are checked when they are loaded.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* memmem */
#endif
#include "tt-log-reader.h"

#include <inttypes.h>
#include <stdarg.h>

TtStatus tt_fail_at(TtDiag *diag, TtStatus status, uint64_t offset,
                    const char *fmt, ...)
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

TtStatus tt_log_read_all(TtLogReader *r, uint64_t offset, void *buf, size_t len,
                         TtDiag *diag)
{
    size_t got;
    TtStatus status = r->io->ops->read_at(r->io, offset, buf, len, &got, diag);

    if (status == TT_OK && got != len) {
        return tt_fail_at(diag, TT_ERR_IO, offset,
                          "the file became shorter while it was read");
    }
    return status;
}

/* ---- file head ---- */

/* @at: where it stands. */
static TtStatus check_head(uint8_t *head, uint32_t len, uint64_t at,
                           TtDiag *diag)
{
    if (tt_get_le64(head + TT_F_HEAD_SUM) !=
        tt_header_sum(head, len, TT_F_HEAD_SUM, 0)) {
        return tt_fail_at(diag, TT_ERR_FORMAT, at,
                          "the head of the log is damaged (its checksum is "
                          "wrong)");
    }
    uint64_t unknown = tt_get_le64(head + TT_F_HEAD_MUST_KNOW) &
                       ~TT_F_HEAD_KNOWN;
    if (unknown) {
        return tt_fail_at(diag, TT_ERR_VERSION, at + TT_F_HEAD_MUST_KNOW,
                          "the log needs features (0x%" PRIx64 ") that this "
                          "version does not have; use the version that "
                          "recorded it or a newer one", unknown);
    }
    return TT_OK;
}

/* Where the part with this head begins: *@at. */
static TtStatus parse_part(const uint8_t *head, uint32_t len, TtLogPlace *at,
                           TtDiag *diag)
{
    if (len < TT_F_HEAD_PART_BYTES) {
        return tt_fail_at(diag, TT_ERR_FORMAT, TT_F_HEAD_LENGTH,
                          "the head of a part of the log is too short, %"
                          PRIu32, len);
    }
    *at = (TtLogPlace) {
        .segment = tt_get_le64(head + TT_F_HEAD_FIRST_SEG),
        .event = tt_get_le64(head + TT_F_HEAD_FIRST_EVENT),
        .pos = tt_get_le64(head + TT_F_HEAD_FIRST_POS),
    };
    if (at->segment > TT_LOG_NUMBER_MAX || at->event > TT_LOG_NUMBER_MAX ||
        at->pos > TT_LOG_POS_MAX) {
        return tt_fail_at(diag, TT_ERR_LIMIT, TT_F_HEAD_FIRST_SEG,
                          "a part of the log begins above the limits");
    }
    return TT_OK;
}

static bool is_part(const uint8_t *head)
{
    return tt_get_le64(head + TT_F_HEAD_MUST_KNOW) & TT_F_HEAD_PART;
}

static TtStatus take_head(TtLogReader *r, uint8_t *head, uint32_t len,
                          TtDiag *diag)
{
    TtStatus status = check_head(head, len, 0, diag);

    if (status != TT_OK) {
        return status;
    }
    memcpy(r->uuid, head + TT_F_HEAD_UUID, 16);
    r->seed = tt_log_seed(r->uuid);
    r->is_part = is_part(head);
    return r->is_part ? parse_part(head, len, &r->first, diag) : TT_OK;
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
        return tt_fail_at(diag, TT_ERR_FORMAT, got, "the file ends inside the "
                          "head of the log, so it holds nothing to replay");
    }
    if (memcmp(head, TT_F_HEAD_MAGIC, 8) != 0) {
        return tt_fail_at(diag, TT_ERR_FORMAT, 0, "this is not the log of a "
                          "run (it does not start with TTVMLOG)");
    }
    *len = tt_get_le32(head + TT_F_HEAD_LENGTH);
    if (*len < TT_F_HEAD_BYTES || *len > TT_F_HEAD_BYTES_MAX) {
        return tt_fail_at(diag, TT_ERR_FORMAT, TT_F_HEAD_LENGTH,
                          "the head of the log has an impossible length, %"
                          PRIu32, *len);
    }
    if (*len > got) {
        return tt_fail_at(diag, TT_ERR_FORMAT, got, "the file ends inside the "
                          "head of the log, so it holds nothing to replay");
    }
    return take_head(r, head, *len, diag);
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
           tt_header_sum(h, hlen, TT_F_SEG_SUM, r->seed);
}

static void parse_header(const uint8_t *h, uint64_t offset, TtLogEntry *e)
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
        .is_ram_by_len = e->flags & TT_F_SEG_RAM_BY_LEN,
    };
}

/* What comes next, by what came so far. */
static TtLogPlace next_place(const TtLogReader *r)
{
    const TtSegInfo *before;

    if (!r->entries->len) {
        return r->first;
    }
    before = &tt_log_entry(r, tt_log_reader_end(r) - 1)->info;
    return (TtLogPlace) {
        .segment = before->seq + 1,
        .event = before->first_event + before->n_events,
        .pos = before->end_pos,
    };
}

/* R3 and limits. NULL when fine, else what is wrong. */
static const char *check_order(const TtLogReader *r, const TtSegInfo *i)
{
    TtLogPlace next = next_place(r);

    if (i->seq != next.segment || i->first_event != next.event) {
        return "a segment is missing or out of order";
    }
    if (i->first_pos < next.pos || i->end_pos < i->first_pos) {
        return "positions run backwards";
    }
    return NULL;
}

static const char *check_limits(const TtLogReader *r, const TtLogEntry *e)
{
    const TtSegInfo *i = &e->info;

    if (r->entries->len >= TT_LOG_SEGMENTS_MAX) {
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

static const char *check_stored(const TtLogEntry *e)
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
static TtStatus check_entry(const TtLogReader *r, const TtLogEntry *e,
                            TtDiag *diag)
{
    uint32_t unknown = e->flags & TT_F_SEG_FLAGS_MUST_KNOW &
                       ~TT_F_SEG_FLAGS_KNOWN;
    uint64_t offset = e->info.offset_bytes;
    const char *what;

    if (unknown) {
        return tt_fail_at(diag, TT_ERR_VERSION, offset,
                          "a segment needs features (0x%x) that this version "
                          "does not have; use a newer one", unknown);
    }
    what = check_limits(r, e);
    if (what) {
        return tt_fail_at(diag, TT_ERR_LIMIT, offset, "%s", what);
    }
    what = check_order(r, &e->info);
    if (!what) {
        what = check_stored(e);
    }
    return what ? tt_fail_at(diag, TT_ERR_FORMAT, offset, "%s", what) : TT_OK;
}

/* ---- the walk over the headers ---- */

static uint64_t entry_end(const TtLogEntry *e)
{
    return e->info.offset_bytes + e->header_len + e->info.ev_stored +
           e->info.pl_stored;
}

/* Is there the head of another part of this log after @offset? */
static bool part_follows(TtLogReader *r, uint64_t offset)
{
    enum { STEP = 1 << 20 };
    g_autofree uint8_t *buf = g_malloc(STEP + TT_F_HEAD_PART_BYTES);
    size_t got;

    for (offset++; r->is_part && offset < r->file_bytes; offset += STEP) {
        const uint8_t *p = buf;

        if (r->io->ops->read_at(r->io, offset, buf, STEP + TT_F_HEAD_PART_BYTES,
                                &got, NULL) != TT_OK) {
            return false;
        }
        while (got >= TT_F_HEAD_PART_BYTES &&
               (p = memmem(p, buf + got - p, TT_F_HEAD_MAGIC, 8)) &&
               buf + got - p >= TT_F_HEAD_PART_BYTES) {
            if (!memcmp(p + TT_F_HEAD_UUID, r->uuid, 16)) {
                return true;
            }
            p++;
        }
    }
    return false;
}

static TtStatus torn(TtLogReader *r, uint64_t offset, const char *how,
                     TtDiag *diag)
{
    r->torn = true;
    return tt_fail_at(diag, TT_END_TORN, offset, "the recording was cut off "
                      "here (%s); everything before it is intact", how);
}

static bool is_zero(const uint8_t *p, size_t len)
{
    return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

/* At @offset there is no whole header: torn tail (R7 b, c) or damage (R8)? */
static TtStatus judge_tail(TtLogReader *r, uint64_t offset, TtDiag *diag)
{
    uint64_t left = r->file_bytes - offset;

    if (left < TT_F_SEG_BYTES) {
        return torn(r, offset, "inside the header of a segment", diag);
    }
    if (left <= TT_F_SEG_STORED_MAX) {
        g_autofree uint8_t *tail = g_try_malloc(left);
        TtStatus status = tail ? tt_log_read_all(r, offset, tail, left, diag)
            : tt_fail_at(diag, TT_ERR_NOMEM, offset,
                         "not enough memory to read the log");

        if (status != TT_OK) {
            return status;
        }
        if (is_zero(tail, left)) {
            return torn(r, offset, "what follows was never written", diag);
        }
    }
    return tt_fail_at(diag, TT_ERR_FORMAT, offset, "the header of segment %"
                      PRIu64 " is damaged; %u whole segments are before it",
                      tt_log_reader_end(r), r->entries->len);
}

/* The segment @e has a right header. Takes it in, or says why not.
 * TT_END: the log is at its end, @diag is filled when it is torn. */
static TtStatus take_segment(TtLogReader *r, const TtLogEntry *e, TtDiag *diag)
{
    uint64_t offset = e->info.offset_bytes;
    TtStatus status = check_entry(r, e, diag);

    if (status != TT_OK) {
        return status;
    }
    if (entry_end(e) > r->file_bytes && part_follows(r, offset)) {
        return tt_fail_at(diag, TT_ERR_FORMAT, offset, "a part of the log is cut "
                          "off inside segment %" PRIu64 ", and others follow",
                          e->info.seq);
    }
    if (entry_end(e) > r->file_bytes) {
        torn(r, offset, "inside a segment", diag);
        return TT_END;
    }
    g_array_append_vals(r->entries, e, 1);
    if (entry_end(e) < r->file_bytes && e->info.last) {
        return tt_fail_at(diag, TT_ERR_FORMAT, entry_end(e),
                          "there are bytes after the end of the log");
    }
    return TT_OK;
}

/*
 * R11: at @offset, where a segment header may stand, stands the magic of a head.
 * Takes it in; *@len is its length.
 */
static TtStatus take_part(TtLogReader *r, uint64_t offset, uint32_t *len,
                          TtDiag *diag)
{
    g_autofree uint8_t *head = g_malloc(TT_F_HEAD_BYTES_MAX);
    TtLogPlace at, next = next_place(r);
    TtStatus status;
    size_t got;

    status = r->io->ops->read_at(r->io, offset, head, TT_F_HEAD_BYTES_MAX,
                                 &got, diag);
    if (status != TT_OK) {
        return status;
    }
    got = MIN(got, r->file_bytes - offset);
    *len = got < TT_F_HEAD_PART_BYTES ? 0 :
        tt_get_le32(head + TT_F_HEAD_LENGTH);
    if (*len < TT_F_HEAD_PART_BYTES || *len > got) {
        return judge_tail(r, offset, diag);
    }
    status = check_head(head, *len, offset, diag);
    if (status == TT_OK && !is_part(head)) {
        status = tt_fail_at(diag, TT_ERR_FORMAT, offset,
                            "another log begins inside this one");
    }
    if (status == TT_OK) {
        status = parse_part(head, *len, &at, diag);
    }
    if (status == TT_OK && (memcmp(head + TT_F_HEAD_UUID, r->uuid, 16) ||
                            at.segment != next.segment ||
                            at.event != next.event || at.pos != next.pos)) {
        status = tt_fail_at(diag, TT_ERR_FORMAT, offset, "a part of the log is "
                            "missing or belongs to another run");
    }
    return status;
}

static TtStatus walk(TtLogReader *r, uint64_t offset, TtDiag *diag)
{
    uint8_t h[TT_F_SEG_BYTES_MAX];
    size_t want = TT_F_SEG_BYTES, got;
    bool is_closed = false;
    TtStatus status;
    TtLogEntry e;

    while (offset < r->file_bytes) {
        status = r->io->ops->read_at(r->io, offset, h, want, &got, diag);
        if (status != TT_OK) {
            return status;
        }
        got = MIN(got, r->file_bytes - offset);
        if (r->is_part && got >= 8 && !memcmp(h, TT_F_HEAD_MAGIC, 8)) {
            uint32_t len;

            status = take_part(r, offset, &len, diag);
            if (status != TT_OK) {
                return status;
            }
            offset += len;
            is_closed = false;
            continue;
        }
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

TtStatus tt_log_scan(TtLogReader *r, TtDiag *diag)
{
    uint32_t head_len;
    TtStatus status = read_head(r, &head_len, diag);

    return status == TT_OK ? walk(r, head_len, diag) : status;
}
