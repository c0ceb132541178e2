/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store: nodes ordered by position, each with the pages written since its
 * predecessor, and a map of the whole RAM that moves between them.
 *
 *   (all zero) --delta--> node 1 --delta--> node 2 --delta--> node 3
 *                                  ^
 *                                  map: version of every page here
 *
 *   delta = { page, old, new } by ascending page: old is the page's version at
 *   the predecessor (the undo log of TTVM 3.3), new the one at the node (the
 *   redo log). Both logs are one array and share the versions of the pool.
 *
 * The map makes "which version has page p at node b" one look-up, however many
 * nodes there are. It follows the current RAM: an operation moves it to the
 * base it names by walking the deltas in between, which is no step at all when
 * the base is where the last operation left the current RAM.
 *
 * Invariants, cited below:
 * S1  Nodes are sorted by position; positions of nodes that are not tombstones
 *     are unique; ids are given out once.
 * S2  Within a delta, pages ascend without duplicates.
 * S3  The state of node k is the state of node k-1 with delta k applied, and
 *     every `old` of delta k equals that page's version at k-1.
 * S4  A delta holds one reference on each `new`. So every version of every
 *     node's state lives: it is the `new` of the nearest delta at or before.
 * S5  A page written between two neighbours is in the delta of the later one,
 *     also when it has its old content again (old == new): reverse search
 *     relies on it. More pages than were written may be there, never fewer.
 * S6  map_at says whose state the map is in; NULL is the all-zero state.
 *
 * A tombstone is a node that was deleted when there was no memory to merge its
 * delta into its successor's. Nobody can name it any more; it stays as a delta
 * on the way and is merged as soon as there is memory.
 */
#include "tt-pagestore-int.h"

/* ---- nodes ---- */

TtNode *tt_node_new(TtPageStore *ps, uint64_t pos, size_t cap)
{
    TtDelta *d = tt_pagemem_try(&ps->mem, cap * sizeof(*d), false);
    TtNode *node;

    if (!d) {
        return NULL;
    }
    node = g_new0(TtNode, 1);
    node->pos = pos;
    node->cap = cap;
    node->d = d;
    return node;
}

void tt_blob_unref(TtPageStore *ps, TtBlob *blob)
{
    if (blob && --blob->refs == 0) {
        tt_pagemem_free(&ps->mem, blob, sizeof(*blob) + blob->len);
    }
}

static void node_free(TtPageStore *ps, TtNode *node)
{
    tt_blob_unref(ps, node->blob);
    tt_pagemem_free(&ps->mem, node->d, node->cap * sizeof(*node->d));
    g_free(node);
}

/* Gives back what a delta array has too much of, when that is worth it. */
static void node_trim(TtPageStore *ps, TtNode *node)
{
    TtDelta *d;

    if (node->cap - node->n <= node->cap / 8) {
        return;
    }
    d = tt_pagemem_try(&ps->mem, node->n * sizeof(*d), false);
    if (!d) {
        return;
    }
    if (node->n) {
        memcpy(d, node->d, node->n * sizeof(*d));
    }
    tt_pagemem_free(&ps->mem, node->d, node->cap * sizeof(*d));
    node->d = d;
    node->cap = node->n;
}

static void node_unref_all(TtPageStore *ps, const TtNode *node)
{
    for (size_t i = 0; i < node->n; i++) {
        tt_pagepool_unref(ps->pool, node->d[i].new);
    }
}

void tt_node_drop(TtPageStore *ps, TtNode *node)
{
    node_unref_all(ps, node);
    node_free(ps, node);
}

/* ---- deleting ---- */

/* True when delta @d says nothing: before the first node all pages are zero,
 * and nothing was written there. */
static bool delta_is_idle(const TtDelta *d, size_t index)
{
    return index == 0 && d->old == d->new;
}

/* Merges the delta of node @index into its successor's. False when memory is
 * short: then nothing changed. O(pages of both). */
