/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group: the incidents in the windows that were saved beside the runs of a group. A flight
 * recorder forgets what it has noted; the window that it saved for it does not.
 */
#include "tt-tool-group.h"

static GroupIncident *find(const GArray *in, const TtIncident *what)
{
    for (unsigned i = 0; i < in->len; i++) {
        GroupIncident *n = &g_array_index(in, GroupIncident, i);

        if (n->what.number == what->number && !memcmp(n->what.run, what->run, TT_RUN_BYTES)) {
            return n;
        }
    }
    return NULL;
}

typedef struct Window {
    char *dir;                  /* the member's */
    uint64_t end;
    GArray *incidents;          /* of GroupIncident */
} Window;

static void window_clear(gpointer opaque)
{
    g_array_unref(((Window *)opaque)->incidents);
}

static gint by_end(gconstpointer a, gconstpointer b)
{
    uint64_t x = ((const Window *)a)->end, y = ((const Window *)b)->end;

    return x < y ? -1 : x > y;
}

static gint by_pos(gconstpointer a, gconstpointer b)
{
    uint64_t x = ((const GroupIncident *)a)->pos, y = ((const GroupIncident *)b)->pos;

    return x < y ? -1 : x > y;
}

static bool add_windows(GroupMember *m)
{
    bool ok = true;
    g_autoptr(GArray) all = g_array_new(false, true, sizeof(Window));

    g_array_set_clear_func(all, window_clear);
    for (unsigned i = 0; i < m->windows->len; i++) {
        Window w = { .dir = m->windows->pdata[i],
                     .incidents = g_array_new(false, false, sizeof(GroupIncident)) };

        if (!group_read_incidents(m, w.dir, w.incidents, &w.end)) {
            g_array_set_size(w.incidents, 0);
            ok = false;
        }
        g_array_append_val(all, w);
    }
    g_array_sort(all, by_end);
    for (unsigned i = 0; i < all->len; i++) {
        const Window *w = &g_array_index(all, Window, i);

        for (unsigned k = 0; k < w->incidents->len; k++) {
            GroupIncident n = g_array_index(w->incidents, GroupIncident, k), *there =
                find(m->incidents, &n.what);

            n.is_gone = true;
            if (!there) {
                g_array_append_val(m->incidents, n);
                there = &g_array_index(m->incidents, GroupIncident, m->incidents->len - 1);
            }
            if (!there->window) {
                there->window = g_path_get_basename(w->dir);
            }
        }
    }
    g_array_sort(m->incidents, by_pos);
    return ok;
}

bool group_load_windows(const Group *g)
{
    bool ok = true;

    for (unsigned i = 0; i < g->members->len; i++) {
        ok &= add_windows(group_at(g, i));
    }
    return ok;
}
