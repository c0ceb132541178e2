/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store with files: a flush writes versions, then records, then gives
 * space back. Invariants W1 to W3: see tt-storefile.c.
 */
#include "tt-storefile.h"

/* A journal below this is not worth a rewrite. */
#define REWRITE_BYTES_MIN   65536u

/* ---- versions ---- */

/* The group that is being filled, and whose versions are in it. */
typedef struct Draft {
    TtVersion version[TT_F_GROUP_PAGES_MAX];
    unsigned n;
} Draft;

static TtStatus draft_write(TtStoreFile *f, Draft *d, TtDiag *diag)
{
    TtPageFile *pf = f->pages;
    TtStatus st = d->n ? tt_pagefile_commit(pf, diag) : TT_OK;

    for (unsigned i = 0; i < d->n; i++) {
        if (st == TT_OK) {
            TtPlace place = tt_pagefile_placed(pf, i);

            tt_pagepool_set_place(f->map->pool, d->version[i], &place);
        } else {
            tt_pagepool_unmark(f->map->pool, d->version[i]);
        }
    }
    d->n = 0;
    return st;
}

/* Puts @v into the draft unless it has a place; writes a draft that is full. */
static TtStatus draft_put(TtStoreFile *f, Draft *d, TtVersion v, TtDiag *diag)
{
    TtPlace place;
    TtStatus st = TT_OK;

    if (v == TT_VERSION_ZERO) {
        return TT_OK;
    }
    place = tt_pagepool_place(f->map->pool, v);
    if (place.id || !tt_pagepool_mark(f->map->pool, v)) {
        return TT_OK;
    }
    if (!d->n) {
        st = tt_pagefile_begin(f->pages, false, diag);
        if (st != TT_OK) {
            tt_pagepool_unmark(f->map->pool, v);
            return st;
        }
    }
    tt_pagefile_put(f->pages, tt_pagepool_bytes(f->map->pool, v),
                    place.hash);
    d->version[d->n++] = v;
    return d->n == TT_F_GROUP_PAGES_MAX ? draft_write(f, d, diag) : TT_OK;
}

/* All versions that the records to be written name, in their order. */
static TtStatus write_versions(TtStoreFile *f, TtDiag *diag)
{
    g_autofree Draft *d = g_new0(Draft, 1);
    GPtrArray *pending = f->pending;
    TtStatus st = TT_OK;

    if (f->is_behind) {
        for (TtVersion v = tt_pagepool_next(f->map->pool, 0); v && st == TT_OK;
             v = tt_pagepool_next(f->map->pool, v)) {
            st = draft_put(f, d, v, diag);
        }
    }
    for (size_t i = 0; i < pending->len && st == TT_OK; i++) {
        const TtPendingOp *op = pending->pdata[i];

        for (size_t k = 0; k < op->n && st == TT_OK; k++) {
            st = draft_put(f, d, op->named[k].version, diag);
        }
    }
    return st == TT_OK ? draft_write(f, d, diag) : st;
}

/* ---- records ---- */

/* The source of a record's list: a pending operation, or a node. */
typedef struct ListSource {
    const TtNamed *named;
    const TtDelta *delta;
    size_t n;
} ListSource;

static TtStatus write_add(TtStoreFile *f, TtPageRecord *rec,
                          const ListSource *src, TtDiag *diag)
{
    size_t cap = src->n * TT_PAGELIST_ITEM_MAX;
    uint8_t *list = tt_pagemem_try(&f->map->mem, cap, false), *p = list;
    TtPageListCursor c;
    TtStatus st;

    if (!list || cap > UINT32_MAX) {
        tt_pagemem_free(&f->map->mem, list, cap);
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory to write a "
                       "checkpoint of %zu pages", src->n);
    }
    tt_pagelist_begin(&c, rec);
    for (size_t i = 0; i < src->n; i++) {
        TtVersion v = src->named ? src->named[i].version : src->delta[i].new;
        uint32_t page = src->named ? src->named[i].page : src->delta[i].page;
        uint64_t id = v ? tt_pagepool_place(f->map->pool, v).id : 0;

        g_assert(!v || id);                                     /* W2 */
        p = tt_pagelist_put(&c, p, page, id);
    }
    rec->n_pages = src->n;
    rec->list = list;
    rec->list_bytes = p - list;
    st = tt_pagejournal_append(f->journal, rec, diag);
    tt_pagemem_free(&f->map->mem, list, cap);
    return st;
}

