/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Positions on the command line: a number or @MARK; and the part of a run that --from and
 * --to mean.
 */
#include "tt-tool.h"
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

int tool_position(const ToolArgs *a, const char *what, const char *text, uint64_t *pos)
{
    if (*text == '@' && text[1]) {
        return find_mark(a->operand[0], text + 1, pos);
    }
    return tool_take_number(a, what, "a position, a number or @MARK", text, pos) ?
        TOOL_FINE : TOOL_USAGE;
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
