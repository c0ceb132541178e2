/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Versions: made from the head, gone back to, deleted.
 *
 * They form a tree. Going from the head to a version undoes changes up to the nearest
 * version that both come from, and carries out those below it: clusters that are not on
 * the way are not touched.
 */
#include "block-tt/tt-blockmap-int.h"

TtBlockVersion *tt_version_find(const TtBlockMap *bm, TtVersionId id)
{
    guint low = 0, high = bm->versions->len;

    while (low < high) {
        guint mid = low + (high - low) / 2;
        TtBlockVersion *v = bm->versions->pdata[mid];

        if (v->info.id == id) {
            return v;
        }
        *(v->info.id < id ? &low : &high) = v->info.id < id ? mid + 1 : mid;
    }
    return NULL;
}

void tt_version_free(TtBlockVersion *v)
{
    g_free(v->change);
    g_free(v);
}

/* ---- a new one ---- */

/* The head's changes, by cluster. */
static bool take_changes(TtBlockMap *bm, TtBlockVersion *v)
{
    v->n = bm->changed->len;
    v->change = g_try_new(TtBlockChange, v->n + 1);
    if (!v->change) {
        return false;
    }
    tt_head_sort(bm);
    for (size_t i = 0; i < v->n; i++) {
        const TtHeadChange *c = &g_array_index(bm->changed, TtHeadChange, i);

        v->change[i] = (TtBlockChange) { c->cluster, c->was,
                                         tt_table_get(&bm->table, c->cluster) };
    }
    return true;
}

TtStatus tt_version_make(TtBlockMap *bm, const TtVersionInfo *info, TtDiag *diag)
{
    TtBlockVersion *v;

    assert(!bm->writes && info->id > bm->last_id);
    if (bm->versions->len >= TT_BLOCKMAP_VERSIONS_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "the disk has reached its limit of "
                       "versions: delete some");
    }
    v = g_new0(TtBlockVersion, 1);
    if (!take_changes(bm, v)) {
        tt_version_free(v);
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for another version");
    }
    v->info = *info;
    v->info.parent = bm->parent ? bm->parent->info.id : 0;
    v->parent = bm->parent;
    g_ptr_array_add(bm->versions, v);
    bm->last_id = info->id;
    bm->parent = v;
    tt_head_disown(bm);         /* refs pass from the head to the version */
    return TT_OK;
}

TtStatus tt_blockmap_version_new(TtBlockMap *bm, const TtVersionInfo *want,
                                 TtVersionId *id, TtDiag *diag)
{
    TtVersionInfo info = *want;
    TtStatus st;

    if (bm->last_id == UINT32_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "this image has no numbers left for "
                       "versions: convert it to a new one");
    }
    info.id = bm->last_id + 1;
    info.name[TT_BLOCKMAP_NAME_MAX] = '\0';
    st = tt_version_make(bm, &info, diag);
    if (st == TT_OK) {
        tt_ops_dirty(bm);
        tt_ops_version(bm->ops, &info);
        *id = info.id;
    }
    return st;
}

/* ---- going to one ---- */

static void put_value(TtBlockTable *t, uint32_t cluster, uint32_t value)
{
    TtBlockLeaf *l = t->leaf[cluster >> TT_LEAF_BITS];

    tt_table_put(t, l, cluster & (TT_LEAF - 1), value);     /* I3 */
}

static void carry_out(TtBlockTable *t, const TtBlockVersion *v)
{
    for (size_t i = 0; i < v->n; i++) {
        put_value(t, v->change[i].cluster, v->change[i].is);
    }
}

static void undo(TtBlockTable *t, const TtBlockVersion *v)
{
    for (size_t i = 0; i < v->n; i++) {
        put_value(t, v->change[i].cluster, v->change[i].was);
    }
}

/* The nearest that both come from; NULL: the disk as it was made. */
static TtBlockVersion *common(TtBlockVersion *a, TtBlockVersion *b)
{
    TtBlockVersion *found = b;

    for (TtBlockVersion *v = a; v; v = v->parent) {
        v->mark = true;
    }
    while (found && !found->mark) {
        found = found->parent;
    }
    for (TtBlockVersion *v = a; v; v = v->parent) {
        v->mark = false;
    }
    return found;
}

/* @t, which is equal to @from, becomes equal to @to. */
static void walk(TtBlockTable *t, TtBlockVersion *from, TtBlockVersion *to)
{
    TtBlockVersion *top = common(from, to);
    GPtrArray *down = g_ptr_array_new();

    for (; from != top; from = from->parent) {
        undo(t, from);
    }
    for (; to != top; to = to->parent) {
        g_ptr_array_add(down, to);
    }
    for (guint i = down->len; i > 0; i--) {
        carry_out(t, down->pdata[i - 1]);
    }
    g_ptr_array_unref(down);
}

