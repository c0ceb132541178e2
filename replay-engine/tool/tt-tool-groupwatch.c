/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group live: what the members say by QMP while they go on. One that stops since it cannot
 * write is told of; and with --exact, whoever goes on or stands still, and a list of the runs.
 */
#include "tt-tool-groupplay.h"

#include <glib-unix.h>

struct GroupWatch {
    const char *name;
    GroupPlay *play;            /* NULL: none */
    unsigned member;
    ToolQmp *qmp;
    guint tag;                  /* 0: the connection is closed */
};

static void runs(const GroupWatch *w, bool it_runs)
{
    if (w->play) {
        group_play_runs(w->play, w->member, it_runs);
    }
}

/* Its disk is full, or fails: only the user can change that. */
static void say_stopped(const GroupWatch *w, const char *what, const char *why)
{
    if (why) {
        tool_complain("%s is stopped because its %s cannot be written: %s; use 'cont' in its "
                      "monitor when that is mended", w->name, what, why);
    }
}

static void take_line(GroupWatch *w, const char *line)
{
    g_autofree char *trouble = NULL;

    if (strstr(line, "\"event\": \"STOP\"")) {
        runs(w, false);
        tool_qmp_send(w->qmp, "query-tt", NULL);        /* why? */
    } else if (strstr(line, "\"event\": \"RESUME\"")) {
        runs(w, true);
    } else if (strstr(line, "\"event\": \"BLOCK_IO_ERROR\"") &&
               strstr(line, "\"action\": \"stop\"")) {
        trouble = tool_qmp_words(line, "reason");
        say_stopped(w, "disk", trouble);
    } else if (g_str_has_prefix(line, "{\"return\": ")) {
        trouble = tool_qmp_words(line, "trouble");
        say_stopped(w, "recording", trouble);
    }
}

static gboolean said(gint fd, GIOCondition what, gpointer opaque)
{
    GroupWatch *w = opaque;
    bool is_over;
    char *line;

    while ((line = tool_qmp_line(w->qmp, &is_over))) {
        take_line(w, line);
        g_free(line);
    }
    if (is_over) {
        runs(w, true);          /* it holds nobody up */
        w->tag = 0;
    }
    return !is_over;
}

GroupWatch *group_watch_new(const char *name, ToolQmp *qmp, GroupPlay *play, unsigned member)
{
    GroupWatch *w = g_new(GroupWatch, 1);

    *w = (GroupWatch) { .name = name, .play = play, .member = member, .qmp = qmp };
    if (said(-1, 0, w)) {               /* what came with an answer */
        w->tag = g_unix_fd_add(tool_qmp_fd(qmp), G_IO_IN, said, w);
    }
    return w;
}

void group_watch_free(GroupWatch *w)
{
    if (w) {
        if (w->tag) {
            g_source_remove(w->tag);
        }
        tool_qmp_free(w->qmp);
        g_free(w);
    }
}

/* Can a line of a list begin with it? */
static bool is_key(const char *name)
{
    return *name != '#' && !strpbrk(name, "=[]") && !g_ascii_isspace(*name) &&
        !g_ascii_isspace(name[strlen(name) - 1]);
}

static bool has_member(const Group *g, const char *name)
{
    bool has = false;

    for (unsigned i = 0; !has && i < g->members->len; i++) {
        has = !strcmp(group_at(g, i)->name, name);
    }
    return has;
}

/* Its own name, or another one, which [names] explains; g_free. */
static char *key_of(GKeyFile *f, const Group *g, unsigned i)
{
    const char *name = group_at(g, i)->name;
    GString *key;

    if (is_key(name)) {
        return g_strdup(name);
    }
    key = g_string_new(NULL);
    g_string_printf(key, "member-%u", i + 1);
    while (has_member(g, key->str)) {
        g_string_append_c(key, '-');
    }
    g_key_file_set_string(f, "names", key->str, name);
    return g_string_free(key, false);
}

bool group_play_list(const GroupPlay *p, const char *path, const char *const *runs)
{
    const Group *g = group_play_group(p);
    g_autoptr(GKeyFile) f = g_key_file_new();
    GError *err = NULL;

    g_key_file_set_string(f, "group", "name", g->name);
    for (unsigned i = 0; i < g->members->len; i++) {
        const GroupMember *m = group_at(g, i);
        g_autofree char *run = i == group_play_member(p) ? tool_whole_path(m->run) :
            g_strdup(runs[i]);
        g_autofree char *key = key_of(f, g, i);

        if (!run) {
            return false;
        }
        g_key_file_set_string(f, "members", key, run);
    }
    if (!g_key_file_save_to_file(f, path, &err)) {
        tool_complain("%s", err->message);
        g_error_free(err);
        return false;
    }
    return true;
}
