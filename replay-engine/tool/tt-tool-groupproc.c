/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tt group live: the processes of the members and of the hub. */
#include "tt-tool-group.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMBER_WORD "{member}"

pid_t group_start(char **argv, int out, int keep)
{
    sigset_t ends, before;
    pid_t pid, parent = getpid();

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, &before);     /* the parent's handlers are not the child's */
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        if (!tool_is_ignored(SIGHUP)) {
            signal(SIGHUP, SIG_DFL);
        }
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

static void add(GPtrArray *args, const char *name, const char *value)
{
    g_ptr_array_add(args, g_strdup(name));
    if (value) {
        g_ptr_array_add(args, g_strdup(value));
    }
}

/* An option of the user's: each member's own. */
static void add_own(GPtrArray *args, const char *text, const char *name)
{
    g_auto(GStrv) parts = g_strsplit(text, MEMBER_WORD, -1);

    g_ptr_array_add(args, g_strjoinv(name, parts));
}

/* As QEMU reads it. */
static bool is_stop(const char *option)
{
    return !strcmp(option + g_str_has_prefix(option, "--"), "-S");
}

bool group_begins_stopped(const ToolArgs *a)
{
    bool is = false;

    for (char **r = a->rest; !is && r && *r; r++) {
        is = is_stop(*r);
    }
    return is;
}

char **group_branch(const ToolArgs *a, const GroupMember *m, uint32_t epoch, const char *run,
                    int fd)
{
    GPtrArray *args = g_ptr_array_new();
    g_autofree char *at = g_strdup_printf("@group-%" PRIu32, epoch);
    g_autofree char *socket = g_strdup_printf("socket,id=tt-live,fd=%d", fd);
    g_autofree char *program = group_program(a);
    const char *value;
    unsigned n = 0;

    add(args, program, "branch");
    add(args, "--at", at);
    add(args, "--to", run);
    if (tool_has(a, "--qemu")) {
        add(args, "--qemu", tool_value(a, "--qemu"));
    }
    while ((value = tool_next_value(a, "--without", &n))) {
        add(args, "--without", value);
    }
    if (m->keeps_frames) {
        g_autofree char *to = g_path_get_dirname(run);
        g_autofree char *frames = g_build_filename(to, GROUP_FRAMES, NULL);

        add(args, "--frames", tool_value(a, "--frames") ?: frames);
    }
    if (fd < 0) {
        add(args, "--print", NULL);
    }
    add(args, m->run, "--");
    if (fd >= 0) {
        add(args, "-S", NULL);
        add(args, "-chardev", socket);
        add(args, "-mon", "chardev=tt-live,mode=control");
    }
    for (char **r = a->rest; r && *r; r++) {
        if (!is_stop(*r) || fd < 0) {
            add_own(args, *r, m->name);
        }
    }
    g_ptr_array_add(args, NULL);
    return (char **)g_ptr_array_free(args, false);
}

bool group_has_ended(pid_t pid, int *status)
{
    pid_t ended;

    *status = 0;
    ended = waitpid(pid, status, WNOHANG);
    /* Whoever started this may have it ignore its children. */
    return ended == pid || (ended < 0 && errno == ECHILD);
}

bool group_ends(pid_t pid, int64_t until_us, int *status)
{
    bool has_ended;

    while (!(has_ended = group_has_ended(pid, status)) && g_get_monotonic_time() < until_us) {
        g_usleep(10000);
    }
    return has_ended;
}

void group_wait(pid_t pid, int64_t until_us)
{
    int status;

    while (!group_ends(pid, until_us, &status)) {
        kill(pid, SIGKILL);                 /* also of one that is stopped */
        g_usleep(10000);
    }
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
    line = tt_replace_controls(line ? line + 1 : text, '?');
    return g_strdup(line + (g_str_has_prefix(line, "tt: ") ? 4 : 0));
}
