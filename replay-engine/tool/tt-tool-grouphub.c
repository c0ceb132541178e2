/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group live: where the members meet, by their recorded options -netdev and -nic; and a
 * hub there, if one is asked for (--hub).
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

#define HELLO_MS 2000           /* a hub that is busy */

void group_meeting_free(gpointer opaque)
{
    GroupMeeting *m = opaque;

    g_free(m->group);
    g_free(m->address);
    g_free(m->key_file);
    g_free(m);
}

/* The value of @key in an option of QEMU's, where a comma in a value is doubled, or which is
 * an object in JSON (all that a netdev tt has are strings); g_free. NULL: it is not there. */
static char *value_of(const char *option, const char *key)
{
    const char *p = option;
    char *value = NULL;

    if (*option == '{') {
        g_autoptr(GVariant) all = g_variant_parse(G_VARIANT_TYPE("a{ss}"), option, NULL,
                                                  NULL, NULL);

        if (all) {
            g_variant_lookup(all, key, "s", &value);
        }
        return value;
    }
    while (*p) {
        GString *word = g_string_new(NULL);

        for (; *p && (*p != ',' || p[1] == ','); p++) {
            g_string_append_c(word, *p);
            p += *p == ',';
        }
        p += *p == ',';
        if (g_str_has_prefix(word->str, key) && word->str[strlen(key)] == '=') {
            g_free(value);                      /* the last one counts */
            value = g_strdup(word->str + strlen(key) + 1);
        }
        g_string_free(word, true);
    }
    return value;
}

/* A path of the member's becomes a whole one; takes @path over. */
static char *whole(char *path, const char *dir)
{
    g_autofree char *given = path;

    return given && !g_path_is_absolute(given) ? g_canonicalize_filename(given, dir) :
        g_steal_pointer(&given);
}

static char *whole_address(char *text, const char *dir)
{
    g_autofree char *given = text, *path = NULL;
    TtAddress a;

    if (!given || tt_address_parse(&a, given, NULL) || !a.is_unix) {
        return g_steal_pointer(&given);
    }
    path = whole(g_strdup(a.path), dir);
    return g_strconcat("unix:", path, NULL);
}

static void add_meeting(GPtrArray *all, const char *netdev, const char *dir)
{
    g_autofree char *type = value_of(netdev, "type");
    GroupMeeting *m;
    char *listen;

    if (!g_str_has_prefix(netdev, "tt,") && g_strcmp0(type, "tt")) {
        return;
    }
    listen = value_of(netdev, "listen");
    m = g_new0(GroupMeeting, 1);
    m->listens = listen;
    m->group = value_of(netdev, "group");
    m->address = whole_address(listen ?: value_of(netdev, "connect"), dir);
    m->key_file = whole(value_of(netdev, "key-file"), dir);
    if (m->group && m->address) {
        g_ptr_array_add(all, m);
    } else {
        group_meeting_free(m);
    }
}

/* What the recorder was called with; NULL: that is not known. g_strfreev. */
static char **arguments_of(const TtManifest *m)
{
    char **args = NULL;

    return *m->directory && g_shell_parse_argv(m->command_line, NULL, &args, NULL) ? args :
        NULL;
}

static void add_meetings(GPtrArray *all, char **args, const char *dir)
{
    for (char **a = args; a && a[0] && a[1]; a++) {
        const char *option = *a + g_str_has_prefix(*a, "--");

        if (!strcmp(option, "-netdev") || !strcmp(option, "-nic")) {
            add_meeting(all, a[1], dir);
        }
    }
}

bool group_meetings(const GroupMember *member, GPtrArray *all)
{
    g_autofree char *path = g_build_filename(member->run, "manifest", NULL);
    g_auto(GStrv) args = NULL;
    TtManifest m;
    TtDiag diag;

    if (tt_manifest_load(path, &m, &diag)) {
        tool_problem(&diag);
        return false;
    }
    args = arguments_of(&m);
    add_meetings(all, args, m.directory);
    tt_manifest_cleanup(&m);
    return true;
}

void group_note_ways(GroupMember *m, const TtManifest *manifest)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(group_meeting_free);
    g_auto(GStrv) args = arguments_of(manifest);

    m->may_filter = !args;
    for (char **a = args; a && a[0] && a[1]; a++) {
        const char *option = *a + g_str_has_prefix(*a, "--");

        m->may_filter |= !strcmp(option, "-readconfig") ||
            (!strcmp(option, "-object") && strstr(a[1], "filter-tt"));
    }
    add_meetings(all, args, manifest->directory);
    m->n_links = all->len;
}

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

/* Only of a Unix socket: elsewhere the members try again by themselves. False: said why. */
static bool is_served(const GroupMeeting *m)
{
    TtAddress a;
    bool is_open;
    int fd;

    if (tt_address_parse(&a, m->address, NULL) || !a.is_unix) {
        return true;
    }
    fd = tool_unix_connect(a.path);
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

/* The command of a hub, for that many; NULL: no member needs one. *@result: see
 * group_hub_plan. */
static GPtrArray *hub_command(const ToolArgs *a, const GPtrArray *all, unsigned *n_members,
                              int *result)
{
    g_autoptr(GPtrArray) args = g_ptr_array_new_with_free_func(g_free);
    const char *options = tool_value(a, "--hub");
    g_autofree char *program = group_program(a);
    g_autoptr(GPtrArray) owned = g_ptr_array_new_with_free_func(group_where_free);
    g_autoptr(GPtrArray) places = places_of(all, owned);
    const GroupMeeting *first = NULL;

    *n_members = 0;
    for (unsigned i = 0; i < all->len; i++) {
        const GroupMeeting *m = all->pdata[i];

        if (!needs_hub(all, places, i)) {
            continue;
        }
        ++*n_members;
        if (!options && !is_served(m)) {
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
    unsigned n_members;
    GError *err = NULL;

    *h = (GroupHub) { NULL };
    if (!all) {
        return TOOL_PROBLEM;
    }
    args = hub_command(a, all, &n_members, &result);
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
        g_ptr_array_add(args, g_strdup_printf("%u", n_members));
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
    while (h->pid > 0 && !listens && !group_has_ended(h->pid)) {
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

void group_hub_watch(GroupHub *h)
{
    if (h->pid > 0) {
        h->watch_tag = g_child_watch_add(h->pid, ended, h);
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
        while (!group_has_ended(h->pid)) {
            g_usleep(10000);
        }
        h->pid = 0;
    }
    g_clear_pointer(&h->argv, g_strfreev);
}
