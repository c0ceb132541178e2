/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt watch: looks at a service of the guest from outside, again and again, and says so to
 * the VM (QMP tt-incident) when it does not answer any more. The VM marks the place, flight
 * recorders save their windows, and so do all VMs of the group.
 *
 * A probe counts from its first success on: a guest that boots has not failed. After an
 * incident it must succeed again first.
 */
#include "tt-tool-qmp.h"

#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS_MAX 86400
#define STAYS_MS    200         /* a port that was forwarded to nobody is closed at once */

typedef struct Watch {
    const ToolArgs *a;
    const char *tcp, *agent, *script;   /* one of them */
    char *host, *port;                  /* of tcp */
    const char *qmp_path;
    ToolQmp *qmp;
    uint64_t every, patience, fails;    /* seconds, seconds, number */
    uint64_t n_asked;
    bool is_once, is_stuck;
} Watch;

/* ---- TCP: somebody accepts, and does not hang up at once ---- */

static bool stays(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char byte;

    return poll(&p, 1, STAYS_MS) == 0 || recv(fd, &byte, 1, MSG_DONTWAIT) > 0;
}

static bool can_connect(const struct addrinfo *at, int patience_ms)
{
    int fd = tool_inet_connect(at, patience_ms);
    bool is = fd >= 0 && stays(fd);

    if (fd >= 0) {
        close(fd);
    }
    return is;
}

static bool try_tcp(const Watch *w)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    bool is = false;

    if (getaddrinfo(w->host, w->port, &hints, &found)) {
        return false;
    }
    for (struct addrinfo *at = found; at && !is; at = at->ai_next) {
        is = can_connect(at, w->patience * 1000);
    }
    freeaddrinfo(found);
    return is;
}

/* ---- the guest's agent: it answers guest-sync with the same number ---- */

static bool answers(int fd, const char *number, int64_t until_us)
{
    g_autoptr(GString) in = g_string_new(NULL);
    char bytes[512];

    while (!strstr(in->str, number)) {
        int64_t left_ms = (until_us - g_get_monotonic_time()) / 1000;
        struct pollfd p = { .fd = fd, .events = POLLIN };
        ssize_t n;

        if (left_ms <= 0 || poll(&p, 1, MIN(left_ms, INT_MAX)) != 1 ||
            (n = read(fd, bytes, sizeof(bytes))) <= 0 || in->len > (1u << 16)) {
            return false;
        }
        g_string_append_len(in, bytes, n);
    }
    return true;
}

static bool try_agent(Watch *w)
{
    int fd = tool_unix_connect(w->agent);
    g_autofree char *number = g_strdup_printf("%d%05" PRIu64, (int)getpid() % 10000 + 1,
                                              w->n_asked++ % 100000);
    g_autofree char *text = g_strdup_printf("{\"execute\": \"guest-sync\", \"arguments\": "
                                            "{\"id\": %s}}\n", number);
    bool is;

    if (fd < 0) {
        return false;
    }
    is = send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text) &&
        answers(fd, number, g_get_monotonic_time() + w->patience * G_USEC_PER_SEC);
    close(fd);
    return is;
}

/* ---- a script: it ends with status 0 in time ---- */

