/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group: info, cut and order of the runs of a group; the other verbs are in
 * tt-tool-groupcheck.c, -grouppoint.c, -groupincident.c, -groupcompare.c and -grouplive.c.
 */
#include "tt-tool-group.h"
#include "run/tt-marks.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- info ---- */

static void print_member_json(const Group *g, unsigned i)
{
    const GroupMember *m = group_at(g, i);
    char uuid[2 * TT_RUN_BYTES + 1];

    tt_run_text(uuid, m->uuid);
    printf("%s{\"name\": ", i ? ", " : "");
    tool_json_string(m->name);
    printf(", \"run\": ");
    tool_json_string(m->run);
    printf(", \"id\": \"%s\", \"first\": %" PRIu64 ", \"end\": %" PRIu64 ", "
           "\"whole\": %s, \"recording\": %s, \"sent\": %u, \"got\": %u, \"outside\": "
           "%" PRIu64 "}", uuid, m->start, m->end, tool_json_bool(m->is_whole),
           tool_json_bool(m->is_live), m->sent->len, m->got->len, m->outside);
}

static int info(const ToolArgs *a, const Group *g)
{
    TtCausalTotals t = tt_causal_totals(g->causal);

    if (tool_has(a, "--json")) {
        tool_json_begin();
        printf("\"group\": ");
        tool_json_string(g->name);
        printf(", \"members\": [");
        for (unsigned i = 0; i < g->members->len; i++) {
            print_member_json(g, i);
        }
        printf("], \"sent\": %" PRIu64 ", \"got\": %" PRIu64 ", \"early\": %" PRIu64
               ", \"lost\": %" PRIu64 ", \"in_flight\": %" PRIu64 ", \"unknown\": %" PRIu64
               "}\n", t.sends, t.deliveries, t.early, t.lost, t.pending, t.unknown);
        return TOOL_FINE;
    }
    printf("%-*s %20s %12s %12s %12s\n", tool_width(g->name, 20), g->name,
           "end", "sent", "got", "from outside");
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);

        printf("%-*s %20" PRIu64 " %12u %12u %12" PRIu64 "%s\n",
               tool_width(m->name, 20), m->name, m->end,
               m->sent->len, m->got->len, m->outside, m->is_live ? "  still recorded" :
               m->is_whole ? "" : "  cut off");
    }
    if (t.early) {
        printf("%" PRIu64 "%s sent before the recording of the sender began\n", t.early,
               t.early == 1 ? " frame was" : " frames were");
    }
    if (t.lost) {
        printf("%" PRIu64 "%s lost: the log of the sender ends too early\n", t.lost,
               t.lost == 1 ? " frame is" : " frames are");
    }
    if (t.pending) {
        printf("%" PRIu64 "%s in flight: not in the logs of their senders yet, which are "
               "still recorded\n", t.pending, t.pending == 1 ? " frame is" : " frames are");
    }
    if (t.unknown) {
        printf("%" PRIu64 "%s sent before the window of the sender or after it, which does "
               "not tell\n", t.unknown, t.unknown == 1 ? " frame was" : " frames were");
    }
    return TOOL_FINE;
}

/* ---- places ---- */

typedef struct Place {
    unsigned member;
    uint64_t pos;
} Place;

static bool find_mark(const GroupMember *m, const char *name, uint64_t *pos)
{
    TtMarkSearch s = { .name = name };
    TtDiag diag;

    if (tt_marks_of_run(m->run, tt_mark_search, &s, &diag) != TT_OK) {
        tool_problem(&diag);
        return false;
    }
    if (!s.is_found) {
        tool_complain("%s has no mark '%s'", m->name, name);
    }
    *pos = s.pos;
    return s.is_found;
}

static bool parse_position(const GroupMember *m, const char *text, uint64_t *pos)
{
    if (*text == '@') {
        if (!find_mark(m, text + 1, pos)) {
            return false;
        }
    } else if (!strcmp(text, "end")) {
        *pos = m->end;
    } else if (!strcmp(text, "start")) {
        *pos = m->start;
    } else if (!tool_parse_number(text, pos)) {
        tool_complain("'%s' is not a position: use a number, start, end or @MARK", text);
        return false;
    }
    if (*pos < m->start || *pos > m->end) {
        tool_complain("position %" PRIu64 " is not in the %s of %s, which goes from "
                      "%" PRIu64 " to %" PRIu64, *pos, m->is_window ? "window" : "run",
                      m->name, m->start, m->end);
        return false;
    }
    return true;
}

static bool parse_place(const Group *g, const char *text, Place *p)
{
    const char *colon = strrchr(text, ':');

    for (p->member = 0; colon && p->member < g->members->len; p->member++) {
        const GroupMember *m = group_at(g, p->member);

        if (strlen(m->name) == (size_t)(colon - text) &&
            !memcmp(m->name, text, colon - text)) {
            return parse_position(m, colon + 1, &p->pos);
        }
    }
    tool_complain("'%s' is not a place: use MEMBER:POSITION (tt group info lists the "
                  "members)", text);
    return false;
}

/* At the end of a run all of it has happened. */
static uint64_t for_index(const Group *g, const Place *p)
{
    return p->pos >= group_at(g, p->member)->end ?
           tt_causal_end_of(g->causal, p->member) : p->pos;
}

/* ---- cut ---- */

static void print_cut(const ToolArgs *a, const Group *g, const uint64_t *at)
{
    if (tool_has(a, "--json")) {
        tool_json_begin();
        printf("\"cut\": {");
    }
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);
        uint64_t pos = MIN(at[i], m->end);

        if (tool_has(a, "--json")) {
            printf("%s", i ? ", " : "");
            tool_json_string(m->name);
            printf(": %" PRIu64, pos);
        } else {
            printf("%-*s %20" PRIu64 "%s\n", tool_width(m->name, 20), m->name, pos,
                   at[i] >= m->end ? "  end" : "");
        }
    }
    if (tool_has(a, "--json")) {
        puts("}}");
    }
}

