/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lender: see tt-lender.h.
 */
#include "tt-lender.h"
#include "tt-parent.h"

#define DEPTH_MAX   32          /* branches of branches; more is a loop */

struct TtLender {
    const TtManifest *manifest;
    const char *dir;
    unsigned depth;
    bool only_base;
    TtParent *parent;           /* NULL: not open */
    bool has_failed;            /* it cannot be opened */
    TtDiag why;
};

TtLender *tt_lender_new(const TtManifest *m, const char *dir, unsigned depth,
                        bool only_base)
{
    TtLender *l;

    if (!(m->features & TT_FEATURE_PARENT)) {
        return NULL;
    }
    l = g_new0(TtLender, 1);
    l->manifest = m;
    l->dir = dir;
    l->depth = depth;
    l->only_base = only_base;
    return l;
}

void tt_lender_free(TtLender *l)
{
    if (l) {
        tt_parent_close(l->parent);
        g_free(l);
    }
}

/* All other checkpoints go, from this reader's memory. */
static void keep_base(TtParent *p)
{
    size_t n = tt_pagestore_count(p->store);
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);

    n = tt_pagestore_list(p->store, infos, n);
    while (n-- > 0) {
        if (infos[n].id != p->info.id) {
            tt_pagestore_delete(p->store, infos[n].id);
        }
    }
}

static bool open_parent(TtLender *l)
{
    Error *err = NULL;

    if (l->depth >= DEPTH_MAX) {
        error_setg(&err, "it is a branch of a branch, and so on, more than %d "
                   "times", DEPTH_MAX);
    } else {
        l->parent = tt_parent_of(l->manifest, l->dir, l->depth + 1, &err);
    }
    if (!l->parent) {
        tt_fail(&l->why, TT_ERR_FORMAT, "%s", error_get_pretty(err));
        error_free(err);
        l->has_failed = true;
        return false;
    }
    if (l->only_base) {
        keep_base(l->parent);
    }
    return true;
}

TtStatus tt_lender_lend(void *opaque, const uint64_t hash[2], void *to,
                        TtDiag *diag)
{
    TtLender *l = opaque;
    bool is_new = false;
    TtStatus st;

    if (l->has_failed) {
        return tt_fail(diag, l->why.status, "%s", l->why.text);
    }
    if (!l->parent) {
        is_new = true;
        if (!open_parent(l)) {
            return tt_fail(diag, l->why.status, "%s", l->why.text);
        }
    }
    st = tt_pagestore_find(l->parent->store, hash, to, diag);
    if (st < 0 && !is_new) {
        g_clear_pointer(&l->parent, tt_parent_close);
        if (!open_parent(l)) {
            return tt_fail(diag, l->why.status, "%s", l->why.text);
        }
        st = tt_pagestore_find(l->parent->store, hash, to, diag);
    }
    return st;
}