static bool node_merge(TtPageStore *ps, size_t index)
{
    TtNode *a = node_at(ps, index), *b = node_at(ps, index + 1);
    size_t i = 0, j = 0, n = 0, cap = a->n + b->n;
    TtDelta *d = tt_pagemem_try(&ps->mem, cap * sizeof(*d), false);

    if (!d) {
        return false;
    }
    if (ps->map_at == a) {
        tt_pagemap_move(ps, index ? node_at(ps, index - 1) : NULL, NULL);
    }
    while (i < a->n || j < b->n) {
        if (j == b->n || (i < a->n && a->d[i].page < b->d[j].page)) {
            d[n] = a->d[i++];
        } else if (i == a->n || b->d[j].page < a->d[i].page) {
            d[n] = b->d[j++];
        } else {
            g_assert(a->d[i].new == b->d[j].old);               /* S3 */
            d[n] = (TtDelta) { a->d[i].page, a->d[i].old, b->d[j].new };
            tt_pagepool_unref(ps->pool, a->d[i].new);           /* S4 */
            i++;
            j++;
        }
        n += !delta_is_idle(&d[n], index);
    }
    tt_pagemem_free(&ps->mem, b->d, b->cap * sizeof(*d));
    b->d = d;
    b->n = n;
    b->cap = cap;
    node_trim(ps, b);
    ps->n_tombstones -= a->is_tombstone;
    g_ptr_array_remove_index(ps->nodes, index);
    node_free(ps, a);
    return true;
}

/* Drops the last node: no other state needs its delta. */
static void node_drop_last(TtPageStore *ps)
{
    size_t index = ps->nodes->len - 1;
    TtNode *node = node_at(ps, index);

    if (ps->map_at == node) {
        tt_pagemap_move(ps, index ? node_at(ps, index - 1) : NULL, NULL);
    }
    ps->n_tombstones -= node->is_tombstone;
    g_ptr_array_remove_index(ps->nodes, index);
    tt_node_drop(ps, node);
}

void tt_tombstones_sweep(TtPageStore *ps)
{
    while (ps->nodes->len && node_at(ps, ps->nodes->len - 1)->is_tombstone) {
        node_drop_last(ps);
    }
    for (size_t i = ps->nodes->len; ps->n_tombstones && i-- > 0; ) {
        if (node_at(ps, i)->is_tombstone && !node_merge(ps, i)) {
            return;
        }
    }
}

void tt_pagestore_delete(TtPageStore *ps, TtNodeId id)
{
    TtNode *node = node_get(ps, id);

    g_assert(node);
    g_hash_table_remove(ps->by_id, GUINT_TO_POINTER(id));
    tt_storefile_note_delete(ps, node);
    tt_blob_unref(ps, node->blob);
    node->blob = NULL;
    node->is_tombstone = true;
    ps->n_tombstones++;
    tt_tombstones_sweep(ps);
}

/* ---- adding ---- */

/*
 * Fills @node with what changed between its predecessor, where the map is, and
 * the current RAM. @next: the successor or NULL. A page with its old content
 * stays in when it may have been written (S5); history being one line, a page
 * the successor does not list was not. False: memory; @node holds nothing.
 */
static bool add_fill(TtPageStore *ps, TtNode *node, const TtNode *next,
                     const TtTouchList *tl, TtPageFetch fetch, void *opaque)
{
    size_t k = 0;
    bool is_first = !ps->map_at;

    for (size_t i = 0; i < tl->n; i++) {
        const TtTouch *t = &tl->t[i];
        TtDelta *d = &node->d[node->n];
        bool is_listed;

        *d = (TtDelta) { t->page, cell_of(ps, t->page)->version, t->base };
        if (t->base != TOUCH_DIRTY) {
            tt_pagepool_ref(ps->pool, d->new);
        } else if (!tt_pagepool_intern(ps->pool, fetch(opaque, t->page),
                                       &d->new)) {
            node_unref_all(ps, node);
            return false;
        }
        while (next && k < next->n && next->d[k].page < t->page) {
            k++;
        }
        is_listed = next ? k < next->n && next->d[k].page == t->page
                         : !is_first && t->base == TOUCH_DIRTY;
        if (d->old != d->new || is_listed) {
            node->n++;
        } else {
            tt_pagepool_unref(ps->pool, d->new);
        }
    }
    return true;
}

