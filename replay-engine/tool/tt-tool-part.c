/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pieces of a run, re-executed by QEMU, here or elsewhere (tt-tool-place.h):
 * -tt replay,verify=FROM-TO, find=FROM-TO, plugin=FROM-TO, origin=..., or a branch trace.
 * Lines that begin with "tt-verify ", "tt-find ", "tt-plugin " or "tt-origin " are their
 * results; the rest is kept, and shown when something is wrong.
 */
#include "tt-tool-place.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#define VERIFY      "tt-verify "
#define FIND        "tt-find "
#define PLUGIN      "tt-plugin "
#define ORIGIN      "tt-origin "
#define LINE_MAX_   8192        /* of one that is looked at */
#define OTHER_MAX   (1u << 20)  /* of what else a process prints */

ToolPart *tool_part_new(uint64_t from, uint64_t to)
{
    ToolPart *p = g_new0(ToolPart, 1);

    p->from = from;
    p->to = to;
    p->line = g_string_new(NULL);
    p->found = g_ptr_array_new_with_free_func(
        (GDestroyNotify)tool_finding_free);
    p->other = g_string_new(NULL);
    p->first_wrong = UINT64_MAX;
    return p;
}

void tool_part_free(ToolPart *p)
{
    if (p) {
        g_string_free(p->line, true);
        g_ptr_array_free(p->found, true);
        g_string_free(p->other, true);
        g_free(p->dir);
        g_free(p->log);
        g_free(p->lost);
        g_free(p);
    }
}

/* ---- what is executed ---- */

/* Each of several searches says what is true at its beginning; only the first knows
 * that nothing was before it. */
static char *search_value(const ToolReplays *r, const ToolPart *p, const char *dir,
                          const char *to)
{
    g_autofree char *condition = tool_escaped(r->search->condition);
    bool is_later = false;

    for (unsigned i = 0; i < r->parts->len; i++) {
        is_later |= ((ToolPart *)r->parts->pdata[i])->from < p->from;
    }
    return g_strdup_printf("replay,dir=%s,find=%" PRIu64 "-%s,find-condition=%s,"
                           "find-how=limit=%" PRIu64 "%s%s%s", dir, p->from, to,
                           condition, r->search->limit,
                           is_later ? ":later-part" : "",
                           r->search->how ? ":" : "", r->search->how ?: "");
}

static char *origin_value(const ToolReplays *r, const char *dir)
{
    g_autofree char *asked = tool_escaped(r->search->origin);

    return g_strdup_printf("replay,dir=%s,origin=%s,origin-how=%s", dir, asked,
                           r->search->origin_how);
}

static char *plugin_value(const ToolReplays *r, const ToolPart *p, const char *dir,
                          const char *to)
{
    g_autofree char *load = tool_escaped(r->plugin);

    return g_strdup_printf("replay,dir=%s,plugin=%" PRIu64 "-%s,plugin-load=%s", dir,
                           p->from, to, load);
}

/* What stands after -tt. NULL: said why. */
static char *tt_value(const ToolReplays *r, const ToolPart *p)
{
    g_autofree char *dir = tool_option_value(r->run);
    g_autofree char *to = p->to == UINT64_MAX ? g_strdup("") :
        g_strdup_printf("%" PRIu64, p->to);
    g_autofree char *trace = p->trace && dir ? tool_option_value(p->trace) : NULL;

    if (!dir || (p->trace && !trace)) {
        return NULL;
    }
    return r->search && r->search->origin ? origin_value(r, dir) :
        r->search ? search_value(r, p, dir, to) :
        r->plugin ? plugin_value(r, p, dir, to) : trace ?
        g_strdup_printf("replay,dir=%s,trace=%s,trace-part=%" PRIu64 "-%s", dir,
                        trace, p->from, to) :
        g_strdup_printf("replay,dir=%s,verify=%" PRIu64 "-%s", dir, p->from, to);
}

