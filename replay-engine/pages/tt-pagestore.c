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
#include "tt-pagestore-test.h"

/* ---- deleting ---- */

void tt_pagestore_delete(TtPageStore *ps, TtNodeId id)
{
    TtNode *node = node_get(&ps->map, id);

    g_assert(node);
    g_hash_table_remove(ps->map.by_id, GUINT_TO_POINTER(id));
    tt_storefile_note_delete(ps->file, node);
    tt_blob_unref(&ps->map, node->blob);
    node->blob = NULL;
    node->is_tombstone = true;
    ps->map.n_tombstones++;
    tt_tombstones_sweep(&ps->map);
}

/* ---- adding ---- */

/*
 * Fills @node with what changed between its predecessor, where the map is, and
 * the current RAM. @next: the successor or NULL. A page with its old content
 * stays in when it may have been written (S5); history being one line, a page
 * the successor does not list was not. False: memory; @node has a part of it.
 */
static bool add_fill(TtPageStore *ps, TtNode *node, const TtNode *next,
                     const TtTouchList *tl, TtPageFetch fetch, void *opaque)
{
    size_t k = 0;
    bool is_first = !ps->map.map_at;

    for (size_t i = 0; i < tl->n; i++) {
        const TtTouch *t = &tl->t[i];
        TtDelta *d = &node->d[node->n];
        bool is_listed;

        *d = (TtDelta) { t->page, cell_of(&ps->map, t->page)->version,
                         t->base };
        if (t->base != TOUCH_DIRTY) {
            tt_pagepool_ref(ps->map.pool, d->new);
        } else if (!tt_pagepool_intern(ps->map.pool, fetch(opaque, t->page),
                                       &d->new)) {
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
            tt_pagepool_unref(ps->map.pool, d->new);
        }
    }
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
    node->blob = tt_pagemem_try(&ps->map.mem, sizeof(TtBlob) + meta->blob_bytes,
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

/* The new node goes in at @index, after the node the map is at. */
static bool add_at(TtPageStore *ps, size_t index, const TtTouchList *tl,
                   const AddArgs *args, TtNodeId *out)
{
    TtNode *next = index < ps->map.nodes->len ? node_at(&ps->map, index) : NULL;
    TtNode *node = tt_node_new(&ps->map, args->pos, tl->n + 1);
    TtPendingOp *op = NULL;

    if (!node) {
        return false;
    }
    node->id = ps->map.last_id + 1;
    if (!node_set_meta(ps, node, args->meta) ||
        !add_fill(ps, node, next, tl, args->fetch, args->opaque)) {
        tt_node_drop(&ps->map, node);
        return false;
    }
    if (!tt_storefile_prepare_add(ps->file, node, &op) ||
        !tt_node_insert(&ps->map, index, node)) {
        tt_storefile_cancel(ps->file, op);
        tt_node_drop(&ps->map, node);
        return false;
    }
    ps->map.last_id = node->id;
    tt_storefile_commit(ps->file, node, op);
    *out = node->id;
    return true;
}

TtStatus tt_pagestore_add_checkpoint(TtPageStore *ps, uint64_t pos,
                                     TtNodeId base, const uint64_t *dirty,
                                     size_t n_dirty, TtPageFetch fetch,
                                     void *opaque,
                                     const TtCheckpointMeta *meta,
                                     TtNodeId *out)
{
    const AddArgs args = { pos, fetch, opaque, meta };
    TtNode *b = node_get(&ps->map, base);
    TtTouchList tl;
    size_t index;
    bool ok;

    if (n_dirty && dirty[n_dirty - 1] >= TT_PAGES_MAX) {
        return TT_ERR_INVALID;
    }
    if (b ? b->pos >= pos : base) {
        return TT_ERR_INVALID;
    }
    if (ps->map.nodes->len >= TT_PAGESTORE_NODES_MAX ||
        ps->map.last_id >= INT32_MAX ||
        (meta && meta->blob_bytes > TT_PAGESTORE_BLOB_MAX)) {
        return TT_ERR_LIMIT;
    }
    tt_tombstones_sweep(&ps->map);
    if (ps->file && ps->map.n_tombstones) {
        return TT_ERR_NOMEM;    /* the journal knows no tombstones */
    }
    index = tt_node_upper(&ps->map, pos);
    if (tt_node_is_taken(&ps->map, index, pos) || (!b && index)) {
        return TT_ERR_INVALID;
    }
    ok = tt_touch_collect(&ps->map, b,
                          index ? node_at(&ps->map, index - 1) : NULL, dirty,
                          n_dirty, &tl) &&
         add_at(ps, index, &tl, &args, out);
    tt_touch_cleanup(&ps->map, &tl);
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
    TtNode *b = node_get(&ps->map, base), *to = node_get(&ps->map, target);
    TtStatus st = TT_OK;
    TtTouchList tl;
    size_t n = 0;

    if ((!b && base) || !to ||
        (n_dirty && dirty[n_dirty - 1] >= TT_PAGES_MAX)) {
        return TT_ERR_INVALID;
    }
    if (!tt_touch_collect(&ps->map, b, to, dirty, n_dirty, &tl)) {
        return TT_ERR_NOMEM;
    }
    for (size_t i = 0; i < tl.n; i++) {
        TtVersion v = cell_of(&ps->map, tl.t[i].page)->version;
        const void *bytes;

        if (v != tl.t[i].base) {
            st = tt_pagepool_read(ps->map.pool, v, &bytes);
            if (st != TT_OK) {
                break;
            }
            put(opaque, tl.t[i].page, bytes);
            n++;
        }
    }
    tt_touch_cleanup(&ps->map, &tl);
    if (n_put) {
        *n_put = n;
    }
    return st;
}

TtStatus tt_pagestore_read(TtPageStore *ps, TtNodeId target, uint64_t first,
                           uint64_t n, TtPagePut put, void *opaque)
{
    TtNode *to = node_get(&ps->map, target);
    TtStatus st = TT_OK;
    TtTouchList tl;

    if (!to) {
        return TT_ERR_INVALID;
    }
    if (!tt_touch_collect(&ps->map, NULL, to, NULL, 0, &tl)) {
        return TT_ERR_NOMEM;
    }
    for (size_t i = 0; i < tl.n && st == TT_OK; i++) {
        uint64_t page = tl.t[i].page;
        TtVersion v = cell_of(&ps->map, page)->version;
        const void *bytes;

        if (v && page >= first && page - first < n) {
            st = tt_pagepool_read(ps->map.pool, v, &bytes);
            if (st == TT_OK) {
                put(opaque, page, bytes);
            }
        }
    }
    tt_touch_cleanup(&ps->map, &tl);
    return st;
}

uint64_t *tt_pagestore_rebase(TtPageStore *ps, TtNodeId from, TtNodeId to,
                              size_t *n)
{
    TtNode *a = node_get(&ps->map, from), *b = node_get(&ps->map, to);
    TtTouchList tl;
    uint64_t *pages;

    g_assert(a && b);
    *n = 0;
    if (!tt_touch_collect(&ps->map, a, b, NULL, 0, &tl)) {
        return NULL;
    }
    pages = tt_pagemem_may(&ps->map.mem) ? g_try_new(uint64_t, MAX(tl.n, 1))
                                     : NULL;
    if (pages) {
        for (size_t i = 0; i < tl.n; i++) {
            pages[i] = tl.t[i].page;
        }
        *n = tl.n;
    }
    tt_touch_cleanup(&ps->map, &tl);
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
    TtNode *node = node_get(&ps->map, id);
    size_t rank;

    g_assert(node);
    rank = tt_node_rank(&ps->map, node);
    do {
        const TtNode *at = node_at(&ps->map, rank - 1);

        if (delta_find(at, page) || (at->is_from_zero && rank > 1)) {
            return true;
        }
    } while (--rank && node_at(&ps->map, rank - 1)->is_tombstone);
    return false;
}

uint64_t tt_pagestore_unwritten_since(TtPageStore *ps, uint64_t page, uint64_t pos)
{
    size_t n = ps->map.nodes->len, low = pos ? tt_node_upper(&ps->map, pos - 1) : 0;

    if (low == n) {
        return pos;                 /* what came after the last node is in no list */
    }
    for (; low > 0 && !node_at(&ps->map, low)->is_from_zero &&
           !delta_find(node_at(&ps->map, low), page); low--) {
        const TtNode *before = node_at(&ps->map, low - 1);

        if (!before->is_tombstone && before->pos < pos) {
            pos = before->pos;
        }
    }
    return pos;
}

uint64_t tt_pagestore_node_pages(TtPageStore *ps, TtNodeId id)
{
    TtNode *node = node_get(&ps->map, id);

    g_assert(node);
    return node->n;
}

void tt_pagestore_pack(TtPageStore *ps, uint64_t plain, uint64_t all)
{
    tt_pagepool_pack(ps->map.pool, plain, all);
}

uint64_t tt_pagestore_bytes(const TtPageStore *ps)
{
    return ps->map.mem.held_bytes - tt_pagepool_idle_bytes(ps->map.pool) +
           ps->map.nodes->len * sizeof(TtNode);
}

uint64_t tt_pagestore_versions(const TtPageStore *ps)
{
    return tt_pagepool_count(ps->map.pool);
}

void tt_pagestore_fail_alloc(TtPageStore *ps, uint64_t nth)
{
    ps->map.mem.fail_in = nth;
    ps->map.mem.fails_once = false;
}

void tt_pagestore_fail_one_alloc(TtPageStore *ps, uint64_t nth)
{
    ps->map.mem.fail_in = nth;
    ps->map.mem.fails_once = true;
}

/* ---- life ---- */

TtPageStore *tt_pagestore_new(void)
{
    TtPageStore *ps = g_new0(TtPageStore, 1);

    ps->map.pool = tt_pagepool_new(&ps->map.mem);
    ps->map.nodes = g_ptr_array_new();
    ps->map.by_id = g_hash_table_new(NULL, NULL);
    return ps;
}

void tt_pagestore_free(TtPageStore *ps)
{
    if (!ps) {
        return;
    }
    tt_storefile_free(ps->file);
    for (size_t i = 0; i < ps->map.nodes->len; i++) {
        tt_node_free(&ps->map, node_at(&ps->map, i));
    }
    g_ptr_array_free(ps->map.nodes, true);
    g_hash_table_destroy(ps->map.by_id);
    tt_pagepool_free(ps->map.pool);
    tt_pagemap_free(&ps->map);
    g_assert(ps->map.mem.held_bytes == 0);
    g_free(ps);
}

/* ---- files ---- */

TtStatus tt_pagestore_flush(TtPageStore *ps, TtDiag *diag)
{
    return tt_storefile_flush(ps->file, diag);
}

TtStatus tt_pagestore_export(TtPageStore *ps, TtIo *to,
                             const uint8_t uuid[16], TtPageStrip strip,
                             TtDiag *diag)
{
    return tt_storefile_export(ps->file, to, uuid, strip, diag);
}

bool tt_pagestore_wants_thinning(const TtPageStore *ps, uint64_t bytes)
{
    return tt_storefile_wants_thinning(ps->file, bytes);
}

TtStatus tt_pagestore_make_room(TtPageStore *ps, uint64_t bytes,
                                TtDiag *diag)
{
    return tt_storefile_make_room(ps->file, bytes, diag);
}

void tt_pagestore_renew(TtPageStore *ps, uint64_t least)
{
    tt_storefile_renew(ps->file, least);
}

TtStatus tt_pagestore_sync(TtPageStore *ps, TtDiag *diag)
{
    return tt_storefile_sync(ps->file, diag);
}

TtStatus tt_pagestore_find(TtPageStore *ps, const uint64_t hash[2], void *to,
                           TtDiag *diag)
{
    TtVersion v = tt_pagepool_find(ps->map.pool, hash);
    const void *bytes;
    TtStatus st;

    if (!v) {
        return TT_END;
    }
    st = tt_pagepool_read(ps->map.pool, v, &bytes);
    if (st == TT_OK) {
        memcpy(to, bytes, TT_PAGE_BYTES);
    } else if (tt_pagestore_read_error(ps)) {
        tt_fail(diag, st, "%s", ps->file->read_error.text);
    }
    return st;
}

const TtDiag *tt_pagestore_read_error(const TtPageStore *ps)
{
    return ps->file && ps->file->read_error.status != TT_OK
           ? &ps->file->read_error : NULL;
}
