/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store with files: what is written when.
 *
 * An operation is carried out in memory first and noted as pending, with a
 * reference on each version that its record will name. A flush writes the new
 * versions, then the records, then gives space back.
 *
 * Invariants, cited below:
 * W1  Without is_behind: journal + pending operations = the nodes in memory.
 *     With it: the journal is some earlier state, and nothing is pending; the
 *     next flush makes it anew from the nodes.
 * W2  A record is written after the versions that it names.
 * W3  A version that a pending record names keeps a reference until that is
 *     written. Places are given back only when nothing is pending: so none
 *     that the journal still needs.
 */
#include "tt-pagestore-file.h"

/* A journal below this is not worth a rewrite. */
#define REWRITE_BYTES_MIN   65536u

typedef struct Named {
    uint32_t page;
    TtVersion version;
} Named;

struct TtPendingOp {
    uint32_t kind, id, flags;
    uint64_t pos, host_ns;
    size_t n;                   /* W3: one reference on each */
    Named *named;
    TtBlob *blob;
};

/* ---- pending operations ---- */

void tt_storefile_cancel(TtPageStore *ps, TtPendingOp *op)
{
    if (!op) {
        return;
    }
    for (size_t i = 0; i < op->n; i++) {
        tt_pagepool_unref(ps->pool, op->named[i].version);
    }
    tt_pagemem_free(&ps->mem, op->named, op->n * sizeof(*op->named));
    tt_blob_unref(ps, op->blob);
    g_free(op);
}

static void pending_clear(TtPageStore *ps)
{
    GPtrArray *pending = ps->file->pending;

    for (size_t i = 0; i < pending->len; i++) {
        tt_storefile_cancel(ps, pending->pdata[i]);
    }
    g_ptr_array_set_size(pending, 0);
}

void tt_storefile_each_ref(const TtPageStore *ps,
                           void (*ref)(void *opaque, TtVersion v),
                           void *opaque)
{
    for (size_t i = 0; ps->file && i < ps->file->pending->len; i++) {
        const TtPendingOp *op = ps->file->pending->pdata[i];

        for (size_t k = 0; k < op->n; k++) {
            ref(opaque, op->named[k].version);
        }
    }
}

static bool notes(const TtPageStore *ps)
{
    return ps->file && ps->file->is_writable && !ps->file->is_behind;
}

static TtPendingOp *op_new(uint32_t kind, const TtNode *node)
{
    TtPendingOp *op = g_new0(TtPendingOp, 1);

    op->kind = kind;
    op->id = node->id;
    op->flags = node->flags;
    return op;
}

bool tt_storefile_prepare_add(TtPageStore *ps, const TtNode *node,
                              TtPendingOp **out)
{
    TtPendingOp *op;

    *out = NULL;
    if (!notes(ps)) {
        return true;
    }
    op = op_new(TT_F_REC_ADD, node);
    op->pos = node->pos;
    op->host_ns = node->host_ns;
    op->named = tt_pagemem_try(&ps->mem, node->n * sizeof(*op->named), false);
    if (!op->named) {
        g_free(op);
        return false;
    }
    for (; op->n < node->n; op->n++) {
        op->named[op->n] = (Named) { node->d[op->n].page,
                                     node->d[op->n].new };
        tt_pagepool_ref(ps->pool, node->d[op->n].new);          /* W3 */
    }
    op->blob = node->blob;
    if (op->blob) {
        op->blob->refs++;
    }
    *out = op;
    return true;
}

void tt_storefile_commit(TtPageStore *ps, const TtNode *node, TtPendingOp *op)
{
    if (op) {
        g_ptr_array_add(ps->file->pending, op);
    }
}

void tt_storefile_note_delete(TtPageStore *ps, const TtNode *node)
{
    if (notes(ps)) {
        g_ptr_array_add(ps->file->pending, op_new(TT_F_REC_DELETE, node));
        ps->file->dead_bytes += node->record_bytes + TT_F_REC_BYTES;
    }
}

