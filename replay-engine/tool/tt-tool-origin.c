/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt origin: where a value came from. One process of QEMU follows it through the run;
 * names are turned into addresses here.
 */
#include "tt-tool-find.h"
#include "tt-tool-origin.h"
#include "debug/tt-flow-place.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define DEPTH   3
#define NODES   100
#define WITHIN  UINT64_C(10000000000)

static bool said(void *opaque, ToolPart *p, ToolFinding *f)
{
    ToolOrigin *o = opaque;

    if (strcmp(tool_finding_kind(f), "way")) {
        return true;
    }
    if (o->shows_progress) {
        fprintf(stderr, "\r%u found, at position %s   ", p->found->len,
                tool_finding_get(f, "position") ?: "?");
        fflush(stderr);
    }
    return false;
}

static void ended(void *opaque, ToolPart *p)
{
    ToolOrigin *o = opaque;

    if (o->shows_progress) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
    }
}

static int take_options(ToolOrigin *o, const ToolArgs *a)
{
    const ToolCommand *c = a->command;
    int result;

    if (!tool_number_option(a, "--depth", DEPTH, &o->depth) ||
        !tool_number_option(a, "--nodes", NODES, &o->nodes) ||
        !tool_number_option(a, "--within", WITHIN, &o->within) ||
        !tool_number_option(a, "--offset", 0, &o->offset)) {
        return TOOL_USAGE;
    }
    result = tool_position(a, "POS", a->operand[1], &o->pos);
    if (result != TOOL_FINE) {
        return result;
    }
    if (!o->nodes || o->nodes > 10000 || o->depth > 64 || !o->within) {
        return tool_usage(c, "--nodes takes a number from 1 to 10000, --depth from 0 to "
                          "64, --within from 1");
    }
    if (tool_has(a, "--offset") && !tool_has(a, "--symbols")) {
        return tool_usage(c, "--offset needs --symbols: it is added to their addresses");
    }
    return TOOL_FINE;
}

/* What is asked about, without names. NULL: @diag says what is wrong; QEMU would find that out
 * only after the replay. */
static char *place_of(const ToolOrigin *o, TtDiag *diag)
{
    g_autofree char *typed = g_strstrip(g_strdup(o->place)), *place = NULL;
    TtFlowPlace reg;
    TtCond *c;

    if (*typed == '$') {
        place = g_strdup(typed);
    } else if (tool_resolve_place(o->place, o->symbols, o->offset, &place, diag) != TT_OK) {
        return NULL;
    }
    g_strchomp(place);
    if (strchr(place, ';')) {
        tt_fail(diag, TT_ERR_FORMAT, "PLACE has a ';'");
        return NULL;
    }
    if (tt_flow_place_asked(place, o->place, &reg, &c, diag) != TT_OK) {
        return NULL;
    }
    tt_cond_free(c);
    return g_steal_pointer(&place);
}

static int prepare(ToolOrigin *o, const ToolArgs *a)
{
    const char *symbols = tool_value(a, "--symbols");
    int result = take_options(o, a);
    g_autofree char *place = NULL;
    TtDiag diag;

    if (result != TOOL_FINE) {
        return result;
    }
    o->replays.qemu = tool_find_qemu(a);
    if (!o->replays.qemu) {
        return TOOL_PROBLEM;
    }
    result = symbols ? tool_symbols_load(symbols, &o->symbols) : TOOL_FINE;
    if (result != TOOL_FINE) {
        return result;
    }
    o->lines = symbols ? tool_lines_open(symbols) : NULL;
    place = place_of(o, &diag);
    if (!place) {
        return tool_usage(a->command, "%s", diag.text);
    }
    o->asked = g_strdup_printf("%" PRIu64 " %s", o->pos, place);
    o->how = g_strdup_printf("depth=%" PRIu64 ":nodes=%" PRIu64 ":within=%" PRIu64,
                             o->depth, o->nodes, o->within);
    return TOOL_FINE;
}

static int look_in(ToolOrigin *o, const TtManifest *m, const TtLogReader *r)
{
    ToolTotals t = tool_totals(r);

    if (!tool_is_replayable(o->run, m, r)) {
        return TOOL_PROBLEM;
    }
    t.first_pos = tool_first(o->run, m, r);
    if (o->pos < t.first_pos || o->pos > t.end_pos) {
        tool_complain("position %" PRIu64 " is outside the run, which goes from %" PRIu64
                      " to %" PRIu64, o->pos, t.first_pos, t.end_pos);
        return TOOL_USAGE;
    }
    o->disks = m->disks;
    o->n_disks = m->n_disks;
    o->search = (ToolSearch) {
        .origin = o->asked, .origin_how = o->how, .said = said, .opaque = o,
    };
    o->replays.search = &o->search;
    o->replays.is_over = tool_catch_signals();
    g_ptr_array_add(o->replays.parts, tool_part_new(0, o->pos));
    if (!tool_parts_run(&o->replays, ended, o)) {
        return TOOL_PROBLEM;
    }
    o->is_interrupted = *o->replays.is_over;
    return tool_origin_say(o);
}

int tool_origin(const ToolArgs *a)
{
    ToolOrigin o = {
        .args = a, .run = a->operand[0], .place = a->operand[2],
        .replays = {
            .run = a->operand[0], .jobs = 1,
            .parts = g_ptr_array_new_with_free_func((GDestroyNotify)tool_part_free),
        },
        .is_json = tool_has(a, "--json"),
        .shows_progress = isatty(STDERR_FILENO) && !tool_has(a, "--quiet"),
    };
    int result = prepare(&o, a);
    TtManifest m;
    TtLogReader *r;

    if (result == TOOL_FINE) {
        r = tool_open_run(o.run, &m);
        result = TOOL_PROBLEM;
        if (r) {
            result = look_in(&o, &m, r);
            tt_manifest_cleanup(&m);
            tt_log_reader_free(r);
        }
    }
    g_ptr_array_free(o.replays.parts, true);
    tool_symbols_free(o.symbols);
    tool_lines_free(o.lines);
    g_free(o.asked);
    g_free(o.how);
    g_free((char *)o.replays.qemu);
    return result;
}
