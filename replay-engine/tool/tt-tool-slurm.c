/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parts of a run, executed by tasks of Slurm: --on slurm. All are submitted at once, as a
 * job array. What they say goes into a directory that all nodes see, which is read while
 * they run. Those that are lost are submitted again, as an array of their own.
 */
#include "tt-tool-slurm.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define LOOK_MS     200         /* at the files */
#define ASK_MIN_US  1000000     /* between two questions to the controller; later more, */
#define ASK_MAX_US  10000000    /* a thirtieth of the time since the first */
#define CANCEL_US   15000000    /* for tasks to end in */

static void task_free(void *opaque)
{
    ToolSlurmTask *t = opaque;

    g_free(t->job);
    g_free(t);
}

/* ---- the directory ---- */

static const char script[] =
    "#!/bin/sh\n"
    "# A task of tt.\n"
    "me=%s/$SLURM_ARRAY_TASK_ID.$1\n"
    "[ -r \"$me.command\" ] || exit %d\n"
    "tell() { echo \"$*\" > \"$me.new\" && mv \"$me.new\" \"$me.end\"; exit 0; }\n"
    ". \"$me.command\"\n";

const char *tool_slurm_dir(ToolSlurm *s)
{
    g_autofree char *dir = g_build_filename(s->beside, "tt-slurm-XXXXXX", NULL);
    g_autofree char *quoted = NULL, *text = NULL;

    if (s->dir) {
        return s->dir;
    }
    if (!tool_is_fit(dir)) {
        return NULL;
    }
    if (!g_mkdtemp(dir)) {
        tool_complain("cannot make a directory in '%s' (%s): name another that all nodes "
                      "see, with --on slurm,scratch=DIR", s->beside, g_strerror(errno));
        return NULL;
    }
    s->dir = g_steal_pointer(&dir);
    s->name = g_path_get_basename(s->dir);
    s->script = g_build_filename(s->dir, "task", NULL);
    quoted = g_shell_quote(s->dir);
    text = g_strdup_printf(script, quoted, TOOL_SLURM_BLIND);
    return tool_slurm_put(s->script, text) ? s->dir : NULL;
}

/* ---- submitting ---- */

static bool start(ToolReplays *r, ToolPart *p)
{
    ToolSlurmTask *t = g_new0(ToolSlurmTask, 1);

    t->part = p;
    t->index = r->slurm->tasks->len;
    p->is_running = true;
    g_ptr_array_add(r->slurm->tasks, t);
    return true;
}

static bool is_new(const ToolSlurmTask *t)
{
    return !t->job && t->part->is_running && !t->part->is_dropped;
}

static bool submit(ToolSlurm *s, const ToolReplays *r)
{
    g_autoptr(GString) array = g_string_new(NULL);
    g_autofree char *job = NULL;

    for (unsigned i = 0; i < s->tasks->len; i++) {
        ToolSlurmTask *t = s->tasks->pdata[i];

        if (is_new(t)) {
            t->submission = s->n_submissions;
            if (!tool_slurm_dir(s) || !tool_slurm_put_command(s, r, t)) {
                return false;
            }
            g_string_append_printf(array, "%s%u", array->len ? "," : "", t->index);
        }
    }
    if (!array->len) {
        return true;
    }
    g_string_append_printf(array, "%%%" PRIu64, r->jobs);
    job = tool_slurm_submit(s->options, s->name, array->str, s->script, s->n_submissions);
    for (unsigned i = 0; job && i < s->tasks->len; i++) {
        ToolSlurmTask *t = s->tasks->pdata[i];

        if (is_new(t)) {
            t->job = g_strdup(job);
            t->tries++;
            t->is_listed = t->is_waiting = true;
            t->n_missed = 0;
            t->read = 0;
        }
    }
    s->n_submissions += job != NULL;
    return job;
}

/* Those that nobody needs any more. */
static void cancel_dropped(ToolSlurm *s, const ToolReplays *r, ToolDone *done,
                           void *opaque)
{
    g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func(g_free);

    for (unsigned i = 0; i < s->tasks->len; i++) {
        ToolSlurmTask *t = s->tasks->pdata[i];

        if (t->part->is_running && t->part->is_dropped) {
            if (t->job) {
                g_ptr_array_add(ids, g_strdup_printf("%s_%u", t->job, t->index));
            }
            tool_part_finish(r, t->part, SIGKILL, 0);
            done(opaque, t->part);
        }
    }
    if (ids->len) {
        s->has_cancelled = true;
        tool_slurm_cancel(ids);
    }
}