void tt_storefile_note_flags(TtPageStore *ps, const TtNode *node)
{
    if (notes(ps)) {
        g_ptr_array_add(ps->file->pending, op_new(TT_F_REC_SET_FLAGS, node));
        ps->file->dead_bytes += TT_F_REC_BYTES;
    }
}

/* ---- writing versions ---- */

/* The group that is being filled, and whose versions are in it. */
typedef struct Draft {
    TtVersion version[TT_F_GROUP_PAGES_MAX];
    unsigned n;
} Draft;

static TtStatus draft_write(TtPageStore *ps, Draft *d, TtDiag *diag)
{
    TtPageFile *pf = ps->file->pages;
    TtStatus st = d->n ? tt_pagefile_commit(pf, diag) : TT_OK;

    for (unsigned i = 0; i < d->n; i++) {
        if (st == TT_OK) {
            TtPlace place = tt_pagefile_placed(pf, i);

            tt_pagepool_set_place(ps->pool, d->version[i], &place);
        } else {
            tt_pagepool_unmark(ps->pool, d->version[i]);
        }
    }
    d->n = 0;
    return st;
}

/* Puts @v into the draft unless it has a place; writes a draft that is full. */
static TtStatus draft_put(TtPageStore *ps, Draft *d, TtVersion v, TtDiag *diag)
{
    TtPlace place;
    TtStatus st = TT_OK;

    if (v == TT_VERSION_ZERO) {
        return TT_OK;
    }
    place = tt_pagepool_place(ps->pool, v);
    if (place.id || !tt_pagepool_mark(ps->pool, v)) {
        return TT_OK;
    }
    if (!d->n) {
        st = tt_pagefile_begin(ps->file->pages, false, diag);
        if (st != TT_OK) {
            tt_pagepool_unmark(ps->pool, v);
            return st;
        }
    }
    tt_pagefile_put(ps->file->pages, tt_pagepool_bytes(ps->pool, v),
                    place.hash);
    d->version[d->n++] = v;
    return d->n == TT_F_GROUP_PAGES_MAX ? draft_write(ps, d, diag) : TT_OK;
}

/* All versions that the records to be written name, in their order. */
static TtStatus write_versions(TtPageStore *ps, TtDiag *diag)
{
    g_autofree Draft *d = g_new0(Draft, 1);
    GPtrArray *pending = ps->file->pending;
    TtStatus st = TT_OK;

    if (ps->file->is_behind) {
        for (TtVersion v = tt_pagepool_next(ps->pool, 0); v && st == TT_OK;
             v = tt_pagepool_next(ps->pool, v)) {
            st = draft_put(ps, d, v, diag);
        }
    }
    for (size_t i = 0; i < pending->len && st == TT_OK; i++) {
        const TtPendingOp *op = pending->pdata[i];

        for (size_t k = 0; k < op->n && st == TT_OK; k++) {
            st = draft_put(ps, d, op->named[k].version, diag);
        }
    }
    return st == TT_OK ? draft_write(ps, d, diag) : st;
}

/* ---- writing records ---- */

/* What a record's list is made of: of a pending operation, or of a node. */
typedef struct ListSource {
    const Named *named;
    const TtDelta *delta;
    size_t n;
} ListSource;

static TtStatus write_add(TtPageStore *ps, TtPageRecord *rec,
                          const ListSource *src, TtDiag *diag)
{
    size_t cap = src->n * TT_PAGELIST_ITEM_MAX;
    uint8_t *list = tt_pagemem_try(&ps->mem, cap, false), *p = list;
    TtPageListCursor c;
    TtStatus st;

    if (!list || cap > UINT32_MAX) {
        tt_pagemem_free(&ps->mem, list, cap);
        return tt_fail(diag, TT_ERR_NOMEM, "no memory to write a checkpoint "
                       "of %zu pages", src->n);
    }
    tt_pagelist_begin(&c, rec);
    for (size_t i = 0; i < src->n; i++) {
        TtVersion v = src->named ? src->named[i].version : src->delta[i].new;
        uint32_t page = src->named ? src->named[i].page : src->delta[i].page;
        uint64_t id = v ? tt_pagepool_place(ps->pool, v).id : 0;

        g_assert(!v || id);                                     /* W2 */
        p = tt_pagelist_put(&c, p, page, id);
    }
    rec->n_pages = src->n;
    rec->list = list;
    rec->list_bytes = p - list;
    st = tt_pagejournal_append(ps->file->journal, rec, diag);
    tt_pagemem_free(&ps->mem, list, cap);
    return st;
}

