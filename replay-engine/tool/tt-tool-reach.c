/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Disks and frames that are missing, and which positions a replay reaches without them:
 * those from its start, or from a checkpoint, up to where the log names what was read from
 * such a disk, or such a frame.
 */
#include "tt-tool.h"
#include "net-tt/tt-framestore.h"
#include "run/tt-cpstate.h"

#include <inttypes.h>
#include <stdio.h>

#define SPANS_SHOWN 4

typedef struct Start {          /* a replay can begin here */
    uint64_t pos, segment;
    uint32_t index;             /* of the event that comes next */
} Start;

typedef struct Walk {
    ToolReach *reach;
    GArray *starts;             /* of Start, in the order of the log */
    guint next;                 /* of them */
    bool is_open;               /* a span is, from @from on */
    uint64_t from;
    bool is_missing[TT_DISKS_MAX];
    TtFrameStores *frames;      /* NULL: none are named */
    GHashTable *said;           /* runs of which a frame is lost, as text */
} Walk;

/* ---- where a replay can begin ---- */

static gint by_place(gconstpointer a, gconstpointer b)
{
    const Start *x = a, *y = b;

    return x->segment != y->segment ? (x->segment < y->segment ? -1 : 1) :
        x->index != y->index ? (x->index < y->index ? -1 : 1) : 0;
}

static void add_checkpoint(Walk *w, TtPageStore *ps, const TtCheckpointInfo *info)
{
    g_autofree void *blob = NULL;
    TtCpState s;
    size_t len;

    if (tt_pagestore_blob(ps, info->id, &blob, &len, NULL) == TT_OK &&
        tt_cpstate_decode((TtBytes) { blob, len }, &s, NULL) == TT_OK) {
        Start start = { info->pos, s.segment, s.index };

        g_array_append_val(w->starts, start);
    }
}

static void find_starts(Walk *w, const char *run, const TtManifest *m,
                        const TtLogReader *r)
{
    Start start = { .segment = tt_log_reader_first(r) };
    g_autofree TtCheckpointInfo *infos = NULL;
    TtPageStore *ps = NULL;
    size_t n;

    if (!tt_log_reader_is_window(r)) {
        g_array_append_val(w->starts, start);
    }
    if (tt_runstore_open(run, m, 0, &ps, NULL) == TT_OK) {
        n = tt_pagestore_count(ps);
        infos = g_new0(TtCheckpointInfo, n + 1);
        n = tt_pagestore_list(ps, infos, n);
        for (size_t i = 0; i < n; i++) {
            if (tool_is_in_log(ps, &infos[i], r)) {
                add_checkpoint(w, ps, &infos[i]);
            }
        }
        tt_pagestore_free(ps);
    }
    g_array_sort(w->starts, by_place);
}

/* ---- the walk ---- */

static void stop(Walk *w, uint64_t pos)
{
    ToolSpan span = { w->from, pos };

    if (w->is_open) {
        g_array_append_val(w->reach->spans, span);
        w->is_open = false;
    }
}

/* The places up to this one. */
static void begin(Walk *w, uint64_t segment, uint32_t index)
{
    Start here = { .segment = segment, .index = index };

    for (; w->next < w->starts->len; w->next++) {
        const Start *s = &g_array_index(w->starts, Start, w->next);

        if (by_place(s, &here) > 0) {
            break;
        }
        if (!w->is_open) {
            w->is_open = true;
            w->from = s->pos;
        }
    }
}

/* Tells it of the first one of each run. */
static bool needs_lost(Walk *w, const TtEvent *ev)
{
    static uint8_t bytes[TT_LOG_DATA_MAX];
    char run[2 * TT_RUN_BYTES + 1] = "";
    TtFramePart p;
    TtDiag diag;
    TtStatus st = tt_framepart_get(&p, tt_event_bytes(ev), ev->data, ev->len, &diag);

    if (st == TT_OK) {
        tt_run_text(run, p.run);
        st = tt_framestores_read(w->frames, &p, MIN(tt_event_bytes(ev), sizeof(bytes)),
                                 bytes, &diag);
    }
    if (st != TT_OK && g_hash_table_add(w->said, g_strdup(run))) {
        g_autofree char *pos = tool_number(ev->pos);

        tool_add(w->reach->lost, "at position %s, %s", pos, diag.text);
    }
    return st != TT_OK;
}

static bool needs_missing(Walk *w, const TtEvent *ev)
{
    TtDiskRef ref;

    if (ev->kind == TT_EV_PAYLOAD && w->frames) {
        return needs_lost(w, ev);
    }
    return ev->kind == TT_EV_DISK && tt_disk_ref_decode(ev, &ref) &&
        ref.disk < TT_DISKS_MAX && w->is_missing[ref.disk];
}

static void walk_segment(Walk *w, TtLogReader *r, uint64_t number)
{
    TtSegment *seg;

    if (tt_log_reader_load(r, number, &seg, NULL) != TT_OK) {
        stop(w, tt_log_reader_info(r, number)->first_pos);
        begin(w, number, UINT32_MAX);           /* from none of these */
        w->is_open = false;
        return;
    }
    for (uint32_t i = 0; i < seg->n_events; i++) {
        begin(w, number, i);
        if (needs_missing(w, &seg->events[i]) && w->is_open) {
            stop(w, seg->events[i].pos);
        }
    }
    begin(w, number, seg->n_events);
    tt_segment_unref(seg);
}

