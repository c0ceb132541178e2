/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `tt time`: what time it was at a position.
 *
 * The log has times (TT_EV_TIME) here and there, and each segment the time at which it
 * began. What lies between two of them is interpolated: so many instructions, so much
 * time. Where the vCPU halted there is one before and one after, so a halt is not spread
 * over instructions. Where the guest read its time stamp counter, that is a time, too: the
 * counter runs evenly between two. (Not where KVM had stopped it.)
 */
#include "tt-tool.h"

#include <inttypes.h>
#include <stdio.h>

#define SEGMENTS_MAX 64         /* so far a time is looked for, each way */

typedef struct Moment {
    bool is_there, has_tsc;
    uint64_t pos, host_ns, tsc;
} Moment;

typedef struct Search {
    uint64_t pos;
    Moment earlier, later;      /* the last at or before pos, the first after it */
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
    Moment m = { true, true, ev->pos, ev->addr, ev->val };

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
        s->earlier = (Moment) { true, false, info->first_pos, info->host_ns, 0 };
    }
    for (i++; !s->later.is_there && i < tt_log_reader_end(r); i++) {
        info = tt_log_reader_info(r, i);
        if (info->first_pos > s->pos && info->host_ns >= s->earlier.host_ns) {
            s->later = (Moment) { true, false, info->first_pos, info->host_ns, 0 };
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
static Moment of_read(const Search *s, uint64_t pos, uint64_t tsc)
{
    double share = (double)(tsc - s->earlier.tsc) / (s->later.tsc - s->earlier.tsc);

    return (Moment) { true, true, pos,
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

/* ---- what is printed ---- */

static void print_moment(const char *what, const Moment *m)
{
    g_autofree char *pos = tool_number(m->pos);

    if (!m->is_there) {
        printf("%-10s none: the log has no later time\n", what);
        return;
    }
    printf("%-10s position %s, host %.6f s", what, pos, m->host_ns / 1e9);
    if (m->has_tsc) {
        printf(", TSC %" PRIu64, m->tsc);
    }
    putchar('\n');
}

static void print(const Search *s)
{
    g_autofree char *pos = tool_number(s->pos), *read_at = tool_number(s->read_at);

    printf("position   %s\n", pos);
    printf("host       %.6f s since the run began%s\n", host_ns(s) / 1e9,
           s->later.is_there ? "" : ", or later");
    if (has_tsc(s)) {
        printf("TSC        %" PRIu64 "\n", tsc(s));
    }
    if (s->has_read) {
        printf("guest read TSC %" PRIu64 " at position %s\n", s->read_tsc, read_at);
    }
    if (cost_ns(s) >= 0) {
        printf("speed      %.2f ns an instruction\n", cost_ns(s));
    }
    print_moment("earlier", &s->earlier);
    print_moment("later", &s->later);
}

static void json_moment(const char *name, const Moment *m)
{
    if (!m->is_there) {
        printf(", \"%s\": null", name);
        return;
    }
    printf(", \"%s\": {\"position\": %" PRIu64 ", \"host_ns\": %" PRIu64, name, m->pos,
           m->host_ns);
    if (m->has_tsc) {
        printf(", \"tsc\": %" PRIu64, m->tsc);
    }
    putchar('}');
}

static void print_json(const Search *s)
{
    tool_json_begin();
    printf("\"position\": %" PRIu64 ", \"host_ns\": %" PRIu64, s->pos, host_ns(s));
    if (has_tsc(s)) {
        printf(", \"tsc\": %" PRIu64, tsc(s));
    }
    if (s->has_read) {
        printf(", \"read\": {\"position\": %" PRIu64 ", \"tsc\": %" PRIu64 "}",
               s->read_at, s->read_tsc);
    }
    if (cost_ns(s) >= 0) {
        printf(", \"ns_per_instruction\": %.3f", cost_ns(s));
    }
    json_moment("earlier", &s->earlier);
    json_moment("later", &s->later);
    puts("}");
}

int tool_time(const ToolArgs *a)
{
    TtManifest m = { 0 };
    Search s = { 0 };
    TtLogReader *r;
    TtStatus status;
    TtDiag diag;
    int result;

    if (!tool_parse_number(a->operand[1], &s.pos)) {
        return tool_usage(a->command, "'%s' is no position", a->operand[1]);
    }
    r = tool_open_run(a->operand[0], &m);
    if (!r) {
        return TOOL_PROBLEM;
    }
    if (s.pos < tool_totals(r).first_pos || s.pos > tool_totals(r).end_pos) {
        result = tool_complain("position %" PRIu64 " is outside of the run: it has %"
                               PRIu64 " to %" PRIu64, s.pos, tool_totals(r).first_pos,
                               tool_totals(r).end_pos);
    } else {
        status = search(&s, r, &diag);
        result = status == TT_OK ? tool_log_status(r) : tool_problem(&diag);
        if (status == TT_OK) {
            if (!(m.rules & TT_RULE_KVM)) {
                use_reads(&s);
            }
            (tool_has(a, "--json") ? print_json : print)(&s);
        }
    }
    tt_log_reader_free(r);
    tt_manifest_cleanup(&m);
    return result;
}