/* @node's record is @rec now: its blob need not be kept. */
static void node_is_written(TtPageStore *ps, TtNode *node,
                            const TtPageRecord *rec)
{
    node->record_bytes = rec->bytes;
    node->blob_offset = rec->blob_offset;
    node->blob_sum = rec->blob_sum;
    tt_blob_unref(ps, node->blob);
    node->blob = NULL;
}

static TtStatus write_op(TtPageStore *ps, const TtPendingOp *op, TtDiag *diag)
{
    TtPageRecord rec = {
        .kind = op->kind, .id = op->id, .flags = op->flags, .pos = op->pos,
        .host_ns = op->host_ns,
        .blob = op->blob ? op->blob->bytes : NULL,
        .blob_bytes = op->blob ? op->blob->len : 0,
    };
    const ListSource src = { .named = op->named, .n = op->n };
    TtStatus st = op->kind == TT_F_REC_ADD
                  ? write_add(ps, &rec, &src, diag)
                  : tt_pagejournal_append(ps->file->journal, &rec, diag);

    if (st == TT_OK && op->kind == TT_F_REC_ADD) {
        TtNode *node = node_get(ps, op->id);

        if (node) {
            node_is_written(ps, node, &rec);
        } else {
            ps->file->dead_bytes += rec.bytes;  /* deleted since */
        }
    }
    return st;
}

/* One record for @node in the new journal. */
static TtStatus rewrite_node(TtPageStore *ps, const TtNode *node,
                             TtPageRecord *rec, TtDiag *diag)
{
    const ListSource src = { .delta = node->d, .n = node->n };
    g_autofree uint8_t *blob = NULL;
    TtStatus st = TT_OK;

    *rec = (TtPageRecord) {
        .kind = TT_F_REC_ADD, .id = node->id, .flags = node->flags,
        .pos = node->pos, .host_ns = node->host_ns,
        .blob_bytes = node->blob_bytes,
    };
    if (node->blob) {
        rec->blob = node->blob->bytes;
    } else if (node->blob_bytes) {
        rec->blob = blob = g_try_malloc(node->blob_bytes);
        st = blob ? tt_storefile_read_blob(ps, node, blob, diag)
                  : tt_fail(diag, TT_ERR_NOMEM, "no memory to rewrite the "
                            "journal");
    }
    if (st == TT_OK) {
        st = write_add(ps, rec, &src, diag);
    }
    rec->blob = NULL;
    return st;
}

/* J5: the journal anew. All versions have places. */
static TtStatus rewrite_journal(TtPageStore *ps, TtDiag *diag)
{
    TtStoreFile *f = ps->file;
    g_autofree TtPageRecord *recs = NULL;
    TtStatus st;

    tt_tombstones_sweep(ps);
    recs = g_try_new(TtPageRecord, MAX(ps->nodes->len, 1));
    if (ps->n_tombstones || !recs) {
        return tt_fail(diag, TT_ERR_NOMEM, "no memory to rewrite the journal");
    }
    st = tt_pagejournal_rewrite_begin(f->journal, ps->last_id, diag);
    if (st != TT_OK) {
        return st;
    }
    for (size_t i = 0; i < ps->nodes->len && st == TT_OK; i++) {
        st = rewrite_node(ps, node_at(ps, i), &recs[i], diag);
    }
    if (st != TT_OK) {
        tt_pagejournal_rewrite_abort(f->journal);
        return st;
    }
    st = tt_pagejournal_rewrite_commit(f->journal, diag);
    if (st == TT_OK) {
        for (size_t i = 0; i < ps->nodes->len; i++) {
            node_is_written(ps, node_at(ps, i), &recs[i]);
        }
        f->dead_bytes = 0;
        f->is_behind = false;                                   /* W1 */
    }
    return st;
}

