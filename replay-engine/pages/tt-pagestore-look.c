/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store: looking at a node with as few pages read as possible. A page that is on disk
 * costs a read and a decompression; its hash is in memory.
 */
#include "tt-pagestore-int.h"

/* Of @page, whose version is @v: *@bytes, NULL if it is zero. */
static TtStatus bytes_of(TtPageStore *ps, TtVersion v, const void **bytes)
{
    *bytes = NULL;
    return v ? tt_pagepool_read(ps->map.pool, v, bytes) : TT_OK;
}

TtStatus tt_pagestore_read_since(TtPageStore *ps, TtNodeId base, TtNodeId target,
                                 TtPagePut put, void *opaque)
{
    TtNode *b = node_get(&ps->map, base), *to = node_get(&ps->map, target);
    TtStatus st = TT_OK;
    TtTouchList tl;

    if ((!b && base) || !to) {
        return TT_ERR_INVALID;
    }
    if (!tt_touch_collect(&ps->map, b, to, NULL, 0, &tl)) {
        return TT_ERR_NOMEM;
    }
    for (size_t i = 0; i < tl.n && st == TT_OK; i++) {
        const void *bytes;

        st = bytes_of(ps, cell_of(&ps->map, tl.t[i].page)->version, &bytes);
        if (st == TT_OK) {
            put(opaque, tl.t[i].page, bytes);
        }
    }
    tt_touch_cleanup(&ps->map, &tl);
    return st;
}

typedef struct Comparison {
    TtPageStore *ps;
    TtPageFetch here;
    TtPagePut put;
    void *opaque;
    uint64_t next;              /* pages before it are compared */
} Comparison;

static TtStatus compare(Comparison *c, uint64_t page, TtVersion v)
{
    const void *bytes;
    TtStatus st;

    if (tt_pagepool_is_like(c->ps->map.pool, v, c->here(c->opaque, page))) {
        return TT_OK;
    }
    st = bytes_of(c->ps, v, &bytes);
    if (st == TT_OK) {
        c->put(c->opaque, page, bytes);
    }
    return st;
}

/* Up to @page those that no node lists are zero. */
static TtStatus compare_zeros(Comparison *c, uint64_t page)
{
    TtStatus st = TT_OK;

    for (; st == TT_OK && c->next < page; c->next++) {
        st = compare(c, c->next, TT_VERSION_ZERO);
    }
    return st;
}

TtStatus tt_pagestore_compare(TtPageStore *ps, TtNodeId target, uint64_t n,
                              TtPageFetch here, TtPagePut put, void *opaque)
{
    Comparison c = { .ps = ps, .here = here, .put = put, .opaque = opaque };
    TtNode *to = node_get(&ps->map, target);
    TtStatus st = TT_OK;
    TtTouchList tl;

    if (!to) {
        return TT_ERR_INVALID;
    }
    if (!tt_touch_collect(&ps->map, NULL, to, NULL, 0, &tl)) {
        return TT_ERR_NOMEM;
    }
    for (size_t i = 0; i < tl.n && tl.t[i].page < n && st == TT_OK; i++) {
        uint64_t page = tl.t[i].page;

        st = compare_zeros(&c, page);
        if (st == TT_OK) {
            st = compare(&c, page, cell_of(&ps->map, page)->version);
            c.next = page + 1;
        }
    }
    tt_touch_cleanup(&ps->map, &tl);
    return st == TT_OK ? compare_zeros(&c, n) : st;
}