char **tool_part_command(const ToolReplays *r, const ToolPart *p)
{
    g_autofree char *value = tt_value(r, p);
    const char *const argv[] = {
        r->qemu, "-tt", value, "-nodefaults", "-display", "none", "-serial",
        "none", "-monitor", "none", p->accel ? "-accel" : p->log ? "-D" : NULL,
        p->accel ?: p->log, p->log ? "-d" : NULL, "plugin", NULL,
    };

    return value ? g_strdupv((char **)argv) : NULL;
}

/* ---- what they say ---- */

/* The end of an interval, after all that is said of it. */
static void take_interval(ToolPart *p, const ToolFinding *f)
{
    const char *how = tool_finding_get(f, "how");
    uint64_t from, to;

    if (!how || !tool_finding_number(f, "from", &from) ||
        !tool_finding_number(f, "to", &to)) {
        return;                         /* another version's */
    }
    if (!strcmp(how, "equal")) {
        p->n_intervals++;
    } else if (!strcmp(how, "damaged")) {
        p->n_damaged++;                 /* nobody knows whether it is exact */
    } else if (p->first_wrong == UINT64_MAX) {
        p->first_wrong = from;
        p->first_wrong_to = to;
        p->n_first = p->found->len;
    }
}

/* True: @f is kept. */
static bool take_other(const ToolReplays *r, ToolPart *p, ToolFinding *f)
{
    if (r->search) {
        return r->search->said(r->search->opaque, p, f);
    }
    if (r->plugin || strcmp(tool_finding_kind(f), "interval")) {
        return true;
    }
    take_interval(p, f);
    return false;
}

static void take_line(const ToolReplays *r, ToolPart *p)
{
    g_autofree char *line = g_strdup(p->line->str);
    const char *prefix = r->plugin ? PLUGIN : !r->search ? VERIFY :
        r->search->origin ? ORIGIN : FIND;
    ToolFinding *f;
    uint64_t code, whole;

    tt_replace_controls(line, '?');
    if (!g_str_has_prefix(line, prefix)) {
        if (p->other->len < OTHER_MAX) {
            g_string_append_printf(p->other, "%s\n", line);
        }
        return;
    }
    f = tool_finding_parse(line + strlen(prefix));
    if (!strcmp(tool_finding_kind(f), "end")) {
        p->has_ended = tool_finding_number(f, "code", &code) &&
            tool_finding_number(f, "whole", &whole) &&
            (code == TOOL_FINE || code == TOOL_PROBLEM || code == TOOL_DIVERGED);
        p->code = p->has_ended ? (int)code : TOOL_PROBLEM;
        p->is_whole = p->has_ended && whole;
        tool_finding_number(f, "left-out", &p->left_out);
    } else if (take_other(r, p, f)) {
        g_ptr_array_add(p->found, f);
        return;
    }
    tool_finding_free(f);
}

void tool_part_take(const ToolReplays *r, ToolPart *p, const char *buf, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (buf[i] == '\n') {
            take_line(r, p);
            g_string_truncate(p->line, 0);
        } else if (p->line->len < LINE_MAX_) {
            g_string_append_c(p->line, buf[i]);
        }
    }
}

void tool_part_reset(ToolPart *p)
{
    g_string_truncate(p->line, 0);
    g_ptr_array_set_size(p->found, 0);
    g_string_truncate(p->other, 0);
    p->n_intervals = p->n_damaged = p->at = p->left_out = 0;
    p->first_wrong = UINT64_MAX;
    p->n_first = 0;
    p->has_ended = p->is_whole = false;
    p->signal = p->status = p->code = 0;
}

void tool_part_finish(const ToolReplays *r, ToolPart *p, int signal, int status)
{
    p->is_running = false;
    p->signal = signal;
    p->status = signal ? 0 : status;
    if (p->trace && !signal) {
        p->code = status;
    } else if (!p->has_ended || signal || status != p->code) {
        p->has_ended = p->is_whole = false;
        p->code = TOOL_PROBLEM;
    } else if (r->search || r->plugin) {
        return;
    } else if (p->code == TOOL_DIVERGED && p->first_wrong == UINT64_MAX) {
        p->first_wrong = p->from;       /* it did not say where */
        p->first_wrong_to = p->to;
        p->n_first = p->found->len;
    }
    p->is_whole &= p->n_intervals || p->first_wrong != UINT64_MAX;
}

