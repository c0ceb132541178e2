/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `tt stats`: where the bytes of a log go.
 *
 * The log does not keep how long each event is when encoded; encoding the
 * decoded segment once more tells.
 */
#include "tt-tool.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct Stats {
    ToolTotals t;
    uint64_t file_bytes;
    bool torn;
    uint64_t count[TT_EV_KIND_MAX + 1];
    uint64_t bytes[TT_EV_KIND_MAX + 1];
    uint64_t payload[TT_EV_KIND_MAX + 1];
} Stats;

static void add_segment(Stats *s, TtSegBuf *sb)
{
    for (unsigned k = 0; k <= TT_EV_KIND_MAX; k++) {
        s->count[k] += sb->kind_count[k];
        s->bytes[k] += sb->kind_bytes[k];
        s->payload[k] += sb->kind_payload[k];
    }
}

static void count_segment(Stats *s, const TtSegment *seg, TtSegBuf *sb)
{
    TtLogEncoder *e = tt_log_encoder_new();

    tt_log_encoder_begin(e, sb, seg->info.first_pos, 0);
    tt_log_encoder_code_alike(e, seg->info.is_ram_by_len);
    for (uint32_t i = 0; i < seg->n_events; i++) {
        const TtEvent *ev = &seg->events[i];
        /* A foreign writer may have filled a segment to the last byte. */
        if (!tt_log_encoder_fits(e, ev)) {
            add_segment(s, tt_log_encoder_end(e, false));
            tt_log_encoder_begin(e, sb, ev->pos, 0);
            tt_log_encoder_code_alike(e, seg->info.is_ram_by_len);
        }
        tt_log_encoder_put(e, ev);
    }
    add_segment(s, tt_log_encoder_end(e, true));
    tt_log_encoder_free(e);
}

static TtStatus count_log(Stats *s, TtLogReader *r, TtDiag *diag)
{
    TtSegBuf *sb = tt_segbuf_new();
    TtStatus status = TT_OK;

    if (!sb) {
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory");
    }
    s->t = tool_totals(r);
    s->torn = tt_log_reader_is_torn(r);
    for (uint64_t i = tt_log_reader_first(r);
         i < tt_log_reader_end(r) && status == TT_OK; i++) {
        TtSegment *seg;
        status = tt_log_reader_load(r, i, &seg, diag);
        if (status == TT_OK) {
            count_segment(s, seg, sb);
            tt_segment_unref(seg);
        }
    }
    tt_segbuf_free(sb);
    return status;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * part / whole : 0;
}

static void kind_name(unsigned k, char *buf, size_t size)
{
    const char *name = tt_event_kind_name(k);

    if (name) {
        g_strlcpy(buf, name, size);
    } else {
        g_snprintf(buf, size, "unknown-%u", k);
    }
}

static void print_kind(const Stats *s, unsigned k)
{
    g_autofree char *count = tool_number(s->count[k]);
    g_autofree char *bytes = tool_number(s->bytes[k]);
    g_autofree char *payload = tool_number(s->payload[k]);
    char name[24];

    kind_name(k, name, sizeof(name));
    printf("%-12s %13s %15s %6.1f%% %15s %6.1f%%\n", name, count, bytes,
           percent(s->bytes[k], s->t.ev_raw), payload,
           percent(s->payload[k], s->t.pl_raw));
}

/* The larger share of all bytes first; equal ones by number. */
static int by_bytes(const void *a, const void *b, void *opaque)
{
    const Stats *s = opaque;
    unsigned x = *(const uint8_t *)a, y = *(const uint8_t *)b;
    uint64_t bx = s->bytes[x] + s->payload[x], by = s->bytes[y] + s->payload[y];

    return bx != by ? (bx < by ? 1 : -1) : (int)x - (int)y;
}

/* Kinds that occur, in order of bytes. */
static unsigned used_kinds(Stats *s, uint8_t kinds[TT_EV_KIND_MAX + 1])
{
    unsigned n = 0;

    for (unsigned k = 0; k <= TT_EV_KIND_MAX; k++) {
        if (s->count[k]) {
            kinds[n++] = k;
        }
    }
    g_qsort_with_data(kinds, n, 1, by_bytes, s);
    return n;
}

static uint64_t other_bytes(const Stats *s)
{
    return s->file_bytes - s->t.ev_stored - s->t.pl_stored;
}

