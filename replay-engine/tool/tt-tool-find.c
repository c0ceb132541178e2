/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt find: the positions at which a condition becomes true. QEMU searches parts of the
 * run, several at a time (tt-tool-part.c); names are turned into addresses here, so
 * that it need not know them.
 */
#include "tt-tool-find.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define PARTS_EACH  4           /* of those that may end early */
#define LIMIT       10000

/* Returns an exit status, having said what is wrong. */
static int understand(ToolFind *f, uint64_t end)
{
    TtDiag diag;

    if (tool_resolve(f->condition, f->symbols, f->offset, &f->resolved, &diag) != TT_OK ||
        tt_cond_parse(f->resolved, &f->cond, &diag) != TT_OK ||
        tt_cond_check(f->cond, f->how, f->from, MIN(f->to, end), &diag) != TT_OK) {
        return tool_usage(f->args->command, "%s", diag.text);
    }
    return TOOL_FINE;
}

/* ---- the parts ---- */

/* Those on the other side of @p are not needed. */
static void drop_others(ToolFind *f, const ToolPart *p)
{
    for (unsigned i = 0; i < f->replays.parts->len; i++) {
        ToolPart *other = f->replays.parts->pdata[i];

        if ((f->which == FIND_FIRST && other->from > p->from) ||
            (f->which == FIND_LAST && other->from < p->from)) {
            tool_part_drop(other);
        }
    }
}

static bool said(void *opaque, ToolPart *p, ToolFinding *f)
{
    ToolFind *find = opaque;

    if (!strcmp(tool_finding_kind(f), "way")) {
        tool_finding_number(f, "low", &p->at);
        tool_find_show_progress(find);
        return false;
    }
    if (!strcmp(tool_finding_kind(f), "hit") && find->which != FIND_ALL) {
        if (find->which == FIND_LAST) {
            g_ptr_array_set_size(p->found, 0);
        }
        drop_others(find, p);
    }
    return true;
}

static void ended(void *opaque, ToolPart *p)
{
    p->at = UINT64_MAX;
    tool_find_show_progress(opaque);
}

static void reverse(GPtrArray *a)
{
    for (unsigned i = 0; i < a->len / 2; i++) {
        gpointer t = a->pdata[i];

        a->pdata[i] = a->pdata[a->len - 1 - i];
        a->pdata[a->len - 1 - i] = t;
    }
}

static bool has_hit(const ToolPart *p)
{
    for (unsigned k = 0; k < p->found->len; k++) {
        if (!strcmp(tool_finding_kind(p->found->pdata[k]), "hit")) {
            return true;
        }
    }
    return false;
}

static void collect(ToolFind *f)
{
    for (unsigned i = 0; i < f->replays.parts->len; i++) {
        const ToolPart *p = f->replays.parts->pdata[i];
        /* Who interrupts it drops all; then there is only one to be shown. */
        bool counts = !p->is_dropped || f->which == FIND_ALL || f->is_interrupted;

        if (f->is_interrupted && f->which == FIND_LAST && has_hit(p)) {
            g_ptr_array_set_size(f->hits, 0);
        } else if (f->is_interrupted && f->which == FIND_FIRST && f->hits->len) {
            return;
        }
        for (unsigned k = 0; counts && k < p->found->len; k++) {
            ToolFinding *one = p->found->pdata[k];

            if (strcmp(tool_finding_kind(one), "hit")) {
                continue;
            }
            if (f->hits->len == f->limit) {
                f->is_cut_short = true;
                return;
            }
            g_ptr_array_add(f->hits, one);
        }
    }
}

/* Only a search that comes from there knows what a value was before a border between
 * two parts. */
static bool is_one_piece(const ToolFind *f)
{
    return f->how & TT_COND_MONOTONE ||
        (f->how & TT_COND_CHANGES && tt_cond_has_at(f->cond));
}

static int search(ToolFind *f, const TtManifest *m, const TtLogReader *r)
{
    uint64_t jobs = f->replays.jobs;
    bool ok;

    if (is_one_piece(f) || f->which == FIND_ALL) {
        tool_cut_for(f->replays.parts, f->run, m, r, f->from, f->to,
                     is_one_piece(f) ? 1 : jobs);
    } else if (f->which == FIND_LAST) {
        tool_cut_back(f->replays.parts, f->run, m, r, f->from, f->to, jobs);
    } else {                        /* it ends when one part has it: short ones */
        tool_cut(f->replays.parts, f->run, m, r, f->from, f->to,
                 jobs > 1 ? jobs * PARTS_EACH : 1);
    }
    if (f->which == FIND_LAST) {
        reverse(f->replays.parts);
    }
    /* one more than is shown, to know whether there are more */
    f->search = (ToolSearch) {
        .condition = f->resolved, .said = said, .opaque = f,
        .how = f->how & TT_COND_CHANGES ? "changes" : f->how & TT_COND_MONOTONE ?
            "monotone" : f->how & TT_COND_WRITTEN ? "written" : NULL,
        .limit = f->which == FIND_FIRST ? 1 : f->which == FIND_LAST ? UINT64_MAX :
            f->limit + 1,
    };
    f->replays.search = &f->search;
    f->replays.is_over = tool_catch_signals();
    ok = tool_parts_run(&f->replays, ended, f);
    tool_find_hide_progress(f);
    f->is_interrupted = *f->replays.is_over;
    if (f->which == FIND_LAST) {
        reverse(f->replays.parts);
    }
    if (!ok) {
        return TOOL_PROBLEM;
    }
    collect(f);
    return tool_find_say(f);
}

