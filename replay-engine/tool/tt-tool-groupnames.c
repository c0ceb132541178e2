/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group live: can this group go on, and its members have the names of what is made in the
 * new directory?
 */
#include "tt-tool-group.h"

int group_check_ended(const Group *g)
{
    for (unsigned i = 0; i < g->members->len; i++) {
        if (group_at(g, i)->is_live) {
            return tool_complain("%s is still being recorded: the group can go on when the "
                                 "recordings of all its members have ended",
                                 group_at(g, i)->name);
        }
    }
    return TOOL_FINE;
}

/* Is a file of that name, or that of its output, made for another member or the hub? */
static bool is_taken(const Group *g, const char *name, bool has_hub)
{
    bool is = has_hub && (!strcmp(name, "hub") || !strcmp(name, GROUP_HUB_OUT));

    for (unsigned i = 0; !is && i < g->members->len; i++) {
        g_autofree char *out = g_strconcat(group_at(g, i)->name, ".out", NULL);

        is = !strcmp(name, out);
    }
    return is;
}

static bool has_stores(const Group *g)
{
    bool has = false;

    for (unsigned i = 0; !has && i < g->members->len; i++) {
        has = group_at(g, i)->keeps_frames;
    }
    return has;
}

int group_check_names(const ToolArgs *a, const Group *g, const GroupMember *exact,
                      bool has_hub)
{
    bool has_frames = has_stores(g);

    if (tool_has(a, "--frames") && !has_frames && !exact) {
        return tool_usage(a->command, "--frames: no member of %s has a frame store", g->name);
    }
    for (unsigned i = 0; i < g->members->len; i++) {
        const char *name = group_at(g, i)->name;

        if (!group_is_name(name) || g_str_has_prefix(name, ".live") ||
            (exact && !strcmp(name, GROUP_LIST))) {
            return tool_complain("'%s' cannot be the name of a directory: give the "
                                 "member another name in the list of runs", name);
        }
        if (is_taken(g, name, has_hub)) {
            return tool_complain("'%s' is also the name of an output file: give the member "
                                 "another name in the list of runs", name);
        }
        /* ... which is made there. */
        if (has_frames && !tool_has(a, "--frames") && !strcmp(name, GROUP_FRAMES)) {
            return tool_complain("'%s' is also the name of the directory of the frame stores: "
                                 "give the member another name in the list of runs", name);
        }
    }
    return TOOL_FINE;
}
