/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group live: the whole group goes on for real from a checkpoint of the group, each
 * member as a branch (tt branch), all at one moment.
 *
 *   each member is started and stands still --> all have loaded their state --> each
 *   is told to go on
 *
 * If one cannot begin none does. Each member is controlled by QMP over a socket that it
 * inherits, so nothing else has a part in it.
 */
#include "tt-tool-group.h"
#include "tt-tool-qmp.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOAD_SECONDS    600     /* until a member has loaded its state */
#define ANSWER_SECONDS  60
#define END_SECONDS     20      /* then it is killed */
#define CLOSE_SECONDS   2       /* from the end of its connection until it has ended */
#define JOIN_SECONDS    20      /* a hub that is busy lets it wait 10, then it tries again */

typedef struct Live Live;

typedef struct LiveMember {
    Live *live;
    unsigned member;
    const char *name;           /* the group's */
    char *run, *out;            /* the branch; what QEMU says */
    pid_t pid;                  /* 0: it is not there */
    ToolQmp *qmp;               /* while it begins, and then: */
    GroupWatch *watch;
} LiveMember;

struct Live {
    const ToolArgs *a;
    const Group *g;
    uint32_t epoch;
    char *to, *frames;          /* frames: that of --frames; NULL: none */
    GroupHub hub;
    GroupPlay *play;            /* --exact, or NULL */
    const GroupMember *exact;   /* the same */
    LiveMember *members;
    unsigned n, n_running;
    bool is_stopped;            /* -S: the user lets them go on */
    GMainLoop *loop;
    int result;
    GroupPlace place;
    GPtrArray *runs, *files;    /* its; NULL: it is not made */
};

/* While the group begins a signal ends the members, and so that. */
static struct {
    volatile sig_atomic_t is_told;
    Live *live;                 /* NULL: none begins */
} beginning;

/* ---- the commands ---- */

static char **command_of(const LiveMember *m, int fd)
{
    const Live *l = m->live;

    return group_branch(l->a, group_at(l->g, m->member), l->epoch, m->run, fd);
}

static int print_commands(const Live *l)
{
    if (l->hub.argv) {
        tool_print_command(l->hub.argv);
    }
    for (unsigned i = 0; i < l->n; i++) {
        g_auto(GStrv) argv = command_of(&l->members[i], -1);
        pid_t pid = group_start(argv, STDOUT_FILENO, -1);
        int status = 1;

        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        if (status) {
            return TOOL_PROBLEM;
        }
    }
    return TOOL_FINE;
}

/* ---- they begin ---- */

static void told_while_beginning(int number)
{
    const Live *l = beginning.live;

    beginning.is_told = 1;
    for (unsigned i = 0; l && i < l->n; i++) {
        if (l->members[i].pid > 0) {
            kill(l->members[i].pid, SIGTERM);
        }
    }
}

static void listen_for_signals(Live *l)
{
    struct sigaction a = { .sa_handler = told_while_beginning };

    beginning.live = l;
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGINT, &a, NULL);
    if (!tool_is_ignored(SIGHUP)) {
        sigaction(SIGHUP, &a, NULL);
    }
}