/* @node's record is @rec now: its blob need not be kept. */
static void node_is_written(TtStoreFile *f, TtNode *node,
                            const TtPageRecord *rec)
{
    node->record_bytes = rec->bytes;
    node->blob_offset = rec->blob_offset;
    node->blob_sum = rec->blob_sum;
    tt_blob_unref(f->map, node->blob);
    node->blob = NULL;
}

static TtStatus write_op(TtStoreFile *f, const TtPendingOp *op, TtDiag *diag)
{
    TtPageRecord rec = {
        .kind = op->kind, .id = op->id, .flags = op->flags, .pos = op->pos,
        .host_ns = op->host_ns,
        .blob = op->blob ? op->blob->bytes : NULL,
        .blob_bytes = op->blob ? op->blob->len : 0,
    };
    const ListSource src = { .named = op->named, .n = op->n };
    TtStatus st = op->kind == TT_F_REC_ADD
                  ? write_add(f, &rec, &src, diag)
                  : tt_pagejournal_append(f->journal, &rec, diag);

    if (st == TT_OK && op->kind == TT_F_REC_ADD) {
        TtNode *node = node_get(f->map, op->id);

        if (node) {
            node_is_written(f, node, &rec);
        } else {
            f->dead_bytes += rec.bytes;         /* deleted since */
        }
    }
    return st;
}

/* One record for @node in the new journal. */
static TtStatus rewrite_node(TtStoreFile *f, const TtNode *node,
                             TtPageRecord *rec, TtDiag *diag)
{
    const ListSource src = { .delta = node->d, .n = node->n };
    g_autofree void *blob = NULL;
    TtStatus st = TT_OK;
    size_t len;

    *rec = (TtPageRecord) {
        .kind = TT_F_REC_ADD, .id = node->id, .flags = node->flags,
        .pos = node->pos, .host_ns = node->host_ns,
        .blob_bytes = node->blob_bytes,
    };
    if (node->blob) {
        rec->blob = node->blob->bytes;
    } else if (node->blob_bytes) {
        st = tt_storefile_node_blob(f, node, &blob, &len, diag);
        rec->blob = blob;
    }
    if (st == TT_OK) {
        st = write_add(f, rec, &src, diag);
    }
    rec->blob = NULL;
    return st;
}

/* J5: the journal anew. All versions have places. */
static TtStatus rewrite_journal(TtStoreFile *f, TtDiag *diag)
{
    g_autofree TtPageRecord *recs = NULL;
    TtStatus st;

    tt_tombstones_sweep(f->map);
    recs = g_try_new(TtPageRecord, MAX(f->map->nodes->len, 1));
    if (f->map->n_tombstones || !recs) {
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory to rewrite the "
                       "journal");
    }
    st = tt_pagejournal_rewrite_begin(f->journal, f->map->last_id, diag);
    if (st != TT_OK) {
        return st;
    }
    for (size_t i = 0; i < f->map->nodes->len && st == TT_OK; i++) {
        st = rewrite_node(f, node_at(f->map, i), &recs[i], diag);
    }
    if (st != TT_OK) {
        tt_pagejournal_rewrite_abort(f->journal);
        return st;
    }
    st = tt_pagejournal_rewrite_commit(f->journal, diag);
    if (st == TT_OK) {
        for (size_t i = 0; i < f->map->nodes->len; i++) {
            node_is_written(f, node_at(f->map, i), &recs[i]);
        }
        f->dead_bytes = 0;
        f->is_behind = false;                                   /* W1 */
    }
    return st;
}