/*
 * What the delta of @next becomes when @node comes before it, into @d (room
 * for both); no reference moves yet. Returns the number of entries.
 */
static size_t add_split(const TtNode *node, const TtNode *next, TtDelta *d)
{
    size_t i = 0, j = 0, n = 0;

    while (i < node->n || j < next->n) {
        const TtDelta *a = &node->d[i], *b = &next->d[j];

        if (j == next->n || (i < node->n && a->page < b->page)) {
            d[n++] = (TtDelta) { a->page, a->new, a->old };
            i++;
        } else if (i == node->n || b->page < a->page) {
            d[n++] = *b;
            j++;
        } else {
            g_assert(a->old == b->old);                         /* S3 */
            d[n++] = (TtDelta) { a->page, a->new, b->new };
            i++;
            j++;
        }
    }
    return n;
}

/* Puts the new delta @d of @n entries (room: @cap) in place of @next's. Pages
 * that only @node lists go back to their old version: one more reference. */
static void add_commit_split(TtPageStore *ps, const TtNode *node, TtNode *next,
                             TtDelta *d, size_t n, size_t cap)
{
    for (size_t i = 0, j = 0; i < node->n; i++) {
        while (j < next->n && next->d[j].page < node->d[i].page) {
            j++;
        }
        if (j == next->n || next->d[j].page != node->d[i].page) {
            tt_pagepool_ref(ps->pool, node->d[i].old);          /* S4 */
        }
    }
    tt_pagemem_free(&ps->mem, next->d, next->cap * sizeof(*d));
    next->d = d;
    next->n = n;
    next->cap = cap;
    node_trim(ps, next);
}

bool tt_node_insert(TtPageStore *ps, size_t index, TtNode *node)
{
    TtNode *next = index < ps->nodes->len ? node_at(ps, index) : NULL;
    size_t cap = next ? node->n + next->n : 0;
    TtDelta *split;

    if (next) {
        split = tt_pagemem_try(&ps->mem, cap * sizeof(*split), false);
        if (!split) {
            return false;
        }
        add_commit_split(ps, node, next, split, add_split(node, next, split),
                         cap);
    }
    node_trim(ps, node);
    g_assert(node->id != 0);                                    /* S1 */
    g_ptr_array_insert(ps->nodes, index, node);
    g_hash_table_insert(ps->by_id, GUINT_TO_POINTER(node->id), node);
    tt_pagemap_move(ps, node, NULL);
    return true;
}

/* False: memory. */
static bool node_set_meta(TtPageStore *ps, TtNode *node,
                          const TtCheckpointMeta *meta)
{
    if (!meta) {
        return true;
    }
    node->flags = meta->flags;
    node->host_ns = meta->host_ns;
    if (!meta->blob_bytes) {
        return true;
    }
    node->blob = tt_pagemem_try(&ps->mem, sizeof(TtBlob) + meta->blob_bytes,
                                false);
    if (!node->blob) {
        return false;
    }
    node->blob->refs = 1;
    node->blob->len = node->blob_bytes = meta->blob_bytes;
    memcpy(node->blob->bytes, meta->blob, meta->blob_bytes);
    return true;
}

typedef struct AddArgs {
    uint64_t pos;
    TtPageFetch fetch;
    void *opaque;
    const TtCheckpointMeta *meta;
} AddArgs;

/* The new node goes in at @index, behind the node the map is at. */
static bool add_at(TtPageStore *ps, size_t index, const TtTouchList *tl,
                   const AddArgs *args, TtNodeId *out)
{
    TtNode *next = index < ps->nodes->len ? node_at(ps, index) : NULL;
    TtNode *node = tt_node_new(ps, args->pos, tl->n + 1);
    TtPendingOp *op = NULL;

    if (!node) {
        return false;
    }
    node->id = ps->last_id + 1;
    if (!node_set_meta(ps, node, args->meta) ||
        !add_fill(ps, node, next, tl, args->fetch, args->opaque)) {
        node_free(ps, node);
        return false;
    }
    if (!tt_storefile_prepare_add(ps, node, &op) ||
        !tt_node_insert(ps, index, node)) {
        tt_storefile_cancel(ps, op);
        tt_node_drop(ps, node);
        return false;
    }
    ps->last_id = node->id;
    tt_storefile_commit(ps, node, op);
    *out = node->id;
    return true;
}

