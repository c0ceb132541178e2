/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group: have the files of the runs the checkpoints that their logs say were made? Somebody
 * may have deleted them, or they are damaged.
 */
#include "tt-tool-group.h"

/* Is there a full one at @pos? @infos: ascending. */
static bool has_full(const TtCheckpointInfo *infos, size_t n, uint64_t pos)
{
    bool has = false;

    for (size_t i = 0; !has && i < n && infos[i].pos <= pos; i++) {
        has = infos[i].pos == pos && infos[i].flags & TT_CHECKPOINT_FULL;
    }
    return has;
}

static void look(GroupMember *m, const TtPageStore *ps)
{
    size_t n = ps ? tt_pagestore_count(ps) : 0;
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);

    n = ps ? tt_pagestore_list(ps, infos, n) : 0;
    for (unsigned i = 0; i < m->points->len; i++) {
        GroupPoint *p = &g_array_index(m->points, GroupPoint, i);

        p->is_lost = p->is_made && !has_full(infos, n, group_point_pos(p));
    }
    for (unsigned i = 0; ps && !m->damage && i < 2; i++) {
        const TtDiag *d = tt_pagestore_damage(ps, i);

        m->damage = d ? g_strdup(d->text) : NULL;
    }
}

static void look_at(GroupMember *m)
{
    g_autofree char *path = g_build_filename(m->run, "manifest", NULL);
    TtPageStore *ps = NULL;
    TtManifest manifest;
    TtDiag diag;
    TtStatus st;

    if (tt_manifest_load(path, &manifest, NULL) != TT_OK) {
        return;                         /* it was there, when the log was read */
    }
    st = tt_runstore_open(m->run, &manifest, 0, &ps, &diag);
    if (st != TT_OK) {
        m->damage = st == TT_END ? NULL : g_strdup(diag.text);
        ps = NULL;
    }
    tt_manifest_cleanup(&manifest);
    look(m, ps);
    if (ps) {
        tt_pagestore_free(ps);
    }
}

/* What a recorder has made may not be on disk yet. */
void group_look_for_points(const Group *g)
{
    for (unsigned i = 0; i < g->members->len; i++) {
        GroupMember *m = group_at(g, i);

        if (m->points->len && !m->is_live) {
            look_at(m);
        }
    }
}