/* ---- the command line ---- */

static int take_numbers(ToolFind *f, const ToolArgs *a)
{
    int result = tool_take_part(a, &f->from, &f->to);

    if (result != TOOL_FINE) {
        return result;
    }
    if (!tool_number_option(a, "--limit", LIMIT, &f->limit) ||
        !tool_number_option(a, "--offset", 0, &f->offset)) {
        return TOOL_USAGE;
    }
    if (!f->limit || f->limit > 100000000) {
        return tool_usage(a->command, "--limit takes a number from 1 to 100000000");
    }
    return tool_take_jobs(a, &f->replays);
}

static int take_options(ToolFind *f, const ToolArgs *a)
{
    const ToolCommand *c = a->command;
    bool first = tool_has(a, "--first"), last = tool_has(a, "--last");
    int result = take_numbers(f, a);

    if (result != TOOL_FINE) {
        return result;
    }
    if (first + last + tool_has(a, "--all") > 1) {
        return tool_usage(c, "--first, --last and --all exclude each other");
    }
    f->which = first ? FIND_FIRST : last ? FIND_LAST : FIND_ALL;
    f->how = (tool_has(a, "--changes") ? TT_COND_CHANGES : 0) |
        (tool_has(a, "--monotone") ? TT_COND_MONOTONE : 0) |
        (tool_has(a, "--written") ? TT_COND_WRITTEN : 0);
    if (f->how & TT_COND_MONOTONE && ((tool_has(a, "-j") && f->replays.jobs > 1) || last)) {
        return tool_usage(c, "--monotone finds one position, with one process: leave out "
                             "%s", last ? "--last" : "-j");
    }
    if (tool_has(a, "--offset") && !tool_has(a, "--symbols")) {
        return tool_usage(c, "--offset needs --symbols: it is added to their addresses");
    }
    return TOOL_FINE;
}

static int prepare(ToolFind *f, const ToolArgs *a)
{
    const char *symbols = tool_value(a, "--symbols");
    int result = take_options(f, a);

    if (result != TOOL_FINE) {
        return result;
    }
    f->replays.qemu = tool_find_qemu(a);
    if (!f->replays.qemu) {
        return TOOL_PROBLEM;
    }
    return symbols ? tool_symbols_load(symbols, &f->symbols) : TOOL_FINE;
}

static int find_in(ToolFind *f, const TtManifest *m, const TtLogReader *r)
{
    ToolTotals t = tool_totals(r);
    int result;

    if (!tool_is_replayable(f->run, m, r)) {
        return TOOL_PROBLEM;
    }
    f->end = t.end_pos;
    f->is_torn = tt_log_reader_is_torn(r);
    t.first_pos = tool_first(f->run, m, r);
    result = tool_fit_part(&t, f->from, &f->to);
    f->from = MAX(f->from, t.first_pos);
    result = result == TOOL_FINE ? understand(f, t.end_pos) : result;
    return result == TOOL_FINE ? search(f, m, r) : result;
}

int tool_find(const ToolArgs *a)
{
    ToolFind f = {
        .args = a, .run = a->operand[0], .condition = a->operand[1],
        .replays = {
            .run = a->operand[0],
            .parts = g_ptr_array_new_with_free_func((GDestroyNotify)tool_part_free),
        },
        .is_json = tool_has(a, "--json"), .is_quiet = tool_has(a, "--quiet"),
        .shows_progress = isatty(STDERR_FILENO) && !tool_has(a, "--quiet") &&
            !tool_has(a, "--on"),       /* that shows its own */
        .hits = g_ptr_array_new(),
    };
    int result = prepare(&f, a);
    TtManifest m;
    TtLogReader *r;

    if (result == TOOL_FINE) {
        r = tool_open_run(f.run, &m);
        result = TOOL_PROBLEM;
        if (r) {
            result = find_in(&f, &m, r);
            tt_manifest_cleanup(&m);
            tt_log_reader_free(r);
        }
    }
    g_ptr_array_free(f.hits, true);
    tool_replays_cleanup(&f.replays);
    tool_symbols_free(f.symbols);
    tt_cond_free(f.cond);
    g_free(f.resolved);
    return result;
}