/* One record for @node in another journal. */
static TtStatus export_node(TtStoreFile *f, const TtNode *node,
                            TtPageJournal *to, TtPageStrip strip, TtDiag *diag)
{
    const ListSource src = { .delta = node->d, .n = node->n };
    TtPageJournal *own = f->journal;
    g_autofree void *blob = NULL;
    TtPageRecord rec = {
        .kind = TT_F_REC_ADD, .id = node->id, .flags = node->flags,
        .pos = node->pos, .host_ns = node->host_ns,
    };
    size_t len;
    TtStatus st = tt_storefile_node_blob(f, node, &blob, &len, diag);

    if (st != TT_OK) {
        return st;
    }
    if (strip) {
        strip(&blob, &len, &rec.flags);
    }
    rec.blob = blob;
    rec.blob_bytes = len;
    f->journal = to;                    /* where write_add writes */
    st = write_add(f, &rec, &src, diag);
    f->journal = own;
    return st;
}

TtStatus tt_storefile_export(TtStoreFile *f, TtIo *to,
                             const uint8_t uuid[16], TtPageStrip strip,
                             TtDiag *diag)
{
    TtPageJournal *copy;
    TtStatus st;

    g_assert(f && !f->pending->len && !f->map->n_tombstones);
    st = tt_pagejournal_create(to, uuid, &copy, diag);
    for (size_t i = 0; st == TT_OK && i < f->map->nodes->len; i++) {
        st = export_node(f, node_at(f->map, i), copy, strip, diag);
    }
    tt_pagejournal_free(copy);
    return st;
}

static TtStatus write_records(TtStoreFile *f, TtDiag *diag)
{
    TtStatus st = TT_OK;

    if (f->is_behind) {
        return rewrite_journal(f, diag);
    }
    for (size_t i = 0; i < f->pending->len && st == TT_OK; i++) {
        st = write_op(f, f->pending->pdata[i], diag);
    }
    return st;
}

/* ---- flush ---- */

/* The space for the pages, when the journal, and its successor, have theirs. */
static void limit_pages(TtStoreFile *f)
{
    uint64_t journal = tt_pagejournal_bytes(f->journal) +
                       tt_storefile_journal_live(f);

    for (size_t i = 0; i < f->pending->len; i++) {
        const TtPendingOp *op = f->pending->pdata[i];

        journal += 2 * (TT_F_REC_BYTES + op->n * TT_PAGELIST_ITEM_MAX) +
                   (op->blob ? op->blob->len : 0);
    }
    if (f->max_bytes) {
        tt_pagefile_limit(f->pages, f->max_bytes > journal ?
                          f->max_bytes - journal : 1);
    }
}

static TtStatus flush_all(TtStoreFile *f, TtDiag *diag)
{
    TtStatus st;

    limit_pages(f);
    if (f->pending->len || f->is_behind) {
        st = write_versions(f, diag);
        if (st == TT_OK) {
            st = write_records(f, diag);
        }
        if (st != TT_OK) {
            return st;
        }
        tt_storefile_pending_clear(f);
    }
    if (f->dead_bytes > REWRITE_BYTES_MIN &&
        f->dead_bytes > tt_pagejournal_bytes(f->journal) / 2) {
        (void)rewrite_journal(f, NULL);         /* the old one serves, too */
    }
    st = tt_storefile_give_back(f, diag);
    tt_pagepool_trim(f->map->pool);
    return st;
}

TtStatus tt_storefile_flush(TtStoreFile *f, TtDiag *diag)
{
    TtDiag unused;
    TtStatus st;

    if (!f || !f->is_writable) {
        return TT_OK;
    }
    st = flush_all(f, f->said ? &unused : diag);
    if (st == TT_OK) {
        f->said = false;
        return TT_OK;
    }
    tt_storefile_pending_clear(f);                              /* W1 */
    f->is_behind = true;
    if (f->said) {
        return TT_END;
    }
    f->said = true;
    return st;
}
