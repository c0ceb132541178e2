/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group live: who is missing where the members meet, and a hub there, if one is asked for
 * (--hub).
 */
#include "tt-tool-group.h"
#include "tt-tool-hub.h"
#include "tt-tool-qmp.h"
#include "net-tt/tt-address.h"
#include "net-tt/tt-frame.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELLO_MS        2000    /* a hub that is busy */
#define ANSWER_SECONDS  60
#define END_SECONDS     5       /* then it is killed */

/* NULL: said why. */
static GPtrArray *meetings_of(const Group *g)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(group_meeting_free);

    for (unsigned i = 0; i < g->members->len; i++) {
        if (!group_meetings(group_at(g, i), all)) {
            return NULL;
        }
    }
    return g_steal_pointer(&all);
}

/* ---- who is missing there ---- */

/* Whoever lets others in says hello at once, and no more: a hub that has its members says at
 * once that it refuses. */
static bool says_hello(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char bytes[TT_HELLO_BYTES + 1];
    ssize_t n;

    if (poll(&p, 1, HELLO_MS) != 1) {
        return true;
    }
    n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    return n > 0 && n <= TT_HELLO_BYTES;
}

/* Only of a Unix socket: elsewhere the members try again by themselves. @may_come: somebody
 * may listen there later. False: said why. */
static bool is_served(const GroupMeeting *m, bool may_come)
{
    TtAddress a;
    bool is_open;
    int fd;

    if (tt_address_parse(&a, m->address, NULL) || !a.is_unix) {
        return true;
    }
    fd = tool_unix_connect(a.path);
    if (fd < 0 && may_come) {
        return true;
    }
    if (fd < 0) {
        tool_complain(errno == EBUSY ? "too many wait at %s already, where members connect "
                      "to: the hub there is stopped, or has no time; try again later" :
                      "nobody is at %s, where members connect to: start tt hub there first, "
                      "or use --hub", m->address);
        return false;
    }
    is_open = says_hello(fd);
    close(fd);
    if (!is_open) {
        tool_complain("the hub at %s lets nobody else in, as when a group goes on there: end "
                      "that first", m->address);
    }
    return is_open;
}

/* Is it not where a hub listens already, for an earlier member? */
static bool is_first(const GPtrArray *all, const GPtrArray *places, unsigned i)
{
    for (unsigned k = 0; k < i; k++) {
        const GroupMeeting *other = all->pdata[k];

        if (!other->listens && group_where_has(places->pdata[k], places->pdata[i])) {
            return false;
        }
    }
    return true;
}

/* It connects, and no member listens there. @places: theirs. */
static bool needs_hub(const GPtrArray *all, const GPtrArray *places, unsigned i)
{
    const GroupMeeting *m = all->pdata[i];

    if (m->listens) {
        return false;
    }
    for (unsigned k = 0; k < all->len; k++) {
        const GroupMeeting *other = all->pdata[k];

        if (other->listens && group_where_meets(places->pdata[k], places->pdata[i])) {
            return false;
        }
    }
    return true;
}

/* One for each address. */
static GPtrArray *places_of(const GPtrArray *all, GPtrArray *owned)
{
    GPtrArray *places = g_ptr_array_new();

    for (unsigned i = 0; i < all->len; i++) {
        const GroupMeeting *m = all->pdata[i];
        GroupWhere *w = NULL;

        for (unsigned k = 0; !w && k < i; k++) {
            const GroupMeeting *other = all->pdata[k];

            if (other->listens == m->listens && !strcmp(other->address, m->address)) {
                w = places->pdata[k];
            }
        }
        if (!w) {
            w = group_where_new(m);
            g_ptr_array_add(owned, w);
        }
        g_ptr_array_add(places, w);
    }
    return places;
}

static void add(GPtrArray *args, const char *name, const char *value)
{
    g_ptr_array_add(args, g_strdup(name));
    if (value) {
        g_ptr_array_add(args, g_strdup(value));
    }
}

/* A key may be in more than one file. */
static bool is_same_key(const char *a, const char *b)
{
    g_autofree uint8_t *x = NULL, *y = NULL;
    size_t x_len, y_len;

    if (!a || !b || !strcmp(a, b)) {
        return !g_strcmp0(a, b);
    }
    return !tt_group_key_load(a, &x, &x_len, NULL) &&
        !tt_group_key_load(b, &y, &y_len, NULL) && x_len == y_len && !memcmp(x, y, x_len);
}