static void walk(Walk *w, TtLogReader *r)
{
    uint64_t end = tt_log_reader_end(r);

    for (uint64_t i = tt_log_reader_first(r); i < end; i++) {
        walk_segment(w, r, i);
    }
    if (end > tt_log_reader_first(r)) {
        stop(w, tt_log_reader_info(r, end - 1)->end_pos);
    }
}

ToolReach *tool_reach(const char *run, const TtManifest *m, TtLogReader *r)
{
    ToolReach *reach = g_new0(ToolReach, 1);
    Walk w = { .reach = reach, .starts = g_array_new(false, false, sizeof(Start)) };

    reach->missing = g_ptr_array_new_with_free_func(g_free);
    reach->lost = g_ptr_array_new_with_free_func(g_free);
    reach->spans = g_array_new(false, false, sizeof(ToolSpan));
    for (unsigned i = 0; i < m->n_disks && m->features & TT_FEATURE_DISKS; i++) {
        g_autofree char *path = g_build_filename(run, m->disks[i], NULL);

        if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
            w.is_missing[i] = true;
            tool_add(reach->missing, "%s", m->disks[i]);
        }
    }
    if (m->features & TT_FEATURE_FRAMES) {
        g_autofree char *dir = tt_runstore_frames(m, run);

        w.frames = tt_framestores_new(dir);
    }
    if (reach->missing->len || w.frames) {
        w.said = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        find_starts(&w, run, m, r);
        walk(&w, r);
        g_hash_table_unref(w.said);
    }
    tt_framestores_free(w.frames);
    g_array_unref(w.starts);
    return reach;
}

bool tool_reach_is_whole(const ToolReach *reach)
{
    return !reach->missing->len && !reach->lost->len;
}

void tool_reach_free(ToolReach *reach)
{
    g_ptr_array_unref(reach->missing);
    g_ptr_array_unref(reach->lost);
    g_array_unref(reach->spans);
    g_free(reach);
}

/* ---- output ---- */

/* "positions 0 to 1,234, 5,000 to 6,000 and 3 more spans" */
static char *spans_text(const ToolReach *reach)
{
    GString *out = g_string_new(reach->spans->len ? "positions " : "no position");

    for (guint i = 0; i < MIN(reach->spans->len, SPANS_SHOWN); i++) {
        const ToolSpan *s = &g_array_index(reach->spans, ToolSpan, i);
        g_autofree char *from = tool_number(s->from);
        g_autofree char *to = tool_number(s->to);

        g_string_append_printf(out, "%s%s to %s", i ? ", " : "", from, to);
    }
    if (reach->spans->len > SPANS_SHOWN) {
        g_autofree char *more = tool_count(reach->spans->len - SPANS_SHOWN, "more span");

        g_string_append_printf(out, " and %s", more);
    }
    return g_string_free(out, FALSE);
}

void tool_reach_print(const ToolReach *reach)
{
    g_autofree char *spans = spans_text(reach);

    for (guint i = 0; i < reach->missing->len; i++) {
        printf("%-11s %s is missing, and the log names what was read from it\n",
               i ? "" : "Disks:", (char *)reach->missing->pdata[i]);
    }
    for (guint i = 0; i < reach->lost->len; i++) {
        printf("%-11s %s\n", i ? "" : "Frames:", (char *)reach->lost->pdata[i]);
    }
    if (!tool_reach_is_whole(reach)) {
        printf("Reachable:  %s\n", spans);
    }
}

void tool_reach_json(const ToolReach *reach)
{
    tool_json_list("missing_disks", reach->missing);
    tool_json_list("lost_frames", reach->lost);
    if (!tool_reach_is_whole(reach)) {
        printf(", \"reachable\": [");
        for (guint i = 0; i < reach->spans->len; i++) {
            const ToolSpan *s = &g_array_index(reach->spans, ToolSpan, i);

            printf("%s[%" PRIu64 ", %" PRIu64 "]", i ? ", " : "", s->from, s->to);
        }
        printf("]");
    }
}

int tool_reach_complain(const ToolReach *reach)
{
    g_autofree char *spans = spans_text(reach);

    if (!reach->missing->len) {
        return tool_complain("%s; without it a replay reaches %s",
                             (char *)reach->lost->pdata[0], spans);
    }
    return tool_complain("the disk '%s' is missing, and the log names what was read from "
                         "it: without it a replay reaches %s",
                         (char *)reach->missing->pdata[0], spans);
}

bool tool_is_replayable(const char *run, const TtManifest *m, const TtLogReader *r)
{
    if (m->features & TT_FEATURE_SCRUBBED) {
        tool_complain("the run '%s' was scrubbed when it was packed and cannot be "
                      "replayed: ask for the original", run);
    } else if (m->features & TT_FEATURE_EXITS) {
        tool_complain("the run '%s' was recorded under KVM and not replayed yet: replay it "
                      "once, which converts it", run);
    } else if (!tool_totals(r).n_segments) {
        tool_complain(TOOL_EMPTY_RUN, run);
    } else {
        return true;
    }
    return false;
}
