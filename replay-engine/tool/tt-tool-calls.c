/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt syscalls: what programs of the guest asked of its kernel. `tt run-plugin` has QEMU
 * replay the run with the plugin.
 */
#include "tt-tool-calls.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef TT_HAVE_SECCOMP
#include <seccomp.h>
#endif

/* ---- from the plugin ---- */

static void add_option(GPtrArray *argv, const ToolArgs *a, const char *option)
{
    const char *value = tool_value(a, option);

    if (value) {
        g_ptr_array_add(argv, (char *)option);
        g_ptr_array_add(argv, (char *)value);
    }
}

/* Who ends this process ends that one: it would replay to the end for nobody. */
static void setup(gpointer parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != GPOINTER_TO_INT(parent)) {
        _exit(TOOL_PROBLEM);
    }
}

/* Whoever asked has statuses of its own. What the problem is, if it is one, was said. */
static int status_of(int status, const GPtrArray *words)
{
    return status != TOOL_DIVERGED ? status :
        tool_complain("a replay of '%s' was not exact: see tt verify",
                      (const char *)words->pdata[1]);
}

/* What the child says on stderr, as it comes: a replay may be long. Returns the complaints in
 * it. */
static GPtrArray *pass_on_errors(FILE *f)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(g_free);
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, f) > 0) {
        fputs(line, stderr);
        if (g_str_has_prefix(line, "tt: ") && !g_str_has_prefix(line, "tt: note: ")) {
            g_ptr_array_add(all, g_strdup(g_strchomp(line) + strlen("tt: ")));
        }
    }
    free(line);
    fclose(f);
    return all;
}

/* Waits for it to end. Returns its status; a problem is also one of ours, for --json. */
static int see_to_end(GPid pid, FILE *errors)
{
    g_autoptr(GPtrArray) all = pass_on_errors(errors);
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    status = WIFEXITED(status) ? WEXITSTATUS(status) : TOOL_PROBLEM;
    for (unsigned i = 0; status == TOOL_PROBLEM && i < all->len; i++) {
        tool_remember(all->pdata[i]);
    }
    return status;
}

int tool_run_one(const ToolArgs *a, const GPtrArray *words, FILE **out)
{
    g_autofree char *self = g_find_program_in_path(a->program);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autoptr(GError) err = NULL;
    int errors, status;
    GPid pid;

    *out = tmpfile();
    if (!self || !*out) {
        return tool_complain("cannot run '%s', which is this program: %s", a->program,
                             self ? g_strerror(errno) : "it is not where it was");
    }
    g_ptr_array_add(argv, self);
    g_ptr_array_extend(argv, (GPtrArray *)words, NULL, NULL);
    add_option(argv, a, "--qemu");
    g_ptr_array_add(argv, NULL);
    fflush(stdout);
    if (!g_spawn_async_with_pipes_and_fds(
            NULL, (const char *const *)argv->pdata, NULL, G_SPAWN_DO_NOT_REAP_CHILD,
            setup, GINT_TO_POINTER(getpid()), -1, fileno(*out), -1, NULL, NULL, 0, &pid,
            NULL, NULL, &errors, &err)) {
        return tool_complain("%s", err->message);
    }
    status = see_to_end(pid, fdopen(errors, "r"));
    rewind(*out);
    return status_of(status, words);
}

int tool_run_self(const ToolArgs *a, const GPtrArray *words, FILE **out)
{
    g_autoptr(GPtrArray) more = g_ptr_array_new();

    g_ptr_array_extend(more, (GPtrArray *)words, NULL, NULL);
    add_option(more, a, "-j");
    return tool_run_one(a, more, out);
}

static TtCalls *read_calls(FILE *f)
{
    TtCalls *c = tt_calls_new();
    char *line = NULL;
    size_t size = 0;
    bool ok = true;

    while (ok && getline(&line, &size, f) > 0) {
        ok = tt_calls_line(c, line);
        if (!ok) {
            tool_complain("the plugin 'syscalls' says what this tt does not know: '%.60s'; "
                          "build both together", g_strchomp(line));
        }
    }
    free(line);
    if (!ok) {
        tt_calls_free(c);
        return NULL;
    }
    tt_calls_end(c);
    return c;
}

TtCalls *tool_calls_load(const ToolArgs *a, const char *run, bool in_one, int *status)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    const char *const fixed[] = { "run-plugin", run, "syscalls", "--quiet" };
    TtCalls *c = NULL;
    FILE *f;

    for (size_t i = 0; i < G_N_ELEMENTS(fixed); i++) {
        g_ptr_array_add(words, (char *)fixed[i]);
    }
    add_option(words, a, "--from");
    add_option(words, a, "--to");
    *status = in_one ? tool_run_one(a, words, &f) : tool_run_self(a, words, &f);
    if (*status == TOOL_FINE) {
        c = read_calls(f);
        *status = c ? TOOL_FINE : TOOL_PROBLEM;
    }
    if (f) {
        fclose(f);
    }
    return c;
}

/* ---- names ---- */