/* Can one hub join the two? False: said why not. */
static bool is_one_group(const GroupMeeting *a, const GroupMeeting *b)
{
    if (strcmp(a->group, b->group)) {
        tool_complain("the members are in more than one group, '%s' and '%s': start a hub for "
                      "each first, without --hub", a->group, b->group);
        return false;
    }
    if (!is_same_key(a->key_file, b->key_file)) {
        tool_complain("the members have different keys, that of %s and that of %s: start a "
                      "hub for each first, without --hub", a->key_file ?: "no file",
                      b->key_file ?: "no file");
        return false;
    }
    return true;
}

/* The command of a hub; NULL: no member needs one. @served: gets an address for each member
 * that does. *@result: see group_hub_plan. */
static GPtrArray *hub_command(const ToolArgs *a, const GPtrArray *all, GPtrArray *served,
                              int *result)
{
    g_autoptr(GPtrArray) args = g_ptr_array_new_with_free_func(g_free);
    const char *options = tool_value(a, "--hub");
    g_autofree char *program = group_program(a);
    g_autoptr(GPtrArray) owned = g_ptr_array_new_with_free_func(group_where_free);
    g_autoptr(GPtrArray) places = places_of(all, owned);
    const GroupMeeting *first = NULL;

    for (unsigned i = 0; i < all->len; i++) {
        const GroupMeeting *m = all->pdata[i];

        if (!needs_hub(all, places, i)) {
            continue;
        }
        g_ptr_array_add(served, g_strdup(m->address));
        if (!options && !is_served(m, tool_has(a, "--print"))) {
            *result = TOOL_PROBLEM;
            return NULL;
        }
        if (options && first && !is_one_group(first, m)) {
            *result = TOOL_PROBLEM;
            return NULL;
        }
        if (!first) {
            first = m;
            add(args, program, NULL);
            add(args, "hub", "--once");
            add(args, "--group", m->group);
            if (m->key_file) {
                add(args, "--key-file", m->key_file);
            }
        }
        if (is_first(all, places, i)) {
            add(args, "--listen", m->address);
        }
    }
    if (!first && options) {
        *result = tool_usage(a->command, "--hub: no member connects to a hub");
    }
    return first && options ? g_steal_pointer(&args) : NULL;
}

int group_hub_plan(GroupHub *h, const ToolArgs *a, const Group *g)
{
    g_autoptr(GPtrArray) all = meetings_of(g);
    g_autoptr(GPtrArray) args = NULL;
    g_auto(GStrv) more = NULL;
    int result = TOOL_FINE;
    bool has_limit = false;
    GError *err = NULL;

    *h = (GroupHub) { .served = g_ptr_array_new_with_free_func(g_free) };
    if (!all) {
        return TOOL_PROBLEM;
    }
    args = hub_command(a, all, h->served, &result);
    if (!args) {
        return result;
    }
    if (!g_shell_parse_argv(tool_value(a, "--hub"), NULL, &more, &err) &&
        !g_error_matches(err, G_SHELL_ERROR, G_SHELL_ERROR_EMPTY_STRING)) {
        result = tool_usage(a->command, "--hub takes options of tt hub: %s",
                            err->message);
        g_error_free(err);
        return result;
    }
    g_clear_error(&err);
    for (char **m = more; m && *m; m++) {
        if (g_str_has_prefix(*m, "--seconds")) {
            return tool_usage(a->command, "--hub takes no --seconds: the hub ends with the "
                              "last member");
        }
        has_limit |= g_str_has_prefix(*m, "--members");
        add(args, *m, NULL);
    }
    if (!has_limit) {               /* another group may go on from the same one */
        add(args, "--members", NULL);
        g_ptr_array_add(args, g_strdup_printf("%u", h->served->len));
    }
    g_ptr_array_add(args, NULL);
    h->argv = (char **)g_ptr_array_free(g_steal_pointer(&args), false);
    return TOOL_FINE;
}

/* ---- it ---- */

static bool is_ready(const char *path)
{
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) &&
        strstr(text, "\n" HUB_IS_READY "\n");
}