static bool try_script(const Watch *w)
{
    int64_t until = g_get_monotonic_time() + w->patience * G_USEC_PER_SEC;
    int status = 1;
    pid_t pid = fork();

    if (pid == 0) {
        setpgid(0, 0);
        dup2(open("/dev/null", O_RDONLY), 0);
        execl("/bin/sh", "sh", "-c", w->script, NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, WNOHANG) != pid) {
        if (g_get_monotonic_time() > until) {
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return false;
        }
        g_usleep(10000);
    }
    return pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool try_once(Watch *w)
{
    return w->tcp ? try_tcp(w) : w->agent ? try_agent(w) : try_script(w);
}

static char *failure_of(const Watch *w)
{
    return w->tcp ? g_strdup_printf("port %s does not answer", w->tcp) :
        w->agent ? g_strdup("the guest agent is silent") :
        g_strdup_printf("this fails: %s", w->script);
}

/* ---- the VM ---- */

static int report(Watch *w)
{
    g_autofree char *words = failure_of(w), *quoted = tool_qmp_quote(words);
    g_autofree char *arguments = g_strdup_printf("{\"what\": %s}", quoted);
    g_autofree char *answer = NULL, *why = NULL;
    const char *mark;

    if (!tool_qmp_do(w->qmp, "tt-incident", arguments, 60, &answer, &why)) {
        return tool_complain("%s, and the VM at %s could not mark it: %s", words,
                             w->qmp_path, why);
    }
    mark = strstr(answer, "\"incident-");
    printf("%s: mark @%.*s%s\n", words, mark ? (int)strcspn(mark + 1, "\"") : 0,
           mark ? mark + 1 : "", strstr(answer, "\"window\": false") ?
           ", and no window: one was saved a moment ago, or ten in all, or "
           "save-on-panic is off" : "");
    fflush(stdout);
    return TOOL_FINE;
}

/* The VM is there as long as it keeps the connection. One that was stopped, or shows its
 * past, answers nobody, and nothing is wrong with it: *@runs. */
static bool is_there(Watch *w, bool *runs)
{
    g_autofree char *status = NULL, *tt = NULL, *why = NULL;

    if (tool_qmp_do(w->qmp, "query-status", NULL, 60, &status, &why) &&
        tool_qmp_do(w->qmp, "query-tt", NULL, 60, &tt, &why)) {
        *runs = strstr(status, "\"running\": true") && !strstr(tt, "\"past\": true");
        return true;
    }
    w->is_stuck = strstr(why, "does not answer");
    if (w->is_stuck) {
        tool_complain("the VM at %s is stuck: it has not answered for 60 s, so it is not "
                      "watched any more", w->qmp_path);
    } else {
        printf("the VM at %s is gone: %s\n", w->qmp_path, why);
    }
    return false;
}

static int watch(Watch *w)
{
    bool is_armed = false, runs;
    uint64_t n_failed = 0;

    for (;;) {
        bool is_fine = try_once(w);

        if (!is_there(w, &runs)) {
            return w->is_stuck ? TOOL_PROBLEM : TOOL_FINE;
        }
        if (is_fine && !is_armed) {
            printf("it answers, and is watched from here on\n");
            fflush(stdout);
        }
        is_armed |= is_fine;
        n_failed = is_fine || !runs ? 0 : n_failed + 1;
        if (is_armed && n_failed >= w->fails) {
            int result = report(w);

            if (result || w->is_once) {
                return result;
            }
            is_armed = false;
        }
        g_usleep(w->every * G_USEC_PER_SEC);
    }
}

/* ---- the command ---- */

static bool number(const Watch *w, const char *option, uint64_t fallback, uint64_t *n)
{
    if (!tool_number_option(w->a, option, fallback, n)) {
        return false;
    }
    if (!*n || *n > SECONDS_MAX) {
        tool_usage(w->a->command, "%s takes a number from 1 to %d", option, SECONDS_MAX);
        return false;
    }
    return true;
}

static int parse(Watch *w)
{
    const ToolArgs *a = w->a;
    const char *colon;

    w->qmp_path = a->operand[0];
    w->tcp = tool_value(a, "--tcp");
    w->agent = tool_value(a, "--agent");
    w->script = tool_value(a, "--script");
    w->is_once = tool_has(a, "--once");
    if (!!w->tcp + !!w->agent + !!w->script != 1) {
        return tool_usage(a->command, "give one of --tcp, --agent and --script");
    }
    if (!number(w, "--every", 5, &w->every) || !number(w, "--patience", 5, &w->patience) ||
        !number(w, "--fails", 3, &w->fails)) {
        return TOOL_USAGE;
    }
    colon = w->tcp ? strrchr(w->tcp, ':') : NULL;
    if (w->tcp && (!colon || !colon[1])) {
        return tool_usage(a->command, "--tcp takes HOST:PORT, not '%s'", w->tcp);
    }
    if (w->tcp) {
        w->host = colon == w->tcp ? g_strdup("127.0.0.1") :
            g_strndup(w->tcp, colon - w->tcp);
        w->port = g_strdup(colon + 1);
    }
    return TOOL_FINE;
}

int tool_watch(const ToolArgs *a)
{
    Watch w = { .a = a };
    int result = parse(&w);

    if (!result) {
        w.qmp = tool_qmp_open(w.qmp_path);
        result = w.qmp ? watch(&w) : TOOL_PROBLEM;
    }
    tool_qmp_free(w.qmp);
    g_free(w.host);
    g_free(w.port);
    return result;
}