/* One record for @node in another journal. */
static TtStatus export_node(TtPageStore *ps, const TtNode *node,
                            TtPageJournal *to, TtPageStrip strip, TtDiag *diag)
{
    const ListSource src = { .delta = node->d, .n = node->n };
    TtPageJournal *own = ps->file->journal;
    g_autofree void *blob = NULL;
    TtPageRecord rec = {
        .kind = TT_F_REC_ADD, .id = node->id, .flags = node->flags,
        .pos = node->pos, .host_ns = node->host_ns,
    };
    size_t len;
    TtStatus st = tt_pagestore_blob(ps, node->id, &blob, &len, diag);

    if (st != TT_OK) {
        return st;
    }
    if (strip) {
        strip(&blob, &len, &rec.flags);
    }
    rec.blob = blob;
    rec.blob_bytes = len;
    ps->file->journal = to;             /* where write_add writes */
    st = write_add(ps, &rec, &src, diag);
    ps->file->journal = own;
    return st;
}

TtStatus tt_pagestore_export(TtPageStore *ps, TtIo *to,
                             const uint8_t uuid[16], TtPageStrip strip,
                             TtDiag *diag)
{
    TtPageJournal *copy;
    TtStatus st;

    g_assert(ps->file && !ps->file->pending->len && !ps->n_tombstones);
    st = tt_pagejournal_create(to, uuid, &copy, diag);
    for (size_t i = 0; st == TT_OK && i < ps->nodes->len; i++) {
        st = export_node(ps, node_at(ps, i), copy, strip, diag);
    }
    tt_pagejournal_free(copy);
    return st;
}

static TtStatus write_records(TtPageStore *ps, TtDiag *diag)
{
    TtStoreFile *f = ps->file;
    TtStatus st = TT_OK;

    if (f->is_behind) {
        return rewrite_journal(ps, diag);
    }
    for (size_t i = 0; i < f->pending->len && st == TT_OK; i++) {
        st = write_op(ps, f->pending->pdata[i], diag);
    }
    return st;
}

/* ---- flush ---- */

uint64_t tt_storefile_journal_live(const TtPageStore *ps)
{
    uint64_t sum = TT_F_PHEAD_BYTES;

    for (size_t i = 0; i < ps->nodes->len; i++) {
        const TtNode *node = node_at(ps, i);

        /* Lists grow when others are merged in; an item has 2 to 4 bytes. */
        sum += MAX(node->record_bytes,
                   TT_F_REC_BYTES + node->blob_bytes + 6 * node->n);
    }
    return sum;
}