bool group_hub_start(GroupHub *h, const char *path)
{
    FILE *out;
    bool listens = false;
    int status;

    if (!h->argv) {
        return true;
    }
    out = fopen(path, "we+");
    if (!out) {
        tool_complain("cannot write '%s': %s", path, g_strerror(errno));
        return false;
    }
    h->pid = group_start(h->argv, fileno(out), -1);
    /* It says that it listens everywhere, or why it ends; or cannot, and ends. */
    while (h->pid > 0 && !listens && !group_has_ended(h->pid, &status)) {
        g_usleep(10000);
        listens = is_ready(path);
    }
    fclose(out);
    h->out = g_strdup(path);
    if (!listens && h->pid > 0) {
        g_autofree char *line = group_last_line(path);

        h->pid = 0;
        tool_complain("the hub did not begin: %s", line);
    }
    return listens;
}

/* It ends by itself, with 0, when the last member has left it. */
static void ended(GPid pid, gint status, gpointer opaque)
{
    GroupHub *h = opaque;

    h->pid = 0;
    h->watch_tag = 0;
    if (WIFSIGNALED(status)) {
        tool_complain("the hub was ended by signal %d: the members are no longer connected",
                      WTERMSIG(status));
    } else if (WEXITSTATUS(status)) {
        g_autofree char *line = group_last_line(h->out);

        tool_complain("the hub ended with status %d: %s", WEXITSTATUS(status), line);
    }
    h->has_failed = status;
}

bool group_hub_is_there(GroupHub *h)
{
    g_autofree char *line = NULL;
    int status;

    if (h->pid <= 0 || !group_has_ended(h->pid, &status)) {
        return h->pid > 0 || !h->argv;
    }
    h->pid = 0;
    line = group_last_line(h->out);
    if (WIFSIGNALED(status)) {
        tool_complain("the hub that --hub has started was ended by signal %d before all "
                      "members were connected to it", WTERMSIG(status));
    } else {
        tool_complain("the hub that --hub has started has ended before all members were "
                      "connected to it: %s", line);
    }
    return false;
}

void group_hub_watch(GroupHub *h)
{
    if (h->pid > 0) {
        h->watch_tag = g_child_watch_add(h->pid, ended, h);
    }
}

void group_hub_wait(GroupHub *h)
{
    int64_t until_us = g_get_monotonic_time() + END_SECONDS * G_USEC_PER_SEC;

    while (h->watch_tag && g_get_monotonic_time() < until_us) {
        if (!g_main_context_iteration(NULL, false)) {
            g_usleep(5000);
        }
    }
}

void group_hub_end(GroupHub *h)
{
    if (h->watch_tag) {
        g_source_remove(h->watch_tag);
        h->watch_tag = 0;
    }
    g_clear_pointer(&h->out, g_free);
    if (h->pid > 0) {
        kill(h->pid, SIGTERM);
        group_wait(h->pid, g_get_monotonic_time() + END_SECONDS * G_USEC_PER_SEC);
        h->pid = 0;
    }
    g_clear_pointer(&h->argv, g_strfreev);
    g_clear_pointer(&h->served, g_ptr_array_unref);
}

/* ---- who is connected to it ---- */

static bool is_of_hub(const GroupHub *h, const char *address)
{
    for (unsigned i = 0; i < h->served->len; i++) {
        if (!strcmp(h->served->pdata[i], address)) {
            return true;
        }
    }
    return false;
}

bool group_hub_has(const GroupHub *h, const GroupMember *m, ToolQmp *qmp)
{
    g_autofree char *answer = NULL, *why = NULL;
    g_auto(GStrv) netdevs = NULL;
    bool has = true;

    if (!h->argv || !tool_qmp_do(qmp, "query-tt-netdevs", NULL, ANSWER_SECONDS, &answer,
                                 &why)) {
        return true;                    /* whoever is gone is told of when it goes on */
    }
    netdevs = g_strsplit(answer, "}, {", -1);
    for (char **n = netdevs; has && *n; n++) {
        g_autofree char *state = tool_qmp_words(*n, "state");
        g_autofree char *at = group_whole_address(tool_qmp_words(*n, "address"), m->directory);

        has = !at || !strcmp(state ?: "", "connected") || !is_of_hub(h, at);
    }
    return has;
}
