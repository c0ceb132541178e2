/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt check: is all of a run there, and as it was written?
 */
#include "tt-tool.h"
#include "tt-tool-disk.h"
#include "log/tt-logparts.h"
#include "run/tt-marks.h"
#include "run/tt-cpstate.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct Check {
    const char *run;
    GPtrArray *problems;        /* sentences */
    GPtrArray *notes;
    ToolTotals totals;
    uint64_t first_segment;     /* the log begins with it */
    bool is_torn, has_store;
    bool is_cut;                /* the end of the checkpoints is lost, and what it
                                   says of others that were deleted */
    uint64_t unused_to;         /* then: up to there they are not used */
    size_t n_checkpoints, n_unusable;
    size_t n_in_log;            /* checkpoints that a replay can begin with */
    uint64_t n_parents;
} Check;

/* ---- the log ---- */

/* Most sentences of its reader begin with its name. */
static void add_of_log(Check *c, const char *text, const char *more)
{
    tool_add(c->problems, "%s%s%s", g_str_has_prefix(text, "log") ? "" : "log: ", text,
             more);
}

static void check_log(Check *c, TtLogReader *r)
{
    g_autofree char *gap = tool_gap(c->run);
    uint64_t damaged = 0;
    TtDiag diag;

    if (gap) {
        tool_add(c->problems, "log: %s", gap);
    }

    if (tt_log_reader_damage(r)) {
        add_of_log(c, tt_log_reader_damage(r)->text,
                   ": it can be replayed up to there");
    }
    c->totals = tool_totals(r);
    if (!c->totals.n_segments && !tt_log_reader_damage(r)) {
        tool_add(c->problems,
                 tool_is_growing() ? "log: it is being recorded, and nothing has been "
                                     "written yet" : "log: nothing was recorded: the "
                                                     "recorder ended before it had "
                                                     "written anything, so there is "
                                                     "nothing to replay");
    }
    c->is_torn = tt_log_reader_is_torn(r);
    c->first_segment = tt_log_reader_first(r);
    for (uint64_t i = c->first_segment; i < tt_log_reader_end(r); i++) {
        TtSegment *seg;

        if (tt_log_reader_load(r, i, &seg, &diag) == TT_OK) {
            tt_segment_unref(seg);
        } else if (!damaged++) {
            add_of_log(c, diag.text, "");
            tool_add(c->problems, "log: the first damaged segment is %" PRIu64 ", at "
                                  "position %" PRIu64 "; what comes before it can be "
                                  "replayed", i, tt_log_reader_info(r, i)->first_pos);
        }
    }
    if (damaged > 1) {
        tool_add(c->problems, "log: %" PRIu64 " of %" PRIu64 " segments are "
                 "damaged", damaged, c->totals.n_segments);
    }
}

/* ---- the checkpoints ---- */

static void unreadable_pages(void *opaque, TtNodeId id, uint64_t pos,
                             uint64_t n_pages, uint64_t first_page,
                             const TtDiag *why)
{
    Check *c = opaque;

    if (pos < c->unused_to) {
        return;
    }
    if (!c->n_unusable++) {
        tool_add(c->problems, "%s", why->text);
    }
    tool_add(c->problems, "checkpoint %u, position %" PRIu64 ": %" PRIu64 " of its pages "
                          "cannot be read; the first is page %" PRIu64, id, pos, n_pages,
             first_page);
}

/*
 * A recorder deletes a checkpoint, and sees to it that this is on disk, before the part
 * of the log that it stands in. (Only one whose disk is full and that is killed right
 * then leaves it the other way round.)
 */
static void add_before_window(Check *c, const TtCheckpointInfo *info)
{
    unsigned n;
    g_autofree uint32_t *part = tt_logparts_list(c->run, &n);
    g_autofree char *path = n && part[0] > 1 ?
        tt_logparts_path(c->run, part[0] - 1) : NULL;

    if (c->is_cut) {
        c->unused_to = info->pos + 1;
    }
    if (c->is_torn || c->is_cut || !path) {
        tool_add(c->notes, "checkpoint %u, position %" PRIu64 ", is before the window of "
                           "the log and is not used", info->id, info->pos);
    } else {
        tool_add(c->problems, "'%s' is missing, and checkpoint %u, position %" PRIu64 ", "
                              "needs it: the beginning of the window was "
                              "deleted", path, info->id, info->pos);
    }
}

