/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group live --exact: what the member that does what it did has to know of the others:
 * whether they go on, and where their runs are.
 */
#include "tt-tool-groupplay.h"

#include <glib-unix.h>

typedef struct Watch {
    GroupPlay *play;
    unsigned member;
    ToolQmp *qmp;
} Watch;

static void watch_free(gpointer opaque)
{
    Watch *w = opaque;

    tool_qmp_free(w->qmp);
    g_free(w);
}

static gboolean said(gint fd, GIOCondition what, gpointer opaque)
{
    Watch *w = opaque;
    bool is_over;
    char *line;

    while ((line = tool_qmp_line(w->qmp, &is_over))) {
        if (strstr(line, "\"event\": \"STOP\"")) {
            group_play_runs(w->play, w->member, false);
        } else if (strstr(line, "\"event\": \"RESUME\"")) {
            group_play_runs(w->play, w->member, true);
        }
        g_free(line);
    }
    if (is_over) {
        group_play_runs(w->play, w->member, true);      /* it holds nobody up */
    }
    return !is_over;
}

void group_play_watch(GroupPlay *p, unsigned member, ToolQmp *qmp)
{
    Watch *w = g_new(Watch, 1);
    guint tag;

    *w = (Watch) { p, member, qmp };
    if (said(-1, 0, w)) {               /* what came with an answer */
        tag = g_unix_fd_add_full(G_PRIORITY_DEFAULT, tool_qmp_fd(qmp), G_IO_IN, said, w,
                                 watch_free);
        g_array_append_val(p->watches, tag);
    } else {
        watch_free(w);
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