/* The cut through a place; with --at-most, the greatest that is after none of the places,
 * that one included. */
static int cut(const ToolArgs *a, const Group *g)
{
    g_autofree uint64_t *at = g_new(uint64_t, g->members->len);
    const char *text;
    unsigned next = 0;
    Place p;
    TtDiag diag;

    if (!a->operand[2] || a->operand[3]) {
        return tool_usage(a->command, "tt group cut needs one place, MEMBER:POSITION");
    }
    if (!parse_place(g, a->operand[2], &p)) {
        return TOOL_PROBLEM;
    }
    memset(at, 0xff, g->members->len * sizeof(*at));
    at[p.member] = for_index(g, &p);
    if (!tool_has(a, "--at-most")) {
        if (tt_causal_cut(g->causal, p.member, at[p.member], at, &diag)) {
            return tool_problem(&diag);
        }
    } else {
        while ((text = tool_next_value(a, "--at-most", &next))) {
            if (!parse_place(g, text, &p)) {
                return TOOL_PROBLEM;
            }
            at[p.member] = MIN(at[p.member], for_index(g, &p));
        }
        tt_causal_cut_below(g->causal, at, at);
        if (tt_causal_check_windows(g->causal, at, &diag)) {
            return tool_problem(&diag);
        }
    }
    print_cut(a, g, at);
    return TOOL_FINE;
}

/* ---- order ---- */

static int order(const ToolArgs *a, const Group *g)
{
    static const char *const words[] = {
        [TT_CAUSAL_SAME] = "the same", [TT_CAUSAL_BEFORE] = "before",
        [TT_CAUSAL_AFTER] = "after", [TT_CAUSAL_CONCURRENT] = "concurrent",
        [TT_CAUSAL_BOTH] = "both",
    };
    Place p, q;
    TtCausalOrder o;
    TtDiag diag;

    if (!a->operand[2] || !a->operand[3]) {
        return tool_usage(a->command, "tt group order needs two places, MEMBER:POSITION");
    }
    if (!parse_place(g, a->operand[2], &p) || !parse_place(g, a->operand[3], &q)) {
        return TOOL_PROBLEM;
    }
    o = tt_causal_order(g->causal, p.member, p.pos, q.member, q.pos);
    if (o == TT_CAUSAL_CONCURRENT &&
        tt_causal_check_order(g->causal, p.member, p.pos, q.member, q.pos, &diag)) {
        return tool_problem(&diag);
    }
    if (tool_has(a, "--json")) {
        tool_json_begin();
        printf("\"order\": \"%s\"}\n", words[o]);
    } else {
        puts(words[o]);
    }
    return TOOL_FINE;
}

typedef int GroupVerb(const ToolArgs *a, const Group *g);

/* Does the verb take what is given? */
static int check_options(const ToolArgs *a, GroupVerb *verb)
{
    static const char *const of_live[] = { "--at", "--to", "--hub", "--qemu", "--without",
                                           "--print", "--exact", "--frames" };
    bool is_live = verb == group_live, has_places = verb == cut || verb == order ||
        verb == group_compare;

    if (tool_has(a, "--at-most") && verb != cut) {
        return tool_usage(a->command, "--at-most is only for tt group cut");
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(of_live); i++) {
        if (tool_has(a, of_live[i]) && !is_live) {
            return tool_usage(a->command, "%s is only for tt group live", of_live[i]);
        }
    }
    if (a->rest && !is_live) {
        return tool_usage(a->command, "options of QEMU are only for tt group live");
    }
    if (is_live && tool_has(a, "--json")) {
        return tool_usage(a->command, "tt group live has no --json");
    }
    if (tool_has(a, "--frames") && !*tool_value(a, "--frames")) {
        return tool_usage(a->command, "--frames is empty: give the directory of the frame "
                                      "stores");
    }
    if (tool_has(a, "--exact") && tool_has(a, "--print")) {
        return tool_usage(a->command, "--exact and --print exclude each other: no command of "
                                      "QEMU's does what a member did");
    }
    if (is_live && !*(tool_value(a, "--to") ?: "")) {
        return tool_usage(a->command, "--to is missing: give the name of a new "
                                      "directory");
    }
    if (!has_places && a->operand[2]) {
        return tool_usage(a->command, "tt group %s takes no place", a->operand[0]);
    }
    return TOOL_FINE;
}

int tool_group(const ToolArgs *a)
{
    static const struct {
        const char *name;
        GroupVerb *run;
    } verbs[] = { { "info", info }, { "check", group_check },
                  { "checkpoints", group_checkpoints }, { "cut", cut },
                  { "order", order }, { "incidents", group_incidents },
                  { "live", group_live }, { "compare", group_compare } };
    g_autoptr(Group) g = NULL;
    int wrong;

    if (!strcmp(a->operand[0], "checkpoint")) {
        return check_options(a, NULL) ?: group_checkpoint(a);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(verbs); i++) {
        if (!strcmp(a->operand[0], verbs[i].name)) {
            wrong = check_options(a, verbs[i].run);
            if (wrong) {
                return wrong;
            }
            g = group_load(a->operand[1]);
            return g ? verbs[i].run(a, g) : TOOL_PROBLEM;
        }
    }
    return tool_usage(a->command, "'%s' is not a command of tt group: use info, check, "
                      "checkpoint, checkpoints, cut, order, incidents, live or compare",
                      a->operand[0]);
}
