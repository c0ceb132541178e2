/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store with files: operations noted until a flush writes them, and reading.
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
#include "tt-storefile.h"

/* ---- pending operations ---- */

void tt_storefile_cancel(TtStoreFile *f, TtPendingOp *op)
{
    if (!op) {
        return;
    }
    for (size_t i = 0; i < op->n; i++) {
        tt_pagepool_unref(f->map->pool, op->named[i].version);
    }
    tt_pagemem_free(&f->map->mem, op->named, op->n * sizeof(*op->named));
    tt_blob_unref(f->map, op->blob);
    g_free(op);
}

void tt_storefile_pending_clear(TtStoreFile *f)
{
    GPtrArray *pending = f->pending;

    for (size_t i = 0; i < pending->len; i++) {
        tt_storefile_cancel(f, pending->pdata[i]);
    }
    g_ptr_array_set_size(pending, 0);
}

void tt_storefile_each_ref(const TtStoreFile *f,
                           void (*ref)(void *opaque, TtVersion v),
                           void *opaque)
{
    for (size_t i = 0; f && i < f->pending->len; i++) {
        const TtPendingOp *op = f->pending->pdata[i];

        for (size_t k = 0; k < op->n; k++) {
            ref(opaque, op->named[k].version);
        }
    }
}

static bool notes(const TtStoreFile *f)
{
    return f && f->is_writable && !f->is_behind;
}

static TtPendingOp *op_new(uint32_t kind, const TtNode *node)
{
    TtPendingOp *op = g_new0(TtPendingOp, 1);

    op->kind = kind;
    op->id = node->id;
    op->flags = node->flags;
    return op;
}

bool tt_storefile_prepare_add(TtStoreFile *f, const TtNode *node,
                              TtPendingOp **out)
{
    TtPendingOp *op;

    *out = NULL;
    if (!notes(f)) {
        return true;
    }
    op = op_new(TT_F_REC_ADD, node);
    op->pos = node->pos;
    op->host_ns = node->host_ns;
    op->named = tt_pagemem_try(&f->map->mem, node->n * sizeof(*op->named),
                               false);
    if (!op->named) {
        g_free(op);
        return false;
    }
    for (; op->n < node->n; op->n++) {
        op->named[op->n] = (TtNamed) { node->d[op->n].page,
                                     node->d[op->n].new };
        tt_pagepool_ref(f->map->pool, node->d[op->n].new);          /* W3 */
    }
    op->blob = node->blob;
    if (op->blob) {
        op->blob->refs++;
    }
    *out = op;
    return true;
}

void tt_storefile_commit(TtStoreFile *f, const TtNode *node, TtPendingOp *op)
{
    if (op) {
        g_ptr_array_add(f->pending, op);
    }
}

void tt_storefile_note_delete(TtStoreFile *f, const TtNode *node)
{
    if (notes(f)) {
        g_ptr_array_add(f->pending, op_new(TT_F_REC_DELETE, node));
        f->dead_bytes += node->record_bytes + TT_F_REC_BYTES;
    }
}

void tt_storefile_note_flags(TtStoreFile *f, const TtNode *node)
{
    if (notes(f)) {
        g_ptr_array_add(f->pending, op_new(TT_F_REC_SET_FLAGS, node));
        f->dead_bytes += TT_F_REC_BYTES;
    }
}

uint64_t tt_storefile_journal_live(const TtStoreFile *f)
{
    uint64_t sum = TT_F_PHEAD_BYTES;

    for (size_t i = 0; i < f->map->nodes->len; i++) {
        const TtNode *node = node_at(f->map, i);

        /* Lists grow when others are merged in; an item has 2 to 4 bytes. */
        sum += MAX(node->record_bytes,
                   TT_F_REC_BYTES + node->blob_bytes + 6 * node->n);
    }
    return sum;
}

/* ---- what the pool and the store ask ---- */

static TtStatus backing_load(void *opaque, const TtPlace *place, void *to)
{
    TtStoreFile *f = opaque;
    TtDiag diag = { 0 };
    TtStatus st = tt_pagefile_load(f->pages, place, to, &diag);

    if (st != TT_OK) {
        f->read_error = diag;
        f->read_error.status = st;
    }
    return st;
}

static void backing_gone(void *opaque, const TtPlace *place)
{
    TtStoreFile *f = opaque;

    if (f->pages) {
        tt_pagefile_disuse(f->pages, place);
    }
}

void tt_storefile_stats(const TtStoreFile *f, TtPageStoreStats *st)
{
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

TtStatus tt_storefile_node_blob(TtStoreFile *f, const TtNode *node,
                                void **bytes, size_t *len, TtDiag *diag)
{
    TtStatus st = TT_OK;

    *bytes = NULL;
    *len = 0;
    if (!node->blob_bytes) {
        return TT_OK;
    }
    *bytes = g_try_malloc(node->blob_bytes);
    if (!*bytes) {
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for the state of a "
                       "checkpoint (%u bytes)", node->blob_bytes);
    }
    if (node->blob) {
        memcpy(*bytes, node->blob->bytes, node->blob_bytes);
    } else {
        st = tt_pagejournal_read_blob(f->journal, node->blob_offset,
                                      node->blob_bytes, node->blob_sum, *bytes,
                                      diag);
    }
    if (st == TT_OK) {
        *len = node->blob_bytes;
    } else {
        g_free(*bytes);
        *bytes = NULL;
    }
    return st;
}

/* ---- life ---- */

TtStoreFile *tt_storefile_new(TtPageMap *map, const TtPageStoreOptions *opt)
{
    TtStoreFile *f = g_new0(TtStoreFile, 1);
    const TtPageBacking backing = { backing_load, backing_gone, f };

    f->map = map;
    f->pages_io = opt->pages;
    f->journal_io = opt->checkpoints;
    f->is_writable = !opt->read_only;
    f->max_bytes = opt->max_bytes;
    f->origin_free = opt->origin_free;
    f->origin_opaque = opt->origin_opaque;
    f->pending = g_ptr_array_new();
    tt_pagepool_set_backing(map->pool, &backing, opt->cache_bytes);
    return f;
}

void tt_storefile_free(TtStoreFile *f)
{
    if (!f) {
        return;
    }
    tt_storefile_pending_clear(f);
    g_ptr_array_free(f->pending, true);
    tt_pagefile_free(f->pages);
    tt_pagejournal_free(f->journal);
    tt_io_close(f->pages_io);
    tt_io_close(f->journal_io);
    if (f->origin_free) {
        f->origin_free(f->origin_opaque);
    }
    g_free(f);
}