static bool start(LiveMember *m)
{
    int ends[2], out = open(m->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    g_auto(GStrv) argv = NULL;

    if (out < 0) {
        tool_complain("cannot write '%s': %s", m->out, g_strerror(errno));
        return false;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        tool_complain("cannot create a socket: %s", g_strerror(errno));
        close(out);
        return false;
    }
    argv = command_of(m, ends[1]);
    m->pid = group_start(argv, out, ends[1]);
    close(ends[1]);
    close(out);
    m->qmp = tool_qmp_new(ends[0]);
    return m->pid > 0;
}

/* What it has said itself, g_free; NULL: nothing, tt branch has only called it. */
static char *words_of(const LiveMember *m)
{
    g_autofree char *line = group_last_line(m->out);

    return g_str_has_prefix(line, "cd ") ? NULL : g_steal_pointer(&line);
}

/* While it began. */
static void complain_ended(const LiveMember *m, int status)
{
    const char *qemu = tool_value(m->live->a, "--qemu") ?: "qemu-system-x86_64";
    g_autofree char *words = words_of(m);

    if (WIFSIGNALED(status)) {
        tool_complain("%s did not begin: '%s' was ended by signal %d%s%s", m->name, qemu,
                      WTERMSIG(status), words ? ": " : "", words ?: "");
    } else if (!words) {
        tool_complain("%s did not begin: '%s' ended without a word: is it the QEMU of TTVM "
                      "(--qemu)?", m->name, qemu);
    } else {
        tool_complain("%s did not begin: %s", m->name, words);
    }
}

/* It has loaded its state, and stands still. */
static bool is_ready(LiveMember *m)
{
    g_autofree char *why = NULL;
    int64_t until_us = 0;
    bool is_closed;
    int status;

    if (beginning.is_told) {
        return false;
    }
    if (tool_qmp_greet(m->qmp, LOAD_SECONDS, &why) &&
        tool_qmp_do(m->qmp, "query-status", NULL, LOAD_SECONDS, NULL, &why)) {
        return true;
    }
    if (beginning.is_told) {
        return false;
    }
    is_closed = !strcmp(why, "it has closed the connection");
    if (is_closed) {
        until_us = g_get_monotonic_time() + CLOSE_SECONDS * G_USEC_PER_SEC;
    }
    if (group_ends(m->pid, until_us, &status)) {
        m->pid = 0;
        complain_ended(m, status);
    } else if (is_closed) {
        complain_ended(m, 0);
    } else {
        tool_complain("%s did not begin: %s", m->name, why);
    }
    return false;
}

/* All are connected to the hub that was started for them. */
static bool have_joined(Live *l)
{
    int64_t until_us = g_get_monotonic_time() + JOIN_SECONDS * G_USEC_PER_SEC;

    for (unsigned i = 0; i < l->n && !beginning.is_told; ) {
        const LiveMember *m = &l->members[i];

        if (group_hub_has(&l->hub, group_at(l->g, m->member), m->qmp)) {
            i++;
        } else if (!group_hub_is_there(&l->hub)) {
            return false;
        } else if (g_get_monotonic_time() > until_us) {
            g_autofree char *words = words_of(m);

            tool_complain("%s does not come to the hub that --hub has started: %s", m->name,
                          words ?: "it does not say why");
            return false;
        } else {
            g_usleep(50000);
        }
    }
    return !beginning.is_told;
}

static bool go_on(LiveMember *m)
{
    g_autofree char *why = NULL;

    if (!tool_qmp_do(m->qmp, "cont", NULL, ANSWER_SECONDS, NULL, &why)) {
        tool_complain("%s does not go on: %s", m->name, why);
        return false;
    }
    return true;
}

static void end_all(Live *l)
{
    for (unsigned i = 0; i < l->n; i++) {
        if (l->members[i].pid > 0) {
            kill(l->members[i].pid, SIGTERM);
        }
    }
}

/* They were told to end. */
static void wait_for_all(Live *l)
{
    int64_t until_us = g_get_monotonic_time() + END_SECONDS * G_USEC_PER_SEC;

    for (unsigned i = 0; i < l->n; i++) {
        if (l->members[i].pid > 0) {
            group_wait(l->members[i].pid, until_us);
        }
        l->members[i].pid = 0;
    }
}

/* The branches are a group with the run of the other one. */
static bool write_list(const Live *l)
{
    g_autofree char *path = g_build_filename(l->to, GROUP_LIST, NULL);
    g_autofree const char **runs = g_new0(const char *, l->g->members->len);

    for (unsigned i = 0; i < l->n; i++) {
        runs[l->members[i].member] = l->members[i].run;
    }
    return group_play_list(l->play, path, runs);
}

static bool begin(Live *l)
{
    bool ok = !l->play || group_play_open(l->play), was_told;

    for (unsigned i = 0; ok && !beginning.is_told && i < l->n; i++) {
        ok = start(&l->members[i]);
    }
    for (unsigned i = 0; ok && i < l->n; i++) {
        ok = is_ready(&l->members[i]);
    }
    ok = ok && have_joined(l);
    ok = ok && (!l->play || (group_play_wait(l->play, &beginning.is_told) && write_list(l)));
    was_told = beginning.is_told;
    ok &= !was_told;
    for (unsigned i = 0; ok && !l->is_stopped && i < l->n; i++) {
        ok = go_on(&l->members[i]);
    }
    beginning.live = NULL;
    for (unsigned i = 0; i < l->n; i++) {
        LiveMember *m = &l->members[i];

        if (ok && l->play) {
            group_play_branch(l->play, m->member, m->run);
            group_play_runs(l->play, m->member, !l->is_stopped);
        }
        if (ok) {
            m->watch = group_watch_new(m->name, g_steal_pointer(&m->qmp), l->play, m->member);
        }
        g_clear_pointer(&m->qmp, tool_qmp_free);
    }
    if (was_told) {
        tool_complain("the group does not go on: this command was told to end");
    }
    if (!ok) {
        end_all(l);
        wait_for_all(l);
    }
    return ok;
}

/* ---- they run ---- */

static void ended(GPid pid, gint status, gpointer opaque)
{
    LiveMember *m = opaque;
    Live *l = m->live;

    m->pid = 0;
    if (WIFEXITED(status) && !WEXITSTATUS(status)) {
        printf("%s has ended\n", m->name);
        fflush(stdout);
    } else {
        g_autofree char *line = group_last_line(m->out);

        l->result = WIFSIGNALED(status) ?
            tool_complain("%s was ended by signal %d: %s", m->name, WTERMSIG(status),
                          line) :
            tool_complain("%s ended with status %d: %s", m->name, WEXITSTATUS(status),
                          line);
    }
    if (!--l->n_running) {
        g_main_loop_quit(l->loop);
    }
}

static gboolean told_to_end(gpointer l)
{
    end_all(l);
    return G_SOURCE_CONTINUE;
}

/* From here on, a signal is for the members. */
static void say_where(Live *l)
{
    g_unix_signal_add(SIGTERM, told_to_end, l);
    g_unix_signal_add(SIGINT, told_to_end, l);
    if (!tool_is_ignored(SIGHUP)) {
        g_unix_signal_add(SIGHUP, told_to_end, l);
    }
    if (beginning.is_told) {
        end_all(l);                         /* just before */
    }
    printf("the group goes on from @group-%" PRIu32 "%s:\n", l->epoch,
           l->is_stopped ? ", once each member is told 'cont'" : "");
    for (unsigned i = 0; i < l->n; i++) {
        const LiveMember *m = &l->members[i];

        printf("  %-*s process %d, %s, output in %s\n", tool_width(m->name, 18), m->name,
               (int)m->pid, m->run, m->out);
    }
    if (l->play) {
        printf("  %-*s as it was, %s\n", tool_width(l->exact->name, 18), l->exact->name,
               l->exact->run);
    }
    fflush(stdout);
}

static void run(Live *l)
{
    l->loop = g_main_loop_new(NULL, false);
    l->n_running = l->n;
    for (unsigned i = 0; i < l->n; i++) {
        g_child_watch_add(l->members[i].pid, ended, &l->members[i]);
    }
    group_hub_watch(&l->hub);
    g_main_loop_run(l->loop);
    g_main_loop_unref(l->loop);
    group_hub_wait(&l->hub);
    if (l->hub.has_failed) {
        l->result = TOOL_PROBLEM;
    }
}

/* ---- the command ---- */

/* Of the directory for the branches. */
static int name_place(Live *l)
{
    l->to = tool_whole_path(tool_value(l->a, "--to"));
    l->place.dir = l->to;
    l->frames = tool_has(l->a, "--frames") ?
        tool_whole_path(tool_value(l->a, "--frames")) : NULL;
    return l->to && tool_is_fit(l->to) ? TOOL_FINE : TOOL_PROBLEM;
}

static void make_members(Live *l)
{
    l->members = g_new0(LiveMember, l->g->members->len);
    for (unsigned i = 0; i < l->g->members->len; i++) {
        const GroupMember *of = group_at(l->g, i);
        g_autofree char *out = g_strconcat(of->name, ".out", NULL);

        if (of != l->exact) {
            l->members[l->n++] = (LiveMember) {
                .live = l, .member = i, .name = of->name,
                .run = g_build_filename(l->to, of->name, NULL),
                .out = g_build_filename(l->to, out, NULL),
            };
        }
    }
}

/* What is made in it. */
static int make_place(Live *l)
{
    l->runs = g_ptr_array_new();
    l->files = g_ptr_array_new_with_free_func(g_free);
    for (unsigned i = 0; i < l->n; i++) {
        g_ptr_array_add(l->runs, l->members[i].run);
        g_ptr_array_add(l->files, g_strdup(l->members[i].out));
    }
    g_ptr_array_add(l->files, g_build_filename(l->to, GROUP_HUB_OUT, NULL));
    if (l->play) {
        g_ptr_array_add(l->files, g_build_filename(l->to, GROUP_LIST, NULL));
    }
    l->place.runs = l->runs;
    l->place.files = l->files;
    l->place.frames = l->frames;
    l->place.is_told = &beginning.is_told;
    listen_for_signals(l);              /* from here on there is something to take away */
    return group_place_make(&l->place) ? TOOL_FINE : TOOL_PROBLEM;
}

static void clean_up(Live *l)
{
    beginning.live = NULL;
    for (unsigned i = 0; i < l->n; i++) {
        group_watch_free(l->members[i].watch);
        g_free(l->members[i].run);
        g_free(l->members[i].out);
    }
    if (l->runs) {
        g_ptr_array_unref(l->runs);
        g_ptr_array_unref(l->files);
    }
    g_free(l->members);
    g_free(l->to);
    g_free(l->frames);
}

/* The group begins, and runs to its end. */
static int live(Live *l)
{
    g_autofree char *hub_out = g_build_filename(l->to, GROUP_HUB_OUT, NULL);
    int result = make_place(l);

    if (result) {
        return result;
    }
    if (!group_hub_start(&l->hub, hub_out) || !begin(l)) {
        group_hub_end(&l->hub);
        group_place_drop(&l->place, false);
        return TOOL_PROBLEM;
    }
    if (!l->is_stopped) {
        group_place_keep(&l->place);
    }
    say_where(l);
    run(l);
    if (l->play) {
        group_play_say(l->play);
    }
    group_hub_end(&l->hub);
    if (l->is_stopped && !l->result && group_place_drop(&l->place, true)) {
        printf("'%s' is deleted again: no member has recorded anything\n", l->to);
    }
    group_place_keep(&l->place);
    return l->result;
}

int group_live(const ToolArgs *a, const Group *g)
{
    Live l = { .a = a, .g = g, .place.lock = -1,
               .is_stopped = group_begins_stopped(a) };
    int result = group_check_ended(g) ?: group_choose(a, g, &l.epoch);

    l.play = result ? NULL : group_play_new(a, g, l.epoch, &result);
    l.exact = l.play ? group_at(g, group_play_member(l.play)) : NULL;
    result = result ?: group_hub_plan(&l.hub, a, g);
    result = result ?: name_place(&l);
    result = result ?: group_check_names(a, g, l.exact, l.hub.argv);
    if (!result) {
        make_members(&l);
        result = tool_has(a, "--print") ? print_commands(&l) : live(&l);
    }
    group_hub_end(&l.hub);
    clean_up(&l);
    group_play_free(l.play);
    return result;
}
