/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt hub: joins the VMs of a group, as a switch does, with delay, loss and rate from a
 * seed. It listens on this host only, unless it has a key.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* accept4 */
#endif
#include "tt-tool-hub.h"
#include "net-tt/tt-alive.h"

#include <errno.h>
#include <glib-unix.h>
#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTENERS_MAX 8
#define LAST_WORD_MS 1000       /* to say what there was */

/* ---- listening ---- */

/* Of port 0 the kernel has chosen one. */
static void print_place(int fd, const char *text)
{
    struct sockaddr_storage s;
    socklen_t len = sizeof(s);
    char host[NI_MAXHOST], port[NI_MAXSERV];

    if (getsockname(fd, (struct sockaddr *)&s, &len) == 0 && s.ss_family != AF_UNIX &&
        getnameinfo((struct sockaddr *)&s, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
        printf(strchr(host, ':') ? "listening at [%s]:%s\n" : "listening at %s:%s\n",
               host, port);
    } else {
        printf("listening at %s\n", text);
    }
    fflush(stdout);
}

static gboolean peer_came(gint fd, GIOCondition what, gpointer opaque)
{
    int one = 1, peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

    if (peer >= 0) {
        g_unix_set_fd_nonblocking(peer, true, NULL);
        setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        tt_alive_keep(peer);
        hub_connected(opaque, peer);
    } else if ((errno == EMFILE || errno == ENFILE) && !hub_drop_silent(opaque)) {
        hub_say(opaque, "a peer cannot be accepted: the hub has no more file descriptors");
        g_usleep(10000);
    }
    return G_SOURCE_CONTINUE;
}

/* TOOL_FINE, or what the program ends with. */
static int listen_at(Hub *h, const char *text, HubListener *l)
{
    const char *why;
    TtAddress a;
    TtDiag diag;

    if (tt_address_parse(&a, text, &diag) || tt_address_check(&a, h->key, &diag)) {
        return tool_problem(&diag);
    }
    why = hub_listen(l, &a, peer_came, h);
    if (why) {
        return tool_complain("cannot listen at %s: %s", text, why);
    }
    for (unsigned i = 0; i < l->n; i++) {
        print_place(l->fd[i], text);
    }
    return TOOL_FINE;
}

/* ---- options ---- */

/* A number from 0 to @max, times @unit. */
static bool real_option(const ToolArgs *a, const char *name, double max, double unit,
                        uint64_t *value)
{
    const char *text = tool_value(a, name);
    char *end;
    double v;

    *value = 0;
    if (!text) {
        return true;
    }
    v = g_ascii_strtod(text, &end);
    if (end == text || *end || !isfinite(v) || v < 0 || v > max || strpbrk(text, "xX")) {
        tool_usage(a->command, "%s takes a number from 0 to %.0f, not '%s'", name, max,
                   text);
        return false;
    }
    *value = v * unit + 0.5;
    return true;
}

static bool seed_option(const ToolArgs *a, uint64_t *seed)
{
    const char *text = tool_value(a, "--seed");

    *seed = 1;
    if (text && !tool_parse_number(text, seed)) {
        tool_usage(a->command, "--seed takes a whole number from 0 to %" PRIu64 ", not '%s'",
                   UINT64_MAX, text);
        return false;
    }
    return true;
}

static int parse(const ToolArgs *a, Hub *h)
{
    const char *key = tool_value(a, "--key-file");
    TtShapeOptions *o = &h->shape.o;
    uint64_t loss;
    TtDiag diag;

    h->group = g_strdup(tool_value(a, "--group"));
    if (!h->group) {
        return tool_usage(a->command, "--group is missing: give the name of the group");
    }
    if (!tt_group_name_is_fit(h->group)) {
        return tool_usage(a->command, "--group takes 1 to %d letters, digits, '.', '_' "
                          "and '-', not '%s'", TT_GROUP_NAME_MAX, h->group);
    }
    if (!real_option(a, "--delay", 60000, 1e6, &o->delay_ns) ||
        !real_option(a, "--jitter", 60000, 1e6, &o->jitter_ns) ||
        !real_option(a, "--loss", 100, 1e4, &loss) ||
        !real_option(a, "--rate", 1e6, 1e6, &o->rate_bits) ||
        !real_option(a, "--queue", 60000, 1e6, &o->queue_ns) || !seed_option(a, &o->seed)) {
        return TOOL_USAGE;
    }
    if (!tool_number_option(a, "--members", 0, &h->members_max)) {
        return TOOL_USAGE;
    }
    if (h->members_max > TT_SHAPE_PORTS_MAX) {
        return tool_usage(a->command, "--members takes a number up to %d, for which a hub has "
                          "room", TT_SHAPE_PORTS_MAX);
    }
    o->loss_ppm = loss;
    h->is_for_once = tool_has(a, "--once");
    if (!tool_value(a, "--queue")) {
        o->queue_ns = 100 * 1000000;
    }
    if (o->rate_bits < TT_SHAPE_RATE_MIN && tool_value(a, "--rate") &&
        g_ascii_strtod(tool_value(a, "--rate"), NULL) > 0) {
        return tool_usage(a->command, "--rate takes a number of at least 0.001, or 0 for no "
                                      "limit");
    }
    if (tool_value(a, "--queue") && !o->rate_bits) {
        return tool_usage(a->command, "--queue is the limit of a port that --rate slows down: "
                          "give --rate, too");
    }
    if (key && tt_group_key_load(key, &h->key, &h->key_len, &diag)) {
        return tool_problem(&diag);
    }
    if (key && tt_group_key_is_public(key)) {
        tool_complain("everybody on this host can read the key of the group, %.200s: chmod "
                      "600 it", key);
    }
    return TOOL_FINE;
}

/* ---- the program ---- */

static gboolean stop(gpointer loop)
{
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

/* It listens everywhere. Only now is the log opened; and who has
 * started this one (tt group live) hears of it, or that it ends. */
static int begin(Hub *h, const ToolArgs *a)
{
    const char *log = tool_value(a, "--log");

    if (log && !hub_log_open(h, log)) {
        return TOOL_PROBLEM;
    }
    puts(HUB_IS_READY);
    return fflush(stdout) || ferror(stdout) ? TOOL_PROBLEM : TOOL_FINE;  /* main says why */
}

static void run(Hub *h, uint64_t seconds)
{
    h->loop = g_main_loop_new(NULL, false);
    g_unix_signal_add(SIGTERM, stop, h->loop);
    g_unix_signal_add(SIGINT, stop, h->loop);
    if (!tool_is_ignored(SIGHUP)) {
        g_unix_signal_add(SIGHUP, stop, h->loop);
    }
    if (seconds) {
        g_timeout_add_seconds(MIN(seconds, G_MAXUINT), stop, h->loop);
    }
    g_main_loop_run(h->loop);
    g_clear_pointer(&h->loop, g_main_loop_unref);
    hub_end(h);
    if (hub_can_write(STDOUT_FILENO, LAST_WORD_MS)) {       /* it may be the log, too */
        g_autofree char *came = tool_count(h->n_came, "frame");
        g_autofree char *gone = tool_number(h->n_gone), *lost = tool_number(h->n_lost);

        printf("%s received, %s forwarded, %s lost\n", came, gone, lost);
    }
}

int tool_hub(const ToolArgs *a)
{
    Hub *h = g_new0(Hub, 1);
    HubListener listeners[LISTENERS_MAX] = { 0 };
    int result = parse(a, h);
    const char *text;
    uint64_t seconds = 0;
    unsigned n = 0, next = 0;

    if (!result && !tool_number_option(a, "--seconds", 0, &seconds)) {
        result = TOOL_USAGE;
    }
    while (!result && (text = tool_next_value(a, "--listen", &next))) {
        if (n == LISTENERS_MAX) {
            result = tool_usage(a->command, "--listen can be given at most %d times",
                                LISTENERS_MAX);
            break;
        }
        listeners[n].before = n ? &listeners[n - 1] : NULL;
        result = listen_at(h, text, &listeners[n]);
        n++;
    }
    if (!result && !n) {
        result = tool_usage(a->command, "--listen is missing: give the path of a Unix "
                                        "socket, or HOST:PORT");
    }
    result = result ?: begin(h, a);
    if (!result) {
        signal(SIGPIPE, SIG_IGN);           /* a log may be a pipe; that it fails is said */
        hub_init(h);
        run(h, seconds);
    }
    while (n-- > 0) {
        hub_listen_end(&listeners[n]);
    }
    if (!hub_log_close(h)) {
        result = TOOL_PROBLEM;
    }
    g_free(h->key);
    g_free(h->group);
    g_free(h);
    return result;
}
