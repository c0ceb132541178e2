/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group: where the members meet, and by which ways, by the options that they were recorded
 * with.
 */
#include "tt-tool-group.h"
#include "net-tt/tt-address.h"

void group_meeting_free(gpointer opaque)
{
    GroupMeeting *m = opaque;

    g_free(m->group);
    g_free(m->address);
    g_free(m->key_file);
    g_free(m);
}

/* A path of the member's becomes a whole one; takes @path over. */
static char *whole(char *path, const char *dir)
{
    g_autofree char *given = path;

    return given && !g_path_is_absolute(given) ? g_canonicalize_filename(given, dir) :
        g_steal_pointer(&given);
}

char *group_whole_address(char *text, const char *dir)
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
    g_autofree char *type = tool_option_key(netdev, "type");
    GroupMeeting *m;
    char *listen;

    if (!g_str_has_prefix(netdev, "tt,") && g_strcmp0(type, "tt")) {
        return;
    }
    listen = tool_option_key(netdev, "listen");
    m = g_new0(GroupMeeting, 1);
    m->listens = listen;
    m->group = tool_option_key(netdev, "group");
    m->address = group_whole_address(listen ?: tool_option_key(netdev, "connect"), dir);
    m->key_file = whole(tool_option_key(netdev, "key-file"), dir);
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

    m->directory = g_strdup(manifest->directory);
    m->may_filter = !args;
    for (char **a = args; a && a[0] && a[1]; a++) {
        const char *option = *a + g_str_has_prefix(*a, "--");

        if (!strcmp(option, "-tt")) {
            g_autofree char *frames = tool_option_key(a[1], "frames");

            m->keeps_frames = frames;
        }
        m->may_filter |= !strcmp(option, "-readconfig") ||
            (!strcmp(option, "-object") && strstr(a[1], "filter-tt"));
    }
    add_meetings(all, args, manifest->directory);
    m->n_links = all->len;
}