/* What the pages may take, when the journal, and its successor, have theirs. */
static void limit_pages(TtPageStore *ps)
{
    TtStoreFile *f = ps->file;
    uint64_t journal = tt_pagejournal_bytes(f->journal) +
                       tt_storefile_journal_live(ps);

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

static TtStatus flush_all(TtPageStore *ps, TtDiag *diag)
{
    TtStoreFile *f = ps->file;
    TtStatus st;

    limit_pages(ps);
    if (f->pending->len || f->is_behind) {
        st = write_versions(ps, diag);
        if (st == TT_OK) {
            st = write_records(ps, diag);
        }
        if (st != TT_OK) {
            return st;
        }
        pending_clear(ps);
    }
    if (f->dead_bytes > REWRITE_BYTES_MIN &&
        f->dead_bytes > tt_pagejournal_bytes(f->journal) / 2) {
        (void)rewrite_journal(ps, NULL);        /* the old one serves, too */
    }
    st = tt_storefile_give_back(ps, diag);
    tt_pagepool_trim(ps->pool);
    return st;
}

TtStatus tt_pagestore_flush(TtPageStore *ps, TtDiag *diag)
{
    TtStoreFile *f = ps->file;
    TtDiag unused;
    TtStatus st;

    if (!f || !f->is_writable) {
        return TT_OK;
    }
    st = flush_all(ps, f->said ? &unused : diag);
    if (st == TT_OK) {
        f->said = false;
        return TT_OK;
    }
    pending_clear(ps);                                          /* W1 */
    f->is_behind = true;
    if (f->said) {
        return TT_END;
    }
    f->said = true;
    return st;
}

/* ---- what the pool and the store ask ---- */

static TtStatus backing_load(void *opaque, const TtPlace *place, void *to)
{
    TtPageStore *ps = opaque;
    TtDiag diag = { 0 };
    TtStatus st = tt_pagefile_load(ps->file->pages, place, to, &diag);

    if (st != TT_OK) {
        ps->file->read_error = diag;
        ps->file->read_error.status = st;
    }
    return st;
}

static void backing_gone(void *opaque, const TtPlace *place)
{
    TtPageStore *ps = opaque;

    if (ps->file->pages) {
        tt_pagefile_disuse(ps->file->pages, place);
    }
}

TtStatus tt_pagestore_find(TtPageStore *ps, const uint64_t hash[2], void *to,
                           TtDiag *diag)
{
    TtVersion v = tt_pagepool_find(ps->pool, hash);
    const void *bytes;
    TtStatus st;

    if (!v) {
        return TT_END;
    }
    st = tt_pagepool_read(ps->pool, v, &bytes);
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

TtStatus tt_storefile_read_blob(TtPageStore *ps, const TtNode *node, void *to,
                                TtDiag *diag)
{
    return tt_pagejournal_read_blob(ps->file->journal, node->blob_offset,
                                    node->blob_bytes, node->blob_sum, to,
                                    diag);
}

void tt_storefile_stats(const TtPageStore *ps, TtPageStoreStats *st)
{
    const TtStoreFile *f = ps->file;
    TtPageFileStats pages;

    if (!f) {
        return;
    }
    pages = tt_pagefile_stats(f->pages);
    st->live_bytes = pages.live_bytes;
    st->stored_bytes = pages.stored_bytes;
    st->pages_file_bytes = pages.file_bytes;
    st->journal_bytes = tt_pagejournal_bytes(f->journal);
    st->torn_bytes = pages.torn_bytes + f->torn_bytes;
    st->n_lost = f->n_lost;
    st->n_inherited = pages.n_inherited;
    st->is_behind = f->is_behind;
}

/* ---- life ---- */

TtPageStore *tt_storefile_new(const TtPageStoreOptions *opt)
{
    TtPageStore *ps = tt_pagestore_new();
    const TtPageBacking backing = { backing_load, backing_gone, ps };

    ps->file = g_new0(TtStoreFile, 1);
    ps->file->pages_io = opt->pages;
    ps->file->journal_io = opt->checkpoints;
    ps->file->is_writable = !opt->read_only;
    ps->file->max_bytes = opt->max_bytes;
    ps->file->origin_free = opt->origin_free;
    ps->file->origin_opaque = opt->origin_opaque;
    ps->file->pending = g_ptr_array_new();
    tt_pagepool_set_backing(ps->pool, &backing, opt->cache_bytes);
    return ps;
}

void tt_storefile_free(TtPageStore *ps)
{
    TtStoreFile *f = ps->file;

    if (!f) {
        return;
    }
    pending_clear(ps);
    g_ptr_array_free(f->pending, true);
    tt_pagefile_free(f->pages);
    tt_pagejournal_free(f->journal);
    tt_io_close(f->pages_io);
    tt_io_close(f->journal_io);
    if (f->origin_free) {
        f->origin_free(f->origin_opaque);
    }
    g_free(f);
    ps->file = NULL;
}

TtStatus tt_pagestore_create(const TtPageStoreOptions *opt, TtPageStore **out,
                             TtDiag *diag)
{
    TtPageStore *ps = tt_storefile_new(opt);
    TtStatus st = tt_pagefile_create(opt->pages, opt->uuid, &ps->file->pages,
                                     diag);

    if (st == TT_OK) {
        tt_pagefile_set_origin(ps->file->pages, opt->origin, opt->origin_opaque);
        st = tt_pagejournal_create(opt->checkpoints, opt->uuid,
                                   &ps->file->journal, diag);
    }
    if (st != TT_OK) {
        tt_pagestore_free(ps);
        ps = NULL;
    }
    *out = ps;
    return st;
}
