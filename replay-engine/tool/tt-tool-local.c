/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parts of a run, executed by processes of this host, which say what they find through
 * pipes.
 */
#include "tt-tool-place.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 200     /* a signal may come just before we wait */

static void child(char **argv, const ToolPart *p, int out)
{
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
    execv(argv[0], argv);
    fprintf(stderr, "cannot run '%s': %s\n", argv[0], g_strerror(errno));
    _exit(127);
}

static bool start(ToolReplays *r, ToolPart *p)
{
    g_auto(GStrv) argv = tool_part_command(r, p);
    int ends[2];

    if (!argv) {
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
        child(argv, p, ends[1]);
    }
    close(ends[1]);
    if (p->pid < 0) {
        close(ends[0]);
        tool_complain("cannot start a process: %s", g_strerror(errno));
        return false;
    }
    p->fd = ends[0];
    p->is_running = true;
    return true;
}

static void finish(const ToolReplays *r, ToolPart *p)
{
    int status = 0;

    close(p->fd);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) {
    }
    tool_part_finish(r, p, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                     WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

/* Waits until one says something. False: an error. */
static bool serve(ToolReplays *r, ToolDone *done, void *opaque)
{
    struct pollfd fds[TOOL_JOBS_MAX];
    ToolPart *who[TOOL_JOBS_MAX];
    unsigned n = 0;
    char buf[4096];

    for (unsigned i = 0; i < r->parts->len && n < TOOL_JOBS_MAX; i++) {
        ToolPart *p = r->parts->pdata[i];

        if (p->is_running) {
            fds[n] = (struct pollfd) { p->fd, POLLIN, 0 };
            who[n++] = p;
        }
    }
    if (poll(fds, n, LOOK_MS) < 0) {
        return errno == EINTR;
    }
    for (unsigned i = 0; i < n; i++) {
        ssize_t got = fds[i].revents ? read(fds[i].fd, buf, sizeof(buf)) : -1;

        if (got > 0) {
            tool_part_take(r, who[i], buf, got);
        } else if (fds[i].revents && (got == 0 || errno != EINTR)) {
            finish(r, who[i]);
            done(opaque, who[i]);
        }
    }
    return true;
}

const ToolPlace tool_local = { .start = start, .serve = serve };
