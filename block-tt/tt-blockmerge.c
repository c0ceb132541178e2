/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deleting a version: its changes become a part of the changes of each version that
 * comes from it, and of the head's, where these do not say otherwise (O4). So a host
 * cluster is needed exactly while a change names it, whatever was deleted.
 */
#include "block-tt/tt-blockmap-int.h"

/* Changes of @gone, then of @v: as one list. @n: how many. NULL: no memory. */
static TtBlockChange *merged(const TtBlockVersion *gone, const TtBlockVersion *v,
                             size_t *n)
{
    TtBlockChange *all = g_try_new(TtBlockChange, gone->n + v->n + 1);
    size_t i = 0, k = 0;

    *n = 0;
    while (all && (i < gone->n || k < v->n)) {
        const TtBlockChange *first = &gone->change[i], *second = &v->change[k];

        if (k == v->n || (i < gone->n && first->cluster < second->cluster)) {
            all[(*n)++] = *first;
            i++;
        } else if (i < gone->n && first->cluster == second->cluster) {
            all[(*n)++] = (TtBlockChange) { first->cluster, first->was, second->is };
            i++;
            k++;
        } else {
            all[(*n)++] = *second;
            k++;
        }
    }
    return all;
}

typedef struct Merge {
    TtBlockVersion *v;
    TtBlockChange *change;
    size_t n;
} Merge;

static void clear_merges(GArray *merges)
{
    for (guint i = 0; i < merges->len; i++) {
        g_free(g_array_index(merges, Merge, i).change);
    }
    g_array_unref(merges);
}

/* The changes that each version that comes from @gone is to have. */
static GArray *make_merges(TtBlockMap *bm, const TtBlockVersion *gone)
{
    GArray *merges = g_array_new(FALSE, FALSE, sizeof(Merge));

    for (guint i = 0; i < bm->versions->len; i++) {
        Merge m = { .v = bm->versions->pdata[i] };

        if (m.v->parent == gone) {
            m.change = merged(gone, m.v, &m.n);
            if (!m.change) {
                clear_merges(merges);
                return NULL;
            }
            g_array_append_val(merges, m);
        }
    }
    return merges;
}

/* Refs of what @m has besides: all "is" of the new list that are not in the old. */
static void install(TtBlockMap *bm, Merge *m, TtBlockVersion *parent)
{
    size_t k = 0;

    for (size_t i = 0; i < m->n; i++) {
        if (k < m->v->n && m->v->change[k].cluster == m->change[i].cluster) {
            k++;
        } else {
            tt_alloc_ref(&bm->alloc, m->change[i].is);
        }
    }
    g_free(m->v->change);
    m->v->change = m->change;
    m->v->n = m->n;
    m->v->parent = parent;
    m->change = NULL;
}

/* The head comes from @gone: its changes become the head's own. */
static void merge_into_head(TtBlockMap *bm, const TtBlockVersion *gone)
{
    guint n = bm->changed->len, k = 0;

    tt_head_sort(bm);
    for (size_t i = 0; i < gone->n; i++) {
        const TtBlockChange *c = &gone->change[i];
        TtBlockLeaf *l = bm->table.leaf[c->cluster >> TT_LEAF_BITS];
        uint32_t bit = c->cluster & (TT_LEAF - 1);

        if (tt_bit(l->own, bit)) {
            while (g_array_index(bm->changed, TtHeadChange, k).cluster != c->cluster) {
                k++;
                assert(k < n);
            }
            g_array_index(bm->changed, TtHeadChange, k).was = c->was;
        } else {
            TtHeadChange own = { c->cluster, c->was };

            assert(l->value[bit] == c->is);
            tt_bit_put(l->own, bit, true);
            g_array_append_val(bm->changed, own);
            tt_alloc_ref(&bm->alloc, c->is);
        }
    }
    bm->parent = gone->parent;
}

static void forget(TtBlockMap *bm, TtBlockVersion *gone)
{
    for (size_t i = 0; i < gone->n; i++) {
        tt_alloc_unref(&bm->alloc, gone->change[i].is);
    }
    g_ptr_array_remove(bm->versions, gone);
    tt_version_free(gone);
}

TtStatus tt_blockmap_version_delete(TtBlockMap *bm, TtVersionId id, TtDiag *diag)
{
    TtBlockVersion *gone = tt_version_find(bm, id);
    GArray *merges;

    if (!gone) {
        return tt_fail(diag, TT_ERR_INVALID, "the disk has no version %"
                       G_GUINT32_FORMAT ": qemu-img snapshot -l lists them", id);
    }
    if (gone->pins) {
        return tt_fail(diag, TT_ERR_INVALID, "version %" G_GUINT32_FORMAT " is being "
                       "read: close its readers first", id);
    }
    merges = make_merges(bm, gone);
    if (!merges) {
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory to delete version %"
                       G_GUINT32_FORMAT, id);
    }
    if (!bm->is_loading) {
        tt_ops_dirty(bm);
        tt_ops_id(bm->ops, 4, id);
    }
    for (guint i = 0; i < merges->len; i++) {
        install(bm, &g_array_index(merges, Merge, i), gone->parent);
    }
    if (bm->parent == gone) {
        merge_into_head(bm, gone);
    }
    forget(bm, gone);
    clear_merges(merges);
    return TT_OK;
}