char *tool_part_ending(const ToolPart *p)
{
    return p->lost ? g_strdup(p->lost) :
        p->signal ? g_strdup_printf("QEMU was killed by signal %d (%s)",
                                       p->signal,
                                       g_strsignal(p->signal)) :
        p->has_ended ? NULL : g_strdup("QEMU ended without a result");
}

void tool_part_lines(const ToolPart *p, bool is_told, GPtrArray *all)
{
    g_auto(GStrv) lines = g_strsplit(p->other->str, "\n", -1);

    for (char **l = lines; *l; l++) {
        const char *text = *l + (g_str_has_prefix(*l, "tt: ") ? strlen("tt: ") : 0);

        if (*text && !(is_told && g_str_has_prefix(text, "the replay cannot go on"))) {
            tool_add(all, "%s", text);
        }
    }
}

void tool_part_troubles(const ToolPart *p, GPtrArray *all)
{
    g_autofree char *ending = tool_part_ending(p);
    bool is_told = false;

    for (unsigned i = 0; i < p->found->len; i++) {
        const ToolFinding *f = p->found->pdata[i];

        if (!strcmp(tool_finding_kind(f), "failed")) {
            tool_add(all, "%s", tool_finding_get(f, "text") ?: "?");
            is_told = true;
        }
    }
    if (!p->is_whole) {
        tool_part_lines(p, is_told, all);
    }
    if (ending && !p->is_dropped) {
        tool_add(all, "%s", ending);
    }
}

/* ---- all of them ---- */

static volatile sig_atomic_t is_over;

static void end_soon(int sig)
{
    is_over = 1;
}

const volatile sig_atomic_t *tool_catch_signals(void)
{
    struct sigaction act = { .sa_handler = end_soon };       /* and no restart */

    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (!tool_is_ignored(SIGHUP)) {
        sigaction(SIGHUP, &act, NULL);
    }
    return &is_over;
}

void tool_part_drop(ToolPart *p)
{
    if (!p->is_dropped) {
        p->is_dropped = true;
        if (p->pid > 0 && p->is_running) {
            kill(p->pid, SIGKILL);
        }
    }
}

static void drop_if_over(ToolReplays *r)
{
    for (unsigned i = 0; r->is_over && *r->is_over && i < r->parts->len; i++) {
        ToolPart *p = r->parts->pdata[i];

        if (!p->has_ended) {
            tool_part_drop(p);
        }
    }
}

bool tool_parts_run(ToolReplays *r, ToolDone *done, void *opaque)
{
    const ToolPlace *place = r->slurm ? &tool_slurm : &tool_local;
    uint64_t most = place->has_queue ? UINT64_MAX : r->jobs;
    unsigned next = 0, running;

    do {
        drop_if_over(r);
        running = 0;
        for (unsigned i = 0; i < next; i++) {
            running += ((ToolPart *)r->parts->pdata[i])->is_running;
        }
        while (running < most && next < r->parts->len) {
            ToolPart *p = r->parts->pdata[next++];

            if (!p->is_dropped) {
                if (!place->start(r, p)) {
                    return false;
                }
                running++;
            }
        }
        if (running && !place->serve(r, done, opaque)) {
            return false;
        }
    } while (running);
    return true;
}

/* ---- how many, and where ---- */

int tool_take_jobs(const ToolArgs *a, ToolReplays *r)
{
    const char *on = tool_value(a, "--on");
    uint64_t most = on ? TOOL_TASKS_MAX : TOOL_JOBS_MAX;

    if (!tool_number_option(a, "-j", on ? TOOL_TASKS_USUAL : 1, &r->jobs)) {
        return TOOL_USAGE;
    }
    if (r->jobs < 1 || r->jobs > most) {
        return tool_usage(a->command, "-j takes a number from 1 to %" PRIu64 "%s", most,
                          on ? " with --on" : "");
    }
    return on ? tool_slurm_new(a, on, r) : TOOL_FINE;
}

void tool_replays_cleanup(ToolReplays *r)
{
    tool_slurm_free(r->slurm);
    g_ptr_array_free(r->parts, true);
    g_free((char *)r->qemu);
}
