/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pieces of a run, re-executed by processes of QEMU: -tt replay,verify=FROM-TO,
 * find=FROM-TO, plugin=FROM-TO, origin=..., or a branch trace. Lines that begin with
 * "tt-verify ", "tt-find ", "tt-plugin " or "tt-origin " are their results; the rest is
 * kept, and shown when something is wrong.
 */
#include "tt-tool-verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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
    p->fd = -1;
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
        g_free(p);
    }
}

/* ---- processes ---- */

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

static void child(const ToolReplays *r, const ToolPart *p, const char *value,
                  int out)
{
    const char *const argv[] = {
        r->qemu, "-tt", value, "-nodefaults", "-display", "none", "-serial",
        "none", "-monitor", "none", p->accel ? "-accel" : p->log ? "-D" : NULL,
        p->accel ?: p->log, p->log ? "-d" : NULL, "plugin", NULL,
    };
    int null = open("/dev/null", O_RDONLY);

    prctl(PR_SET_PDEATHSIG, SIGKILL);   /* nobody would read what it says */
    signal(SIGPIPE, SIG_DFL);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    if (p->dir && chdir(p->dir)) {
        fprintf(stderr, "cannot work in '%s': %s\n", p->dir, g_strerror(errno));
        _exit(127);
    }
    execv(r->qemu, (char **)argv);
    fprintf(stderr, "cannot run '%s': %s\n", r->qemu, g_strerror(errno));
    _exit(127);
}

static bool start(const ToolReplays *r, ToolPart *p)
{
    g_autofree char *value = tt_value(r, p);
    int ends[2];

    if (!value) {
        return false;
    }
    if (pipe(ends)) {
        tool_complain("cannot create a pipe: %s", g_strerror(errno));
        return false;
    }
    fflush(stdout);
    p->pid = fork();
    if (p->pid == 0) {
        close(ends[0]);
        child(r, p, value, ends[1]);
    }
    close(ends[1]);
    if (p->pid < 0) {
        close(ends[0]);
        tool_complain("cannot start a process: %s", g_strerror(errno));
        return false;
    }
    p->fd = ends[0];
    return true;
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
    const char *prefix = r->search ? (r->search->origin ? ORIGIN : FIND) : r->plugin ? PLUGIN : VERIFY;
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
    } else if (take_other(r, p, f)) {
        g_ptr_array_add(p->found, f);
        return;
    }
    tool_finding_free(f);
}

static void take_bytes(const ToolReplays *r, ToolPart *p, const char *buf, ssize_t n)
{
    for (ssize_t i = 0; i < n; i++) {
        if (buf[i] == '\n') {
            take_line(r, p);
            g_string_truncate(p->line, 0);
        } else if (p->line->len < LINE_MAX_) {
            g_string_append_c(p->line, buf[i]);
        }
    }
}

static void finish(const ToolReplays *r, ToolPart *p)
{
    int status = 0;

    close(p->fd);
    p->fd = -1;
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) {
    }
    p->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    p->status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    if (p->trace && WIFEXITED(status)) {
        p->code = WEXITSTATUS(status);
    } else if (!p->has_ended || !WIFEXITED(status) ||
               WEXITSTATUS(status) != p->code) {
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
    return p->signal ? g_strdup_printf("QEMU was killed by signal %d (%s)",
                                       p->signal,
                                       g_strsignal(p->signal)) :
        p->has_ended ? NULL : g_strdup("QEMU ended without a result");
}

/* ---- all of them ---- */

/* Waits until one says something. False: an error. */
static bool serve(ToolReplays *r, void (*done)(void *opaque, ToolPart *p),
                  void *opaque)
{
    struct pollfd fds[TOOL_JOBS_MAX];
    ToolPart *who[TOOL_JOBS_MAX];
    unsigned n = 0;
    char buf[4096];

    for (unsigned i = 0; i < r->parts->len && n < TOOL_JOBS_MAX; i++) {
        ToolPart *p = r->parts->pdata[i];

        if (p->fd >= 0) {
            fds[n] = (struct pollfd) { p->fd, POLLIN, 0 };
            who[n++] = p;
        }
    }
    if (poll(fds, n, -1) < 0) {
        return errno == EINTR;
    }
    for (unsigned i = 0; i < n; i++) {
        ssize_t got = fds[i].revents ? read(fds[i].fd, buf, sizeof(buf)) : -1;

        if (got > 0) {
            take_bytes(r, who[i], buf, got);
        } else if (fds[i].revents && (got == 0 || errno != EINTR)) {
            finish(r, who[i]);
            done(opaque, who[i]);
        }
    }
    return true;
}

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
    sigaction(SIGHUP, &act, NULL);
    return &is_over;
}

void tool_part_drop(ToolPart *p)
{
    if (!p->is_dropped) {
        p->is_dropped = true;
        if (p->fd >= 0) {
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

bool tool_parts_run(ToolReplays *r, void (*done)(void *opaque, ToolPart *p),
                    void *opaque)
{
    unsigned next = 0, running;

    do {
        drop_if_over(r);
        running = 0;
        for (unsigned i = 0; i < next; i++) {
            running += ((ToolPart *)r->parts->pdata[i])->fd >= 0;
        }
        while (running < r->jobs && next < r->parts->len) {
            ToolPart *p = r->parts->pdata[next++];

            if (!p->is_dropped) {
                if (!start(r, p)) {
                    return false;
                }
                running++;
            }
        }
        if (running && !serve(r, done, opaque)) {
            return false;
        }
    } while (running);
    return true;
}
