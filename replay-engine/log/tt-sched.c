/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event scheduler: a cursor over a log, and a second place ahead of it, the
 * scan, that looks for the next event at which the vCPU has to stop.
 *
 *      cur                    ahead
 *   [ e e e e e e e e e ]  [ e e e e e e ]  [ ...
 *         ^at      ^scan
 *
 * I1: cur is the segment at.segment; NULL only when the log has none.
 * I2: ahead is NULL or the segment at.segment + 1.
 * I3: no event from at (inclusive) to scan (exclusive) is a stop; seen_pos is
 *     the position of the last event before scan. When found, scan is at a
 *     stop, and seen_pos is its position.
 * I4: scan never moves back but by a seek, so an event is looked at once.
 * I5: no event of a segment lies before the first_pos in its header; headers
 *     were all checked when the log was opened. So a segment need not be
 *     readable to be a limit.
 */
#include "log/tt-sched.h"

#include <assert.h>
#include <inttypes.h>
#include <glib.h>

struct TtSched {
    TtLogReader *reader;
    TtCursor at;
    TtSegment *prev;            /* keeps what was peeked last: never empty */
    TtSegment *cur, *ahead;
    TtStatus failed;            /* the segment after cur cannot be read */
    bool blocked;               /* ... and nothing can be done before it */
    TtDiag why;                 /* of failed */
    TtCursor scan;
    uint64_t seen_pos;
    bool found;
    TtStatus scan_failed;       /* do not try again within this segment */
    TtDiag scan_why;
};

static bool is_stop(const TtEvent *ev)
{
    return !TT_EV_IS_SYNC(ev->kind) && !ev->nested;
}

static bool is_before(TtCursor a, TtCursor b)
{
    return a.segment < b.segment ||
           (a.segment == b.segment && a.index < b.index);
}

static uint64_t end_segment(const TtSched *s)
{
    return tt_log_reader_end(s->reader);
}

static uint64_t first_segment(const TtSched *s)
{
    return tt_log_reader_first(s->reader);
}

/* Makes @next the current segment; the reference is taken over. */
static void replace_cur(TtSched *s, TtSegment *next)
{
    if (s->cur && s->cur->n_events > 0) {
        tt_segment_unref(s->prev);
        s->prev = s->cur;
    } else {
        tt_segment_unref(s->cur);
    }
    s->cur = next;
}

/* Takes over the reference to @cur; forgets everything else. */
static void place(TtSched *s, TtCursor c, TtSegment *cur)
{
    replace_cur(s, cur);
    tt_segment_unref(s->ahead);
    s->ahead = NULL;
    s->at = s->scan = c;
    s->failed = TT_OK;
    s->scan_failed = TT_OK;
    s->found = s->blocked = false;
    s->seen_pos = 0;
}

TtStatus tt_sched_seek(TtSched *s, TtCursor c, TtDiag *diag)
{
    TtSegment *cur = NULL;

    if (c.segment > first_segment(s) || end_segment(s) > first_segment(s)) {
        TtStatus status = tt_log_reader_load(s->reader, c.segment, &cur, diag);
        if (status != TT_OK) {
            return status;
        }
    }
    if (c.index > (cur ? cur->n_events : 0)) {
        tt_segment_unref(cur);
        return tt_fail(diag, TT_ERR_INVALID, "event %" PRIu32 " of segment %"
                       PRIu64 " does not exist", c.index, c.segment);
    }
    place(s, c, cur);
    return TT_OK;
}

TtStatus tt_sched_new(TtLogReader *reader, TtSched **out, TtDiag *diag)
{
    TtSched *s = g_new0(TtSched, 1);
    TtStatus status;

    *out = NULL;
    s->reader = reader;
    status = tt_sched_seek(s, (TtCursor) { first_segment(s), 0 }, diag);
    if (status != TT_OK) {
        tt_sched_free(s);
        return status;
    }
    *out = s;
    return TT_OK;
}

void tt_sched_free(TtSched *s)
{
    if (s) {
        tt_segment_unref(s->prev);
        tt_segment_unref(s->cur);
        tt_segment_unref(s->ahead);
        g_free(s);
    }
}

TtCursor tt_sched_tell(const TtSched *s)
{
    return s->at;
}

/* The cursor stands after the last event of cur: go to the next segment. */
static bool enter_next(TtSched *s)
{
    TtSegment *next = s->ahead;

    if (s->failed || s->at.segment + 1 >= end_segment(s)) {
        return false;
    }
    if (!next) {
        s->failed = tt_log_reader_load(s->reader, s->at.segment + 1, &next,
                                       &s->why);
        if (s->failed) {
            return false;
        }
    }
    replace_cur(s, next);
    s->ahead = NULL;
    s->at = (TtCursor) { s->at.segment + 1, 0 };
    s->scan_failed = TT_OK;
    return true;
}

/* The event at the cursor, blocked or not. */
static const TtEvent *current(TtSched *s)
{
    while (s->cur && s->at.index == s->cur->n_events) {
        if (!enter_next(s)) {
            return NULL;
        }
    }
    return s->cur ? &s->cur->events[s->at.index] : NULL;
}

const TtEvent *tt_sched_peek(TtSched *s)
{
    const TtEvent *ev = current(s);

    return s->blocked ? NULL : ev;
}

void tt_sched_pop(TtSched *s)
{
    const TtEvent *ev = current(s);

    /* Blocked is fine: whoever peeked before it was may still pop. */
    assert(ev != NULL);
    s->at.index++;
}

TtStatus tt_sched_status(TtSched *s, TtDiag *diag)
{
    if (tt_sched_peek(s)) {
        return TT_OK;
    }
    if (s->failed) {
        if (diag) {
            *diag = s->why;
        }
        return s->failed;
    }
    return tt_log_reader_is_torn(s->reader)
           ? tt_fail(diag, TT_END_TORN, "the recording was cut off here")
           : tt_fail(diag, TT_END, "the recording ends here");
}

/* ---- horizon ---- */

/* A reference to the segment the scan is in, or NULL when it can't be read. */
static TtSegment *scan_segment(TtSched *s)
{
    TtSegment *seg = NULL;

    if (s->scan.segment == s->at.segment) {
        return tt_segment_ref(s->cur);
    }
    if (s->scan.segment == s->at.segment + 1) {
        if (!s->ahead) {
            s->scan_failed = tt_log_reader_load(s->reader, s->scan.segment,
                                                &s->ahead, &s->scan_why);
        }
        return s->ahead ? tt_segment_ref(s->ahead) : NULL;
    }
    s->scan_failed = tt_log_reader_load(s->reader, s->scan.segment, &seg,
                                        &s->scan_why);
    return seg;
}

/* Looks at the rest of the scan's segment. */
static void scan_events(TtSched *s, const TtSegment *seg)
{
    uint32_t i = s->scan.index;

    for (; i < seg->n_events; i++) {
        s->seen_pos = seg->events[i].pos;
        if (is_stop(&seg->events[i])) {
            s->found = true;
            break;
        }
    }
    s->scan.index = i;
}

/* Nothing that was not looked at lies before this position (I5). */
static uint64_t scan_limit(const TtSched *s)
{
    uint64_t next = s->scan.segment + (s->scan_failed ? 0 : 1);

    if (s->found || next >= end_segment(s)) {
        return s->seen_pos;
    }
    return MAX(s->seen_pos, tt_log_reader_info(s->reader, next)->first_pos);
}

/*
 * May the scan go on to the segment after its own? One segment ahead of the
 * cursor is enough as long as the vCPU can get on with it; when the limit is at
 * the cursor's position it could not, and the scan has to find more.
 */
static bool scan_may_go_on(const TtSched *s, uint64_t cursor_pos)
{
    return s->scan.segment + 1 < end_segment(s) &&
           (s->scan.segment == s->at.segment || scan_limit(s) <= cursor_pos);
}

/* The scan cannot go on, and the vCPU cannot either: the end, as it were. */
static void block_if_stuck(TtSched *s, uint64_t cursor_pos)
{
    if (s->scan_failed && scan_limit(s) <= cursor_pos) {
        s->failed = s->scan_failed;
        s->why = s->scan_why;
        s->blocked = true;
    }
}

/* Where that begins which cannot be read. */
static uint64_t unread_from(const TtSched *s)
{
    if (s->blocked) {
        return scan_limit(s);
    }
    return MAX(s->cur->info.end_pos,
               tt_log_reader_info(s->reader, s->at.segment + 1)->first_pos);
}

uint64_t tt_sched_horizon(TtSched *s)
{
    const TtEvent *ev = tt_sched_peek(s);

    if (!ev) {
        return s->failed ? unread_from(s) : UINT64_MAX;
    }
    if (is_before(s->scan, s->at)) {
        s->scan = s->at;
        s->found = false;
    }
    while (!s->found && !s->scan_failed) {
        TtSegment *seg = scan_segment(s);
        if (!seg) {
            break;                      /* the cursor will meet and report it */
        }
        scan_events(s, seg);
        tt_segment_unref(seg);
        if (s->found || !scan_may_go_on(s, ev->pos)) {
            break;
        }
        s->scan = (TtCursor) { s->scan.segment + 1, 0 };
    }
    block_if_stuck(s, ev->pos);
    return scan_limit(s);
}

/* ---- matching ---- */

static bool is_output(unsigned kind)
{
    return kind == TT_EV_PIO_OUT || kind == TT_EV_MMIO_ST;
}

static bool fits(const TtEvent *rec, const TtEvent *seen)
{
    return rec->kind == seen->kind && rec->pos == seen->pos &&
           rec->cpu == seen->cpu && rec->addr == seen->addr &&
           rec->size == seen->size &&
           (!is_output(rec->kind) || rec->val == seen->val);
}

/* An input as the replay knows it: its value would only confuse. */
static TtEvent without_value(const TtEvent *ev)
{
    TtEvent e = *ev;

    if (!is_output(e.kind)) {
        e.val = 0;
        e.aux = 0;
        e.len = 0;
    }
    return e;
}

TtStatus tt_sched_match(TtSched *s, const TtEvent *seen, TtDiag *diag)
{
    const TtEvent *rec = tt_sched_peek(s);
    char a[100], b[100];

    if (!rec) {
        return tt_sched_status(s, diag);
    }
    if (fits(rec, seen)) {
        return TT_OK;
    }
    TtEvent brief = without_value(seen);
    tt_event_format(rec, a, sizeof(a));
    tt_event_format(&brief, b, sizeof(b));
    tt_fail(diag, TT_ERR_MISMATCH, "recorded: %s; replayed: %s",
            g_strchug(a), g_strchug(b));
    if (diag) {
        diag->position = seen->pos;
    }
    return TT_ERR_MISMATCH;
}

/* ---- for reports ---- */

/* @c moved back by up to @n events; by arithmetic, nothing is loaded. */
static TtCursor cursor_back(const TtSched *s, TtCursor c, unsigned n)
{
    while (n > 0) {
        uint32_t step = MIN(n, c.index);
        c.index -= step;
        n -= step;
        if (n == 0 || c.segment <= first_segment(s)) {
            break;
        }
        c.segment--;
        c.index = tt_log_reader_info(s->reader, c.segment)->n_events;
    }
    return c;
}

/* Appends the events from @c on, up to @after beyond the cursor. */
static void context_lines(TtSched *s, GString *out, TtCursor c, unsigned after)
{
    char line[160];
    unsigned left = after;

    for (; c.segment < end_segment(s); c = (TtCursor) { c.segment + 1, 0 }) {
        TtSegment *seg;
        TtDiag why;
        if (tt_log_reader_load(s->reader, c.segment, &seg, &why) != TT_OK) {
            g_string_append_printf(out, "  (%s)\n", why.text);
            return;
        }
        for (; c.index < seg->n_events; c.index++) {
            bool is_past = !is_before(c, s->at);
            bool is_here = is_past && !is_before(s->at, c);
            if (is_past && !is_here && left-- == 0) {
                break;
            }
            tt_event_format(&seg->events[c.index], line, sizeof(line));
            g_string_append_printf(out, "%c %s\n", is_here ? '>' : ' ', line);
        }
        bool is_full = c.index < seg->n_events;
        tt_segment_unref(seg);
        if (is_full) {
            return;
        }
    }
}

char *tt_sched_context(TtSched *s, unsigned before, unsigned after)
{
    GString *out = g_string_new(NULL);

    tt_sched_peek(s);           /* steps over the seam between segments */
    if (s->cur) {
        context_lines(s, out, cursor_back(s, s->at, before), after);
    }
    return g_string_free(out, false);
}

TtStatus tt_sched_end_pos(TtSched *s, uint64_t *pos, TtDiag *diag)
{
    uint64_t end = end_segment(s);

    *pos = end > first_segment(s) ?
        tt_log_reader_info(s->reader, end - 1)->end_pos : 0;
    return TT_OK;
}
