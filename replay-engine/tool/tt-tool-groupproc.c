/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tt group live: the processes of the members and of the hub. */
#include "tt-tool-group.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t group_start(char **argv, int out, int keep)
{
    sigset_t ends, before;
    pid_t pid, parent = getpid();

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, &before);     /* the parent's handlers are not the child's */
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        dup2(open("/dev/null", O_RDONLY), 0);
        dup2(out, 1);
        dup2(out, 2);
        setpgid(0, 0);          /* ^C is for the parent, which tells them ... */
        prctl(PR_SET_PDEATHSIG, SIGTERM);       /* ... or ends while they begin */
        if (getppid() != parent) {
            _exit(127);                         /* it has, just before */
        }
        if (keep >= 0) {
            fcntl(keep, F_SETFD, 0);
        }
        execv(argv[0], argv);
        fprintf(stderr, "cannot run '%s': %s\n", argv[0], g_strerror(errno));
        _exit(127);
    }
    if (pid < 0) {
        tool_complain("cannot start a process: %s", g_strerror(errno));
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

/* QEMU is beside that path, and perhaps not beside what it leads to. */
char *group_program(const ToolArgs *a)
{
    g_autofree char *found = g_find_program_in_path(a->program);
    char *path = found ? tt_io_posix_absolute(found) : NULL;

    return path ?: g_strdup("/proc/self/exe");
}

bool group_has_ended(pid_t pid)
{
    pid_t ended = waitpid(pid, NULL, WNOHANG);

    /* Whoever started this may have it ignore its children. */
    return ended == pid || (ended < 0 && errno == ECHILD);
}

char *group_last_line(const char *path)
{
    g_autofree char *text = NULL;
    char *line, *usage;

    if (!g_file_get_contents(path, &text, NULL, NULL) || !*g_strchomp(text)) {
        return g_strdup_printf("it said nothing in '%s'", path);
    }
    usage = g_strrstr(text, "\nusage: ");     /* follows the sentence of tt that says why */
    if (usage) {
        *usage = 0;
    }
    line = strrchr(text, '\n');
    return g_strdup(tt_replace_controls(line ? line + 1 : text, '?'));
}