/* ---- what the controller knows ---- */

static void listed(void *opaque, const char *job, unsigned index, const char *state,
                   const char *reason)
{
    ToolSlurm *s = opaque;
    ToolSlurmTask *t = index < s->tasks->len ? s->tasks->pdata[index] : NULL;

    if (t && t->job && !strcmp(t->job, job)) {
        t->is_listed = true;
        t->is_waiting = !strcmp(state, "PD");
        if (t->is_waiting) {
            g_free(s->reason);
            s->reason = g_strdup(reason);
        }
    }
}

static void ask(ToolSlurm *s)
{
    int64_t now = g_get_monotonic_time();

    s->began_us = s->began_us ?: now;
    if (now - s->asked_us < CLAMP((now - s->began_us) / 30, ASK_MIN_US, ASK_MAX_US)) {
        return;
    }
    for (unsigned i = 0; i < s->tasks->len; i++) {
        ToolSlurmTask *t = s->tasks->pdata[i];

        t->is_listed = t->is_waiting = false;
    }
    if (!tool_slurm_list(s->name, listed, s)) {
        if (!s->is_silent && !s->is_quiet) {
            tool_note("squeue has no answer: waiting until Slurm's controller is back");
        }
        s->is_silent = true;
        for (unsigned i = 0; i < s->tasks->len; i++) {      /* nobody knows */
            ((ToolSlurmTask *)s->tasks->pdata[i])->is_listed = true;
        }
    } else {
        s->is_silent = false;
    }
    for (unsigned i = 0; i < s->tasks->len; i++) {
        ToolSlurmTask *t = s->tasks->pdata[i];

        t->n_missed = t->is_listed ? 0 : t->n_missed + 1;
    }
    s->asked_us = g_get_monotonic_time();
}

/* ---- the loop ---- */

void tool_slurm_hide_progress(const ToolSlurm *s)
{
    if (s->shows_progress) {
        fprintf(stderr, "\r\033[K");
    }
}

static void show_progress(const ToolSlurm *s)
{
    unsigned waiting = 0, running = 0;

    if (!s->shows_progress) {
        return;
    }
    for (unsigned i = 0; i < s->tasks->len; i++) {
        const ToolSlurmTask *t = s->tasks->pdata[i];

        waiting += t->part->is_running && t->is_waiting;
        running += t->part->is_running && !t->is_waiting;
    }
    tool_slurm_hide_progress(s);
    fprintf(stderr, "%u of %u tasks have ended, %u run, %u wait%s%s%s",
            s->tasks->len - running - waiting, s->tasks->len, running, waiting,
            waiting && !running && s->reason ? " (" : "",
            waiting && !running && s->reason ? s->reason : "",
            waiting && !running && s->reason ? ")" : "");
    fflush(stderr);
}

static bool serve(ToolReplays *r, ToolDone *done, void *opaque)
{
    ToolSlurm *s = r->slurm;
    bool ok = true;

    cancel_dropped(s, r, done, opaque);
    ok = submit(s, r);
    if (ok && s->n_submissions) {
        ask(s);
    }
    for (unsigned i = 0; ok && i < s->tasks->len; i++) {
        ToolSlurmTask *t = s->tasks->pdata[i];

        if (t->part->is_running && t->job && !t->part->is_dropped) {
            tool_slurm_hide_progress(s);
            ok = tool_slurm_look(r, t, done, opaque);
        }
    }
    show_progress(s);
    if (ok && !(r->is_over && *r->is_over)) {
        poll(NULL, 0, LOOK_MS);         /* a signal ends it */
    }
    return ok;
}

const ToolPlace tool_slurm = { .has_queue = true, .start = start, .serve = serve };

/* ---- beginning and end ---- */