bool tt_node_is_taken(const TtPageStore *ps, size_t upper, uint64_t pos)
{
    for (size_t i = upper; i > 0 && node_at(ps, i - 1)->pos == pos; i--) {
        if (!node_at(ps, i - 1)->is_tombstone) {
            return true;
        }
    }
    return false;
}

TtStatus tt_pagestore_add_checkpoint(TtPageStore *ps, uint64_t pos,
                                     TtNodeId base, const uint64_t *dirty,
                                     size_t n_dirty, TtPageFetch fetch,
                                     void *opaque,
                                     const TtCheckpointMeta *meta,
                                     TtNodeId *out)
{
    const AddArgs args = { pos, fetch, opaque, meta };
    TtNode *b = node_get(ps, base);
    TtTouchList tl;
    size_t index;
    bool ok;

    if (n_dirty && dirty[n_dirty - 1] >= TT_PAGES_MAX) {
        return TT_ERR_INVALID;
    }
    if (b ? b->pos >= pos : base) {
        return TT_ERR_INVALID;
    }
    if (ps->nodes->len >= TT_PAGESTORE_NODES_MAX || ps->last_id >= INT32_MAX ||
        (meta && meta->blob_bytes > TT_PAGESTORE_BLOB_MAX)) {
        return TT_ERR_LIMIT;
    }
    tt_tombstones_sweep(ps);
    if (ps->file && ps->n_tombstones) {
        return TT_ERR_NOMEM;    /* the journal knows no tombstones */
    }
    index = tt_node_upper(ps, pos);
    if (tt_node_is_taken(ps, index, pos) || (!b && index)) {
        return TT_ERR_INVALID;
    }
    ok = tt_touch_collect(ps, b, index ? node_at(ps, index - 1) : NULL, dirty,
                          n_dirty, &tl) &&
         add_at(ps, index, &tl, &args, out);
    tt_touch_cleanup(ps, &tl);
    return ok ? TT_OK : TT_ERR_NOMEM;
}

TtStatus tt_pagestore_add(TtPageStore *ps, uint64_t pos, TtNodeId base,
                          const uint64_t *dirty, size_t n_dirty,
                          TtPageFetch fetch, void *opaque, TtNodeId *out)
{
    return tt_pagestore_add_checkpoint(ps, pos, base, dirty, n_dirty, fetch,
                                       opaque, NULL, out);
}

/* ---- moving the current RAM ---- */

TtStatus tt_pagestore_restore(TtPageStore *ps, TtNodeId target, TtNodeId base,
                              const uint64_t *dirty, size_t n_dirty,
                              TtPagePut put, void *opaque, size_t *n_put)
{
    TtNode *b = node_get(ps, base), *to = node_get(ps, target);
    TtStatus st = TT_OK;
    TtTouchList tl;
    size_t n = 0;

    if ((!b && base) || !to ||
        (n_dirty && dirty[n_dirty - 1] >= TT_PAGES_MAX)) {
        return TT_ERR_INVALID;
    }
    if (!tt_touch_collect(ps, b, to, dirty, n_dirty, &tl)) {
        return TT_ERR_NOMEM;
    }
    for (size_t i = 0; i < tl.n; i++) {
        TtVersion v = cell_of(ps, tl.t[i].page)->version;
        const void *bytes;

        if (v != tl.t[i].base) {
            st = tt_pagepool_read(ps->pool, v, &bytes);
            if (st != TT_OK) {
                break;
            }
            put(opaque, tl.t[i].page, bytes);
            n++;
        }
    }
    tt_touch_cleanup(ps, &tl);
    if (n_put) {
        *n_put = n;
    }
    return st == TT_ERR_NOMEM && n ? TT_ERR_IO : st;   /* a origin was short of it */
}