/* Its place in the log: there is an event, or it is after the last. */
static void check_place(Check *c, const TtCheckpointInfo *info,
                        const TtCpState *s, TtLogReader *r)
{
    TtSegment *seg;
    uint64_t at;

    if (s->segment < c->first_segment) {
        add_before_window(c, info);
        return;
    }
    if (s->segment - c->first_segment >= c->totals.n_segments) {
        if (c->is_torn && info->pos >= c->totals.end_pos) {
            tool_add(c->notes, "checkpoint %u, position %" PRIu64 ", is after the end of "
                               "the log%s", info->id, info->pos, tool_is_growing() ?
                     " as it was when this check began" : ", where the recording was cut off");
        } else {
            tool_add(c->problems, "checkpoint %u, position %" PRIu64 ": it belongs to "
                                  "segment %" PRIu64 ", which the log does not "
                                  "have", info->id,
                     info->pos, s->segment);
        }
        return;
    }
    if (tt_log_reader_load(r, s->segment, &seg, NULL) != TT_OK) {
        return;                         /* said before */
    }
    at = s->index < seg->n_events ? seg->events[s->index].pos :
        seg->info.end_pos;
    if (s->index > seg->n_events || at < info->pos ||
        seg->info.first_pos > info->pos) {
        tool_add(c->problems, "checkpoint %u, position %" PRIu64 ": the log has another "
                              "position at its place", info->id, info->pos);
    } else {
        c->n_in_log++;
    }
    tt_segment_unref(seg);
}

static void check_state(Check *c, TtPageStore *ps,
                        const TtCheckpointInfo *info, TtLogReader *r)
{
    g_autofree void *blob = NULL;
    TtCpState s;
    TtDiag diag;
    size_t len;

    if (tt_pagestore_blob(ps, info->id, &blob, &len, &diag) != TT_OK ||
        tt_cpstate_decode((TtBytes) { blob, len }, &s, &diag) != TT_OK) {
        tool_add(c->problems, "checkpoint %u, position %" PRIu64 ": %s", info->id,
                 info->pos, diag.text);
        return;
    }
    check_place(c, info, &s, r);
}

static void check_store(Check *c, const TtManifest *m, TtLogReader *r)
{
    g_autofree TtCheckpointInfo *infos = NULL;
    TtPageStore *ps;
    TtDiag diag;
    size_t n;
    TtStatus st = tt_runstore_open(c->run, m, 0, &ps, &diag);

    if (st == TT_END) {
        return;
    }
    c->has_store = true;
    if (st != TT_OK) {
        tool_add(c->problems, "%s: no checkpoint can be used, and a replay makes its own, "
                              "which takes it longer to travel", diag.text);
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        const TtDiag *d = tt_pagestore_damage(ps, i);

        if (d) {
            c->is_cut = true;
            tool_add(c->problems, "%s", d->text);
        }
    }
    c->n_checkpoints = n = tt_pagestore_count(ps);
    infos = g_new0(TtCheckpointInfo, n + 1);
    n = tt_pagestore_list(ps, infos, n);
    for (size_t i = 0; i < n && r; i++) {
        check_state(c, ps, &infos[i], r);
    }
    tt_pagestore_verify(ps, unreadable_pages, c);
    tt_pagestore_free(ps);
}

/* ---- the rest ---- */

static void check_marks(Check *c)
{
    g_autofree char *path = g_build_filename(c->run, "marks", NULL);
    unsigned bad = 0;
    TtDiag diag;
    TtIo *io;

    if (!g_file_test(path, G_FILE_TEST_EXISTS) &&
        !g_file_test(path, G_FILE_TEST_IS_SYMLINK)) {
        return;
    }
    if (tt_io_posix_open(path, &io, &diag) != TT_OK) {
        tool_add(c->problems, "marks: %s", diag.text);
        return;
    }
    if (tt_marks_load(io, NULL, NULL, &bad, &diag) != TT_OK) {
        tool_add(c->problems, "marks: %s", diag.text);
    } else if (bad) {
        tool_add(c->problems, "marks: line %u is not a position and a name", bad);
    }
    tt_io_close(io);
}

/* What a replay needs of a parent: its manifest and the checkpoint. */
static void check_parents(Check *c, const TtManifest *m)
{
    g_autofree char *dir = tt_runstore_parent_path(m, c->run);
    g_autofree char *path = g_build_filename(dir, "manifest", NULL);
    Check parent = { .run = dir, .problems = c->problems, .notes = c->notes };
    TtPageStore *store;
    TtManifest pm;
    TtDiag diag;

    if (tt_manifest_load(path, &pm, &diag) != TT_OK) {
        tool_add(c->problems, "parent: %s; a replay of this branch needs it",
                 diag.text);
        return;
    }
    c->n_parents++;
    if (tt_runstore_open(dir, &pm, 0, &store, &diag) != TT_OK) {
        tool_add(c->problems, "parent '%s': its checkpoints cannot be read: %s", dir,
                 diag.text);
    } else {
        if (tt_runstore_check_parent(m, &pm, store, &diag) != TT_OK) {
            tool_add(c->problems, "parent '%s', in which this branch began: %s", dir,
                     diag.text);
        }
        tt_pagestore_free(store);
        check_store(&parent, &pm, NULL);
    }
    tt_manifest_cleanup(&pm);
}