/* NAME=VALUE, of those of sbatch that say where and under whose name. */
static int take_option(const ToolArgs *a, ToolSlurm *s, const char *option)
{
    static const char *const known[] = {
        "partition", "account", "qos", "time", "mem", "mem-per-cpu", "cpus-per-task",
        "constraint", "nodelist", "exclude", "reservation", "licenses", "nice",
        "exclusive",
    };
    size_t n = strcspn(option, "=");

    if (g_str_has_suffix(option, "=")) {
        return tool_usage(a->command, "--on slurm,%s has no value: give one, or leave it out",
                          option);
    }
    if (g_str_has_prefix(option, "scratch=")) {
        g_free(s->beside);
        s->beside = tool_whole_path(option + n + 1);
        return s->beside ? TOOL_FINE : TOOL_PROBLEM;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(known); i++) {
        if (strlen(known[i]) == n && !strncmp(known[i], option, n)) {
            g_ptr_array_add(s->options, g_strconcat("--", option, NULL));
            return TOOL_FINE;
        }
    }
    return tool_usage(a->command, "--on slurm has no option '%s': scratch, partition, "
                      "account, qos, time, mem and others of sbatch's are taken", option);
}

static int take_options(const ToolArgs *a, ToolSlurm *s, const char *text)
{
    int result = TOOL_FINE;

    while (*text && result == TOOL_FINE) {
        g_autoptr(GString) option = g_string_new(NULL);

        for (text++; *text && (*text != ',' || text[1] == ','); text++) {
            text += *text == ',';
            g_string_append_c(option, *text);
        }
        result = take_option(a, s, option->str);
    }
    return result;
}

int tool_slurm_new(const ToolArgs *a, const char *on, ToolReplays *r)
{
    g_autofree char *run = NULL;
    ToolSlurm *s;

    if (!g_str_has_prefix(on, "slurm") || !strchr(",", on[5])) {
        return tool_usage(a->command, "--on takes slurm[,NAME=VALUE...], not '%s'", on);
    }
    if (!tool_slurm_is_there() || !(run = tool_whole_path(r->run))) {
        return TOOL_PROBLEM;
    }
    s = r->slurm = g_new0(ToolSlurm, 1);
    s->beside = g_path_get_dirname(run);
    s->options = g_ptr_array_new_with_free_func(g_free);
    s->tasks = g_ptr_array_new_with_free_func(task_free);
    s->is_quiet = tool_has(a, "--quiet");
    s->shows_progress = !s->is_quiet && isatty(STDERR_FILENO);
    return take_options(a, s, on + 5);
}

static void count(void *opaque, const char *job, unsigned index, const char *state,
                  const char *reason)
{
    ++*(unsigned *)opaque;
}

/* Tasks that still run would write into the directory. */
static void cancel_all(const ToolSlurm *s)
{
    int64_t until = g_get_monotonic_time() + CANCEL_US;
    g_autofree char *why = tool_slurm_cancel_all(s->name);
    unsigned n;

    if (why) {
        tool_complain("the job array could not be cancelled (%s): do it with scancel "
                      "--name=%s", why, s->name);
        return;
    }
    do {
        poll(NULL, 0, LOOK_MS);
        n = 0;
    } while (tool_slurm_list(s->name, count, &n) && n && g_get_monotonic_time() < until);
}

void tool_slurm_keep(ToolSlurm *s)
{
    s->is_kept = true;
}

void tool_slurm_free(ToolSlurm *s)
{
    bool must_cancel = s && s->has_cancelled;

    if (!s) {
        return;
    }
    tool_slurm_hide_progress(s);
    for (unsigned i = 0; i < s->tasks->len; i++) {
        must_cancel |= ((ToolSlurmTask *)s->tasks->pdata[i])->part->is_running;
    }
    if (must_cancel && s->n_submissions) {  /* what nobody knows of ends without ours */
        cancel_all(s);
    }
    if (s->dir && !s->is_kept) {
        tool_remove_directory(s->dir);
        if (g_file_test(s->dir, G_FILE_TEST_EXISTS)) {
            tool_complain("'%s' is still in use by tasks that were cancelled: remove it "
                          "later", s->dir);
        }
    }
    g_ptr_array_free(s->options, true);
    g_ptr_array_free(s->tasks, true);
    g_free(s->beside);
    g_free(s->dir);
    g_free(s->name);
    g_free(s->script);
    g_free(s->reason);
    g_free(s);
}