/* PATH or PATH#N. False: it is neither. */
static bool take_name(const char *name, char **path, uint64_t *nth)
{
    const char *number = strrchr(name, '#');

    *path = number ? g_strndup(name, number - name) : g_strdup(name);
    *nth = 1;
    return **path && (!number || (tool_parse_number(number + 1, nth) && *nth &&
                                  *nth <= UINT32_MAX));
}

bool tool_calls_check_name(const ToolArgs *a, const char *option)
{
    const char *name = tool_value(a, option);
    g_autofree char *path = NULL;
    uint64_t nth;

    if (name && !take_name(name, &path, &nth)) {
        tool_usage(a->command, "%s takes the name of a program or the end of it, and #N for "
                   "the Nth process of that name, from #1 on, not '%s'", option, name);
        return false;
    }
    return true;
}

uint32_t tool_calls_find(const TtCalls *c, const char *name, const char *run)
{
    bool is_nth = strrchr(name, '#');
    g_autofree char *path = NULL;
    uint64_t nth = 1;
    uint32_t n, found;

    take_name(name, &path, &nth);
    found = tt_calls_find(c, path, nth, &n);
    if (found == TT_CALLS_NO_PROCESS && n) {
        tool_complain("only %" PRIu32 " program%s named '%s' began in '%s'", n,
                      n > 1 ? "s" : "", path, run);
    } else if (found == TT_CALLS_NO_PROCESS) {
        tool_complain("no program named '%s' began in '%s': tt syscalls shows which did, in "
                      "lines of execve", path, run);
    } else if (!is_nth && n > 1) {
        g_autofree char *text = g_strdup_printf("'%s' began %" PRIu32 " times in '%s': this "
                                                "is the first; '%s#2' is the second", path,
                                                n, run, path);

        tool_note(text);
    }
    return found;
}

char *tool_call_text(const TtCall *call)
{
    char *name = NULL, *text;

#ifdef TT_HAVE_SECCOMP
    name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, call->number);
#endif
    text = tt_call_text(call, name);
    free(name);
    return text;
}

/* ---- tt syscalls ---- */

static const char *process_name(const TtCalls *c, const TtCall *call)
{
    const TtCallsProcess *p = tt_calls_process(c, call->process);
    const char *slash = p ? strrchr(p->name, '/') : NULL;

    return !p ? "?" : slash && slash[1] ? slash + 1 : p->name;
}

static void print_call(const TtCalls *c, const TtCall *call)
{
    g_autofree char *text = tool_call_text(call), *pos = tool_number(call->pos);
    const char *name = process_name(c, call);

    printf("%17s  %-*s %s\n", pos, tool_width(name, 15), name, text);
}

static void json_call(const TtCalls *c, const TtCall *call, bool is_first)
{
    const TtCallsProcess *p = tt_calls_process(c, call->process);
    g_autofree char *text = tool_call_text(call);

    printf("%s\n {\"position\": %" PRIu64 ", \"number\": %" PRIu32 ", \"text\": ",
           is_first ? "" : ",", call->pos, call->number);
    tool_json_string(text);
    if (call->has_result) {
        printf(", \"result\": %" PRId64 ", \"returned\": %" PRIu64, (int64_t)call->result,
               call->back_pos);
    }
    if (p) {
        printf(", \"table\": %" PRIu64 ", \"process\": ", p->table);
        tool_json_string(p->name);
    }
    printf("}");
}

static uint64_t print_all(const ToolArgs *a, const TtCalls *c, uint32_t process,
                          uint64_t limit)
{
    bool is_json = tool_has(a, "--json");
    uint64_t n = 0;

    for (uint32_t i = 0; i < tt_calls_count(c) && n < limit; i++) {
        const TtCall *call = tt_calls_at(c, i);

        if (process != TT_CALLS_NO_PROCESS && call->process != process) {
            continue;
        }
        if (is_json) {
            json_call(c, call, !n);
        } else {
            print_call(c, call);
        }
        n++;
    }
    return n;
}

int tool_syscalls(const ToolArgs *a)
{
    const char *name = tool_value(a, "--process");
    uint32_t process = TT_CALLS_NO_PROCESS;
    uint64_t limit, from, to;
    int status;
    TtCalls *c;

    if (!tool_number_option(a, "--limit", UINT64_MAX, &limit) ||
        !tool_calls_check_name(a, "--process")) {
        return TOOL_USAGE;
    }
    if (!limit) {
        return tool_usage(a->command, "--limit takes a number from 1 on");
    }
    status = tool_take_part(a, &from, &to);
    if (status != TOOL_FINE) {
        return status;
    }
    c = tool_calls_load(a, a->operand[0], false, &status);
    if (c && name) {
        process = tool_calls_find(c, name, a->operand[0]);
        status = process == TT_CALLS_NO_PROCESS ? TOOL_PROBLEM : TOOL_FINE;
    }
    if (status == TOOL_FINE && tool_has(a, "--json")) {
        tool_json_begin();
        printf("\"calls\": [");
        print_all(a, c, process, limit);
        printf("]}\n");
    } else if (status == TOOL_FINE) {
        print_all(a, c, process, limit);
    }
    tt_calls_free(c);
    return status;
}
