/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Positions on the command line: a number, start, end or @MARK; and the part of a run that
 * --from and --to mean.
 */
#include "tt-tool.h"
#include "log/tt-logparts.h"
#include "run/tt-marks.h"

#include <inttypes.h>

static int find_mark(const char *run, const char *name, uint64_t *pos)
{
    TtMarkSearch s = { .name = name };
    TtDiag diag;

    if (!tool_is_run(run)) {
        return TOOL_PROBLEM;
    }
    if (tt_marks_of_run(run, tt_mark_search, &s, &diag) != TT_OK) {
        return tool_problem(&diag);
    }
    if (!s.is_found) {
        tool_complain("there is no mark '%s' in the run '%s': tt log --kind mark and "
                      "RUN/marks have them", name, run);
        return TOOL_USAGE;
    }
    *pos = s.pos;
    return TOOL_FINE;
}

uint64_t tool_first(const char *run, const TtManifest *m, const TtLogReader *r)
{
    TtPageStore *store = NULL;
    uint64_t start;

    if (!tt_log_reader_is_window(r)) {
        return tool_totals(r).first_pos;
    }
    if (tt_runstore_open(run, m, 0, &store, NULL) != TT_OK) {
        store = NULL;
    }
    if (!tool_start(store, r, &start)) {
        start = tool_totals(r).first_pos;
    }
    tt_pagestore_free(store);
    return start;
}

/* Without a word on the log, which the command will read itself. */
static int find_ends(const char *run, uint64_t *start, uint64_t *end)
{
    g_autofree char *path = g_build_filename(run, "manifest", NULL);
    TtManifest m = { 0 };
    TtLogReader *r = NULL;
    TtDiag diag;
    TtIo *io;

    if (!tool_is_run(run)) {
        return TOOL_PROBLEM;
    }
    if (tt_manifest_load(path, &m, &diag) == TT_OK &&
        tt_logparts_open(run, &io, &diag) == TT_OK) {
        tt_log_reader_open_part(io, &r, &diag);
    }
    if (r) {
        *start = tool_first(run, &m, r);
        *end = tool_totals(r).end_pos;
    }
    tt_log_reader_free(r);
    tt_manifest_cleanup(&m);
    return r ? TOOL_FINE : tool_problem(&diag);
}

int tool_position(const ToolArgs *a, const char *what, const char *text, uint64_t *pos)
{
    uint64_t other;

    if (*text == '@' && text[1]) {
        return find_mark(a->operand[0], text + 1, pos);
    }
    if (!strcmp(text, "start")) {
        return find_ends(a->operand[0], pos, &other);
    }
    if (!strcmp(text, "end")) {
        return find_ends(a->operand[0], &other, pos);
    }
    return tool_take_number(a, what, TOOL_POSITION_IS, text, pos) ? TOOL_FINE : TOOL_USAGE;
}

static int position_option(const ToolArgs *a, const char *option, uint64_t fallback,
                           uint64_t *pos)
{
    const char *text = tool_value(a, option);

    *pos = fallback;
    return text ? tool_position(a, option, text, pos) : TOOL_FINE;
}

int tool_take_bounds(const ToolArgs *a, uint64_t *from, uint64_t *to)
{
    int result = position_option(a, "--from", 0, from);

    if (!g_strcmp0(tool_value(a, "--to"), "end")) {     /* with what happened there */
        *to = UINT64_MAX;
        return result;
    }
    return result == TOOL_FINE ? position_option(a, "--to", UINT64_MAX, to) : result;
}

int tool_take_part(const ToolArgs *a, uint64_t *from, uint64_t *to)
{
    int result = tool_take_bounds(a, from, to);

    if (result == TOOL_FINE && *to <= *from) {
        return tool_usage(a->command, "--to must be above --from");
    }
    return result;
}

void tool_note_beyond(const TtLogReader *r, uint64_t from)
{
    ToolTotals t = tool_totals(r);

    if (from > t.end_pos) {
        g_autofree char *text = g_strdup_printf("--from %" PRIu64 " is behind the end of the "
                                                "run, position %" PRIu64, from, t.end_pos);

        tool_note(text);
    }
}

int tool_fit_part(const ToolTotals *t, uint64_t from, uint64_t *to)
{
    if (from >= t->end_pos) {
        tool_complain("--from %" PRIu64 " is not before the end of the run, position %"
                      PRIu64, from, t->end_pos);
        return TOOL_USAGE;
    }
    if (*to <= t->first_pos) {
        tool_complain("--to %" PRIu64 " is not behind the beginning of the run, position %"
                      PRIu64, *to, t->first_pos);
        return TOOL_USAGE;
    }
    if (*to > t->end_pos) {
        *to = UINT64_MAX;
    }
    return TOOL_FINE;
}