static void print_stored(const char *what, uint64_t raw, uint64_t stored,
                         const Stats *s)
{
    g_autofree char *r = tool_number(raw);
    g_autofree char *w = tool_number(stored);

    printf("%-12s %15s %15s %6.1f%%\n", what, r, w,
           percent(stored, s->file_bytes));
}

static void print_rates(const Stats *s)
{
    double seconds = s->t.host_ns / 1e9;
    g_autofree char *event_bytes = NULL, *events = NULL, *all = NULL;

    if (seconds < 0.1) {
        return;
    }
    event_bytes = tool_bytes((s->file_bytes - s->t.pl_stored) / seconds);
    events = tool_number(s->t.n_events / seconds);
    all = tool_bytes(s->file_bytes / seconds);
    printf("\nPer second, over %.1f seconds: %s events, %s of log, of which\n%s is not "
           "payload.\n", seconds, events, all, event_bytes);
}

static void print_text(Stats *s)
{
    uint8_t kinds[TT_EV_KIND_MAX + 1];
    unsigned n = used_kinds(s, kinds);

    printf("%-12s %13s %15s %7s %15s %7s\n", "kind", "events", "bytes encoded",
           "share", "payload", "share");
    for (unsigned i = 0; i < n; i++) {
        print_kind(s, kinds[i]);
    }
    printf("\n%-12s %15s %15s %7s\n", "", "bytes before", "bytes in file",
           "share");
    print_stored("events", s->t.ev_raw, s->t.ev_stored, s);
    print_stored("payload", s->t.pl_raw, s->t.pl_stored, s);
    print_stored("headers", other_bytes(s), other_bytes(s), s);
    print_stored("all", s->t.ev_raw + s->t.pl_raw + other_bytes(s),
                 s->file_bytes, s);
    print_rates(s);
    if (s->torn) {
        printf("\nThe recording %s; its incomplete tail is counted as headers.\n",
               tool_is_growing() ? "is going on" : "was cut off");
    }
}

static void json_field(const char *name, uint64_t v)
{
    printf("  \"%s\": %" PRIu64 ",\n", name, v);
}

static void print_json(Stats *s)
{
    uint8_t kinds[TT_EV_KIND_MAX + 1];
    unsigned n = used_kinds(s, kinds);

    tool_json_begin();
    printf("\n");
    json_field("bytes", s->file_bytes);
    json_field("events_raw_bytes", s->t.ev_raw);
    json_field("events_stored_bytes", s->t.ev_stored);
    json_field("payload_raw_bytes", s->t.pl_raw);
    json_field("payload_stored_bytes", s->t.pl_stored);
    json_field("header_bytes", other_bytes(s));
    json_field("segments", s->t.n_segments);
    json_field("events", s->t.n_events);
    json_field("start", s->t.first_pos);
    json_field("end", s->t.end_pos);
    json_field("host_ns", s->t.host_ns);
    printf("  \"torn\": %s,\n  \"recording\": %s,\n  \"kinds\": {",
           tool_json_bool(s->torn), tool_json_bool(tool_is_growing()));
    for (unsigned i = 0; i < n; i++) {
        char name[24];
        kind_name(kinds[i], name, sizeof(name));
        printf("%s\n    \"%s\": {\"events\": %" PRIu64 ", \"bytes\": %" PRIu64
               ", \"payload\": %" PRIu64 "}", i ? "," : "", name,
               s->count[kinds[i]], s->bytes[kinds[i]], s->payload[kinds[i]]);
    }
    printf("\n  }\n}\n");
}

int tool_stats(const ToolArgs *a)
{
    TtLogReader *r = tool_has(a, "--exits") ? tool_open_exits(a->operand[0]) :
        tool_open_log(a->operand[0]);
    Stats s = { 0 };
    TtDiag diag;
    TtStatus status;
    int result;

    if (!r) {
        return TOOL_PROBLEM;
    }
    s.file_bytes = tt_log_reader_bytes(r);
    status = count_log(&s, r, &diag);
    result = tool_log_status(r);
    tt_log_reader_free(r);
    if (status != TT_OK) {
        return tool_problem(&diag);
    }
    if (tool_has(a, "--json")) {
        print_json(&s);
    } else {
        print_text(&s);
    }
    return result;
}