static void undo_head(TtBlockTable *t, const TtBlockMap *bm)
{
    for (guint i = 0; i < bm->changed->len; i++) {
        const TtHeadChange *c = &g_array_index(bm->changed, TtHeadChange, i);

        put_value(t, c->cluster, c->was);
    }
}

static void drop_dirty(TtBlockMap *bm)
{
    for (guint i = 0; i < bm->dirty->len; i++) {
        uint32_t c = g_array_index(bm->dirty, uint32_t, i);

        tt_bit_put(tt_table_leaf(&bm->table, c)->dirty, c & (TT_LEAF - 1), false);
    }
    g_array_set_size(bm->dirty, 0);
}

static TtStatus no_version(TtVersionId id, TtDiag *diag)
{
    return tt_fail(diag, TT_ERR_INVALID, "the disk has no version %" G_GUINT32_FORMAT
                   ": qemu-img snapshot -l lists them", id);
}

TtStatus tt_blockmap_goto(TtBlockMap *bm, TtVersionId id, TtDiag *diag)
{
    TtBlockVersion *to = tt_version_find(bm, id);

    assert(!bm->writes);
    if (id && !to) {
        return no_version(id, diag);
    }
    for (guint i = 0; i < bm->changed->len; i++) {
        uint32_t c = g_array_index(bm->changed, TtHeadChange, i).cluster;

        tt_alloc_unref(&bm->alloc, tt_table_get(&bm->table, c));
    }
    undo_head(&bm->table, bm);
    tt_head_disown(bm);
    drop_dirty(bm);
    walk(&bm->table, bm->parent, to);
    bm->parent = to;
    if (!bm->is_loading) {
        tt_ops_id(bm->ops, 3, id);
    }
    return TT_OK;
}

/* ---- views ---- */

struct TtBlockView {
    TtBlockTable table;
    TtBlockVersion *version;
};

TtBlockView *tt_blockmap_view_open(TtBlockMap *bm, TtVersionId id)
{
    TtBlockVersion *v = tt_version_find(bm, id);
    TtBlockView *view;

    if (id && !v) {
        return NULL;
    }
    view = g_new0(TtBlockView, 1);
    if (!tt_table_copy(&view->table, &bm->table)) {
        g_free(view);
        return NULL;
    }
    undo_head(&view->table, bm);
    walk(&view->table, bm->parent, v);
    view->version = v;
    if (v) {
        v->pins++;
    }
    return view;
}

void tt_blockmap_view_close(TtBlockMap *bm, TtBlockView *view)
{
    if (view) {
        if (view->version) {
            view->version->pins--;
        }
        tt_table_cleanup(&view->table);
        g_free(view);
    }
}

void tt_blockmap_view_lookup(const TtBlockView *view, uint64_t offset, uint64_t len,
                             TtBlockRun *run)
{
    tt_table_lookup(&view->table, offset, len, run);
}

/* ---- what there is ---- */

bool tt_blockmap_version_at(const TtBlockMap *bm, uint32_t i, TtVersionInfo *info)
{
    const TtBlockVersion *v;

    if (i >= bm->versions->len) {
        return false;
    }
    v = bm->versions->pdata[i];
    *info = v->info;
    info->parent = v->parent ? v->parent->info.id : 0;
    info->clusters = v->n;
    info->lost = v->lost;
    return true;
}

bool tt_blockmap_version_info(const TtBlockMap *bm, TtVersionId id,
                              TtVersionInfo *info)
{
    for (guint low = 0, high = bm->versions->len; low < high;) {
        guint mid = low + (high - low) / 2;
        const TtBlockVersion *v = bm->versions->pdata[mid];

        if (v->info.id == id) {
            return tt_blockmap_version_at(bm, mid, info);
        }
        *(v->info.id < id ? &low : &high) = v->info.id < id ? mid + 1 : mid;
    }
    return false;
}

static int by_number(gconstpointer a, gconstpointer b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void add_changed(GArray *all, const TtBlockVersion *v, const TtBlockVersion *top)
{
    for (; v != top; v = v->parent) {
        for (size_t i = 0; i < v->n; i++) {
            g_array_append_val(all, v->change[i].cluster);
        }
    }
}

uint32_t *tt_blockmap_diff(const TtBlockMap *bm, TtVersionId a, TtVersionId b,
                           size_t *n)
{
    TtBlockVersion *va = tt_version_find(bm, a), *vb = tt_version_find(bm, b), *top;
    GArray *all;
    uint32_t *clusters;
    guint kept = 0;

    *n = 0;
    if ((a && !va) || (b && !vb)) {
        return NULL;
    }
    top = common(va, vb);
    all = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    add_changed(all, va, top);
    add_changed(all, vb, top);
    g_array_sort(all, by_number);
    clusters = (uint32_t *)all->data;
    for (guint i = 0; i < all->len; i++) {
        if (!kept || clusters[kept - 1] != clusters[i]) {
            clusters[kept++] = clusters[i];
        }
    }
    *n = kept;
    return (uint32_t *)g_array_free(all, kept == 0);
}