TtStatus tt_pagestore_read(TtPageStore *ps, TtNodeId target, uint64_t first,
                           uint64_t n, TtPagePut put, void *opaque)
{
    TtNode *to = node_get(ps, target);
    TtStatus st = TT_OK;
    TtTouchList tl;

    if (!to) {
        return TT_ERR_INVALID;
    }
    if (!tt_touch_collect(ps, NULL, to, NULL, 0, &tl)) {
        return TT_ERR_NOMEM;
    }
    for (size_t i = 0; i < tl.n && st == TT_OK; i++) {
        uint64_t page = tl.t[i].page;
        TtVersion v = cell_of(ps, page)->version;
        const void *bytes;

        if (v && page >= first && page - first < n) {
            st = tt_pagepool_read(ps->pool, v, &bytes);
            if (st == TT_OK) {
                put(opaque, page, bytes);
            }
        }
    }
    tt_touch_cleanup(ps, &tl);
    return st;
}

uint64_t *tt_pagestore_rebase(TtPageStore *ps, TtNodeId from, TtNodeId to,
                              size_t *n)
{
    TtNode *a = node_get(ps, from), *b = node_get(ps, to);
    TtTouchList tl;
    uint64_t *pages;

    g_assert(a && b);
    *n = 0;
    if (!tt_touch_collect(ps, a, b, NULL, 0, &tl)) {
        return NULL;
    }
    pages = tt_pagemem_may(&ps->mem) ? g_try_new(uint64_t, MAX(tl.n, 1))
                                     : NULL;
    if (pages) {
        for (size_t i = 0; i < tl.n; i++) {
            pages[i] = tl.t[i].page;
        }
        *n = tl.n;
    }
    tt_touch_cleanup(ps, &tl);
    return pages;
}

/* ---- questions ---- */

static TtDelta *delta_find(const TtNode *node, uint64_t page)
{
    size_t lo = 0, hi = node->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (node->d[mid].page < page) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < node->n && node->d[lo].page == page ? &node->d[lo] : NULL;
}

bool tt_pagestore_changed(TtPageStore *ps, TtNodeId id, uint64_t page)
{
    TtNode *node = node_get(ps, id);
    size_t rank;

    g_assert(node);
    rank = tt_node_rank(ps, node);
    do {
        if (delta_find(node_at(ps, rank - 1), page)) {
            return true;
        }
    } while (--rank && node_at(ps, rank - 1)->is_tombstone);
    return false;
}

uint64_t tt_pagestore_node_pages(TtPageStore *ps, TtNodeId id)
{
    TtNode *node = node_get(ps, id);

    g_assert(node);
    return node->n;
}

void tt_pagestore_pack(TtPageStore *ps, uint64_t plain, uint64_t all)
{
    tt_pagepool_pack(ps->pool, plain, all);
}

uint64_t tt_pagestore_bytes(const TtPageStore *ps)
{
    return ps->mem.held_bytes - tt_pagepool_idle_bytes(ps->pool) +
           ps->nodes->len * sizeof(TtNode);
}

uint64_t tt_pagestore_versions(const TtPageStore *ps)
{
    return tt_pagepool_count(ps->pool);
}

void tt_pagestore_fail_alloc(TtPageStore *ps, uint64_t nth)
{
    ps->mem.fail_in = nth;
}

/* ---- life ---- */

TtPageStore *tt_pagestore_new(void)
{
    TtPageStore *ps = g_new0(TtPageStore, 1);

    ps->pool = tt_pagepool_new(&ps->mem);
    ps->nodes = g_ptr_array_new();
    ps->by_id = g_hash_table_new(NULL, NULL);
    return ps;
}

void tt_pagestore_free(TtPageStore *ps)
{
    if (!ps) {
        return;
    }
    tt_storefile_free(ps);
    for (size_t i = 0; i < ps->nodes->len; i++) {
        node_free(ps, node_at(ps, i));
    }
    g_ptr_array_free(ps->nodes, true);
    g_hash_table_destroy(ps->by_id);
    tt_pagepool_free(ps->pool);
    tt_pagemap_free(ps);
    g_assert(ps->mem.held_bytes == 0);
    g_free(ps);
}
