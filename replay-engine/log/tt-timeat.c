/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the times around a position in the log, and interpolates: see tt-timeat.h. */
#include "tt-timeat.h"

#include <glib.h>

#define SEGMENTS_MAX 64         /* so far a time is looked for, each way */

typedef struct Search {
    uint64_t pos;
    TtMoment earlier, later;      /* the last at or before pos, the first after it */
    bool has_read, has_next;    /* the guest looks at the counter: */
    uint64_t read_at, read_tsc; /* the last time before */
    uint64_t next_at, next_tsc; /* the first time after */
} Search;

static void note_read(Search *s, const TtEvent *ev)
{
    if (ev->pos > s->pos && !s->has_next) {
        s->has_next = true;
        s->next_at = ev->pos;
        s->next_tsc = ev->val;
    } else if (ev->pos <= s->pos && (!s->has_read || ev->pos >= s->read_at)) {
        s->has_read = true;
        s->read_at = ev->pos;
        s->read_tsc = ev->val;
    }
}

static void note_event(Search *s, const TtEvent *ev)
{
    TtMoment m = { true, true, ev->pos, ev->addr, ev->val };

    if (ev->kind == TT_EV_TSC) {
        note_read(s, ev);
    }
    if (ev->kind != TT_EV_TIME) {
        return;
    }
    if (ev->pos > s->pos) {
        if (!s->later.is_there || !s->later.has_tsc) {
            s->later = m;
        }
    } else if (!s->earlier.has_tsc || ev->pos > s->earlier.pos ||
               (ev->pos == s->earlier.pos && ev->addr >= s->earlier.host_ns)) {
        s->earlier = m;
    }
}

static TtStatus note_segment(Search *s, TtLogReader *r, uint64_t i, TtDiag *diag)
{
    TtSegment *seg;
    TtStatus status = tt_log_reader_load(r, i, &seg, diag);

    if (status == TT_OK) {
        for (uint32_t k = 0; k < seg->n_events; k++) {
            note_event(s, &seg->events[k]);
        }
        tt_segment_unref(seg);
    }
    return status;
}

/* Of runs without times: those of the segments. */
static void use_segments(Search *s, const TtLogReader *r, uint64_t i)
{
    const TtSegInfo *info = tt_log_reader_info(r, i);

    if (!s->earlier.has_tsc) {
        s->earlier = (TtMoment) { true, false, info->first_pos, info->host_ns, 0 };
    }
    for (i++; !s->later.is_there && i < tt_log_reader_end(r); i++) {
        info = tt_log_reader_info(r, i);
        if (info->first_pos > s->pos && info->host_ns >= s->earlier.host_ns) {
            s->later = (TtMoment) { true, false, info->first_pos, info->host_ns, 0 };
        }
    }
}

static TtStatus search(Search *s, TtLogReader *r, TtDiag *diag)
{
    uint64_t first = tt_log_reader_first(r), end = tt_log_reader_end(r);
    uint64_t at = tt_log_reader_find(r, s->pos), i;
    TtStatus status = note_segment(s, r, at, diag);

    for (i = at; status == TT_OK && i > first && at - i < SEGMENTS_MAX &&
         (!s->earlier.has_tsc || tt_log_reader_info(r, i - 1)->end_pos >= s->pos); ) {
        status = note_segment(s, r, --i, diag);
    }
    for (i = at + 1; status == TT_OK && i < end && i - at <= SEGMENTS_MAX &&
         !s->later.has_tsc; i++) {
        status = note_segment(s, r, i, diag);
    }
    if (status == TT_OK) {
        use_segments(s, r, at);
    }
    return status;
}

/* ---- between the two ---- */

static double share(const Search *s)
{
    uint64_t span = s->later.pos - s->earlier.pos;

    return s->later.is_there && span ? (double)(s->pos - s->earlier.pos) / span : 0;
}

static uint64_t between(uint64_t a, uint64_t b, double share)
{
    double more = b > a ? (double)(b - a) * share : 0;

    return b <= a ? a : more >= (double)(b - a) ? b : a + MIN(b - a, (uint64_t)more);
}

static uint64_t host_ns(const Search *s)
{
    return between(s->earlier.host_ns, s->later.is_there ? s->later.host_ns : 0, share(s));
}

static bool has_tsc(const Search *s)
{
    return s->earlier.has_tsc && s->later.has_tsc;
}

static uint64_t tsc(const Search *s)
{
    return between(s->earlier.tsc, s->later.tsc, share(s));
}

/* Of an instruction; negative: not known. */
static double cost_ns(const Search *s)
{
    return !s->later.is_there ? -1 :
        ((double)s->later.host_ns - s->earlier.host_ns) /
        (s->later.pos - s->earlier.pos);
}

/* The counter was @tsc at @pos, between the two. */
static TtMoment of_read(const Search *s, uint64_t pos, uint64_t tsc)
{
    double share = (double)(tsc - s->earlier.tsc) / (s->later.tsc - s->earlier.tsc);

    return (TtMoment) { true, true, pos,
                      between(s->earlier.host_ns, s->later.host_ns, share), tsc };
}

static void use_reads(Search *s)
{
    Search b = *s;

    if (!has_tsc(s) || s->later.tsc <= s->earlier.tsc) {
        return;
    }
    if (s->has_read && s->read_at >= s->earlier.pos && s->read_tsc >= s->earlier.tsc &&
        s->read_tsc <= s->later.tsc) {
        b.earlier = of_read(s, s->read_at, s->read_tsc);
    }
    if (s->has_next && s->next_at < s->later.pos && s->next_tsc >= b.earlier.tsc &&
        s->next_tsc <= s->later.tsc) {
        b.later = of_read(s, s->next_at, s->next_tsc);
    }
    *s = b;
}

TtStatus tt_time_at(TtLogReader *r, uint64_t pos, bool use_tsc_reads, TtTimeAt *at,
                    TtDiag *diag)
{
    Search s = { .pos = pos };
    TtStatus status = search(&s, r, diag);

    if (status != TT_OK) {
        return status;
    }
    if (use_tsc_reads) {
        use_reads(&s);
    }
    *at = (TtTimeAt) {
        .pos = pos, .host_ns = host_ns(&s), .has_tsc = has_tsc(&s),
        .tsc = has_tsc(&s) ? tsc(&s) : 0, .has_read = s.has_read, .read_at = s.read_at,
        .read_tsc = s.read_tsc, .ns_per_instruction = cost_ns(&s), .earlier = s.earlier,
        .later = s.later,
    };
    return TT_OK;
}