/* ---- output ---- */

void tool_json_list(const char *name, const GPtrArray *list)
{
    printf(", \"%s\": [", name);
    for (unsigned i = 0; i < list->len; i++) {
        printf("%s", i ? ", " : "");
        tool_json_string(list->pdata[i]);
    }
    printf("]");
}

static void print_json(const Check *c)
{
    tool_json_begin();
    printf("\"run\": ");
    tool_json_string(c->run);
    printf(", \"intact\": %s, \"segments\": %" PRIu64 ", \"events\": %" PRIu64
           ", \"end\": %" PRIu64 ", \"torn\": %s, \"recording\": %s, "
           "\"window\": %s, \"checkpoints\": %zu",
           tool_json_bool(!c->problems->len), c->totals.n_segments,
           c->totals.n_events, c->totals.end_pos, tool_json_bool(c->is_torn),
           tool_json_bool(tool_is_growing()), tool_json_bool(c->first_segment),
           c->n_checkpoints);
    tool_json_list("problems", c->problems);
    tool_json_list("notes", c->notes);
    printf("}\n");
}

static void print_text(const Check *c)
{
    g_autofree char *segments = tool_count(c->totals.n_segments, "segment");
    g_autofree char *events = tool_count(c->totals.n_events, "event");
    g_autofree char *end = tool_number(c->totals.end_pos);
    g_autofree char *points = tool_count(c->n_checkpoints, "checkpoint");

    for (unsigned i = 0; i < c->notes->len; i++) {
        tool_note(c->notes->pdata[i]);
    }
    for (unsigned i = 0; i < c->problems->len; i++) {
        tool_complain("%s", (char *)c->problems->pdata[i]);
    }
    if (!c->problems->len) {
        printf("The run is intact: %s, %s, up to position %s%s; %s.\n"
               "Nothing was executed: use tt verify to replay the run.\n",
               segments, events, end, !c->is_torn ? "" : tool_is_growing() ?
               "; it is still being recorded" :
               ", where the recording was cut off", points);
    }
}

static Check check_begin(const char *run)
{
    return (Check) {
        .run = run,
        .problems = g_ptr_array_new_with_free_func(g_free),
        .notes = g_ptr_array_new_with_free_func(g_free),
    };
}

static void check_run(Check *c, const TtManifest *m, TtLogReader *r,
                      unsigned look)
{
    check_log(c, r);
    if (look & TOOL_LOOK_STORE) {
        check_store(c, m, r);
    }
    if (look & TOOL_LOOK_STORE && c->first_segment && !c->n_in_log &&
        !(m->features & TT_FEATURE_SCRUBBED)) {
        tool_add(c->problems, "the log holds only a window of the recording, and there "
                              "is no checkpoint from which a replay could start");
    }
    if (look & TOOL_LOOK_PARENTS && m->features & TT_FEATURE_PARENT) {
        check_parents(c, m);
    }
    if (look & TOOL_LOOK_MARKS) {
        check_marks(c);
    }
}

GPtrArray *tool_damage(const char *run, const TtManifest *m, TtLogReader *r,
                       unsigned look)
{
    Check c = check_begin(run);

    check_run(&c, m, r, look);
    g_ptr_array_free(c.notes, true);
    return c.problems;
}

/* What the log names of other runs. */
static void check_frames(Check *c, const TtManifest *m, TtLogReader *r)
{
    g_autofree char *note = tool_frames_note(c->run, m, r);
    ToolReach *reach;

    if (note) {
        tool_add(c->notes, "%s", note);
    }
    if (m->features & TT_FEATURE_FRAMES) {
        reach = tool_reach(c->run, m, r);
        for (guint i = 0; i < reach->lost->len; i++) {
            tool_add(c->problems, "%s: tt info says which positions a replay reaches",
                     (char *)reach->lost->pdata[i]);
        }
        tool_reach_free(reach);
    }
}

int tool_check(const ToolArgs *a)
{
    Check c = check_begin(a->operand[0]);
    TtManifest m;
    TtLogReader *r = tool_open_run_for_check(c.run, &m);
    int result = TOOL_PROBLEM;

    if (r) {
        check_run(&c, &m, r, TOOL_LOOK_REPLAY | TOOL_LOOK_MARKS);
        tool_check_disks(c.run, &m, c.problems);
        check_frames(&c, &m, r);
        if (tool_has(a, "--json")) {
            print_json(&c);
        } else {
            print_text(&c);
        }
        result = c.problems->len ? TOOL_PROBLEM : TOOL_FINE;
        tt_manifest_cleanup(&m);
        tt_log_reader_free(r);
    }
    g_ptr_array_free(c.problems, true);
    g_ptr_array_free(c.notes, true);
    return result;
}
