/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store with files: making and opening one. The journal is carried out, record by
 * record, by the code that did so when it was written; nothing in it is trusted.
 */
#include "tt-pagestore-int.h"

#include <inttypes.h>

/*
 * Steps that opening may take: pages listed by the nodes that an operation
 * passes, and those nodes. A journal is rewritten when half of it is dead, so
 * that a run of ours takes a few for each page listed; 2^32 take some ten
 * seconds.
 */
#define LOAD_STEPS_MAX  (1ull << 32)
#define LOAD_IDS_MAX    INT32_MAX

typedef struct Loader {
    TtPageStore *ps;
    uint64_t max_pages, steps;
    TtVersion *version;         /* those met so far, with a reference each */
    uint64_t n_versions, cap_versions;
    bool lacks_pages;           /* that ends the journal, and not itself (J1) */
    TtDiag *diag;
} Loader;

static TtStatus damaged(Loader *l, const TtPageRecord *rec, const char *what)
{
    tt_fail(l->diag, TT_ERR_FORMAT, "checkpoints: the record at byte %" PRIu64
            " %s", rec->offset, what);
    if (l->diag) {
        l->diag->offset = rec->offset;
    }
    return TT_ERR_FORMAT;
}

static TtStatus no_memory(Loader *l)
{
    return tt_fail(l->diag, TT_ERR_NOMEM, "not enough memory to open the "
                   "checkpoints");
}

/* Counts the steps from where the map is to rank @to and one node further. */
static TtStatus spend(Loader *l, size_t to)
{
    TtPageStore *ps = l->ps;
    size_t from = tt_node_rank(&ps->map, ps->map.map_at);

    for (size_t i = MIN(from, to); i < MAX(from, to); i++) {
        l->steps += node_at(&ps->map, i)->n + 1;
    }
    l->steps += to < ps->map.nodes->len ? node_at(&ps->map, to)->n : 0;
    l->steps += to ? node_at(&ps->map, to - 1)->n : 0;
    return l->steps <= LOAD_STEPS_MAX ? TT_OK :
           tt_fail(l->diag, TT_ERR_LIMIT, "checkpoints: the journal asks for "
                   "more work than any valid one could");
}

/* One more that was met. */
static bool versions_grow(Loader *l)
{
    TtPageMem *mem = &l->ps->map.mem;
    uint64_t cap = MAX(l->cap_versions * 2, 1024);
    TtVersion *bigger;

    if (l->n_versions < l->cap_versions) {
        return true;
    }
    bigger = tt_pagemem_try(mem, cap * sizeof(*bigger), false);
    if (!bigger) {
        return false;
    }
    if (l->n_versions) {
        memcpy(bigger, l->version, l->n_versions * sizeof(*bigger));
    }
    tt_pagemem_free(mem, l->version, l->cap_versions * sizeof(*bigger));
    l->version = bigger;
    l->cap_versions = cap;
    return true;
}

/* The version with number @id, with one more reference. TT_END_TORN: no group
 * has it (J1). */
static TtStatus version_get(Loader *l, uint64_t id, TtVersion *out)
{
    TtVersion *known;           /* of this number; 0: not met yet */
    TtPlace place;

    static_assert(sizeof(TtVersion) == sizeof(uint32_t), "it is the mark");

    *out = TT_VERSION_ZERO;
    if (!id) {
        return TT_OK;
    }
    known = tt_pagefile_find(l->ps->file->pages, id, &place);
    if (!known) {
        return TT_END_TORN;
    }
    if (!*known) {
        if (!versions_grow(l) ||
            !tt_pagepool_adopt(l->ps->map.pool, &place, known)) {
            return no_memory(l);
        }
        l->version[l->n_versions++] = *known;
        tt_pagefile_use(l->ps->file->pages, &place);
    }
    tt_pagepool_ref(l->ps->map.pool, *known);
    *out = *known;
    return TT_OK;
}

/* The list of @rec into @node; `old` is not yet known. */
static TtStatus fill_node(Loader *l, const TtPageRecord *rec, TtNode *node)
{
    TtPageListCursor c;
    uint64_t page, id;
    TtStatus st;

    tt_pagelist_begin(&c, rec);
    while ((st = tt_pagelist_next(&c, &page, &id)) == TT_OK) {
        TtDelta *d = &node->d[node->n];

        if (page >= l->max_pages) {
            return damaged(l, rec, "names a page that the RAM does not have");
        }
        st = version_get(l, id, &d->new);
        if (st != TT_OK) {
            return st;
        }
        d->page = page;
        node->n++;
    }
    return st == TT_END ? TT_OK : damaged(l, rec, "has a wrong list of pages");
}

/* The former versions of the listed pages, from the map. False: memory. */
static bool fill_old(TtPageStore *ps, TtNode *node)
{
    for (size_t i = 0; i < node->n; i++) {
        uint64_t page = node->d[i].page;

        if (!tt_pagemap_reserve(&ps->map, &page, 1)) {
            return false;
        }
        node->d[i].old = cell_of(&ps->map, page)->version;      /* S3 */
    }
    return true;
}

static TtStatus insert(Loader *l, const TtPageRecord *rec, TtNode *node,
                       size_t index)
{
    TtPageStore *ps = l->ps;
    TtStatus st = spend(l, index);

    if (st != TT_OK) {
        return st;
    }
    tt_pagemap_move(&ps->map, index ? node_at(&ps->map, index - 1) : NULL,
                    NULL);
    if (!fill_old(ps, node) || !tt_node_insert(&ps->map, index, node)) {
        return no_memory(l);
    }
    return TT_OK;
}

static TtStatus load_add(Loader *l, const TtPageRecord *rec)
{
    TtPageStore *ps = l->ps;
    size_t index = tt_node_upper(&ps->map, rec->pos);
    TtNode *node;
    TtStatus st;

    if (rec->id < 1 || rec->id > LOAD_IDS_MAX || node_get(&ps->map, rec->id) ||
        tt_node_is_taken(&ps->map, index, rec->pos) ||
        ps->map.nodes->len >= TT_PAGESTORE_NODES_MAX) {
        return damaged(l, rec, "adds a checkpoint that exists already, or one too many");
    }
    node = tt_node_new(&ps->map, rec->pos, rec->n_pages);
    if (!node) {
        return no_memory(l);
    }
    node->id = rec->id;
    node->flags = rec->flags;
    node->host_ns = rec->host_ns;
    node->blob_bytes = rec->blob_bytes;
    node->blob_offset = rec->blob_offset;
    node->blob_sum = rec->blob_sum;
    node->record_bytes = rec->bytes;
    st = fill_node(l, rec, node);
    if (st == TT_OK) {
        st = insert(l, rec, node, index);
    }
    if (st != TT_OK) {
        tt_node_drop(&ps->map, node);
        return st;
    }
    ps->map.last_id = MAX(ps->map.last_id, rec->id);
    return TT_OK;
}

static TtStatus load_delete(Loader *l, const TtPageRecord *rec)
{
    TtPageStore *ps = l->ps;
    TtNode *node = node_get(&ps->map, rec->id);
    TtStatus st;

    if (!node) {
        return damaged(l, rec, "deletes a checkpoint that does not exist");
    }
    st = spend(l, tt_node_rank(&ps->map, node));
    if (st != TT_OK) {
        return st;
    }
    ps->file->dead_bytes += node->record_bytes + rec->bytes;
    tt_pagestore_delete(ps, rec->id);
    return ps->map.n_tombstones ? no_memory(l) : TT_OK;
}

static TtStatus load_flags(Loader *l, const TtPageRecord *rec)
{
    TtNode *node = node_get(&l->ps->map, rec->id);

    if (!node) {
        return damaged(l, rec, "is about a checkpoint that does not exist");
    }
    node->flags = rec->flags;
    l->ps->file->dead_bytes += rec->bytes;
    return TT_OK;
}

static TtStatus load_records(Loader *l)
{
    TtPageJournal *j = l->ps->file->journal;
    TtPageRecord rec;
    TtStatus st;

    while ((st = tt_pagejournal_next(j, &rec, l->diag)) == TT_OK) {
        switch (rec.kind) {
        case TT_F_REC_ADD:
            st = load_add(l, &rec);
            break;
        case TT_F_REC_DELETE:
            st = load_delete(l, &rec);
            break;
        default:
            st = load_flags(l, &rec);
            break;
        }
        if (st == TT_END_TORN) {
            tt_pagejournal_unread(j, &rec);                     /* J1 */
            l->lacks_pages = true;
        }
        if (st != TT_OK) {
            return st;
        }
    }
    return st;
}

/* The loader's references go; what nobody needs is dead from now on. */
static void release(Loader *l)
{
    TtPageStore *ps = l->ps;

    for (uint64_t i = 0; i < l->n_versions; i++) {
        TtVersion v = l->version[i];

        if (tt_pagepool_refs(ps->map.pool, v) > 1 &&
            !tt_pagepool_place(ps->map.pool, v).offset) {
            ps->file->n_lost++;                                 /* J4 */
        }
        tt_pagepool_unref(ps->map.pool, v);
    }
    tt_pagemem_free(&ps->map.mem, l->version,
                    l->cap_versions * sizeof(*l->version));
    tt_pagefile_scan_done(ps->file->pages);
}

/* Parts that are missing although no writer was cut off there. */
static TtStatus note_damage(TtStoreFile *f, bool lacks_pages, TtDiag *diag)
{
    const TtDiag *pages = tt_pagefile_damage(f->pages);
    TtStatus st = tt_pagejournal_tail(f->journal, &f->damage[1]);

    if (pages) {
        f->damage[0] = *pages;
    }
    if (st == TT_ERR_FORMAT && lacks_pages) {
        uint64_t at = f->damage[1].offset;

        tt_fail(&f->damage[1], st, "pages: this file has lost pages that "
                "checkpoints need: the checkpoints from byte %" PRIu64 " of the "
                "file 'checkpoints' on are lost, too", at);
        f->damage[1].offset = at;
    }
    if (st == TT_ERR_FORMAT) {
        return TT_OK;
    }
    if (st != TT_OK && diag) {
        *diag = f->damage[1];
    }
    f->damage[1].status = TT_OK;
    return st;
}

static TtStatus store_load(TtPageStore *ps, const TtPageStoreOptions *opt,
                           TtDiag *diag)
{
    TtStoreFile *f = ps->file;
    Loader l = { .ps = ps, .diag = diag,
                 .max_pages = opt->max_pages ? opt->max_pages : TT_PAGES_MAX };
    bool is_writable = f->is_writable;
    TtStatus st = tt_pagefile_open(f->pages_io, opt->uuid, is_writable,
                                   &f->pages, diag);

    if (st == TT_OK) {
        tt_pagefile_set_origin(f->pages, opt->origin, opt->origin_opaque);
        st = tt_pagejournal_open(f->journal_io, opt->uuid, &f->journal,
                                 &ps->map.last_id, diag);
    }
    if (st == TT_OK && ps->map.last_id > LOAD_IDS_MAX) {
        st = tt_fail(diag, TT_ERR_FORMAT, "checkpoints: the head names an id "
                     "that is too high");
    }
    if (st != TT_OK) {
        return st;
    }
    f->is_writable = false;             /* deleting here notes nothing */
    st = load_records(&l);
    f->is_writable = is_writable;
    release(&l);
    f->torn_bytes = tt_pagejournal_torn_bytes(f->journal);
    if (st > 0) {
        TtStatus end = note_damage(f, l.lacks_pages, diag);

        st = end < 0 ? end : st;
    }
    if (st > 0) {
        st = is_writable ? tt_pagejournal_cut(f->journal, diag) : TT_OK;
    }
    return st;
}

static TtPageStore *store_new(const TtPageStoreOptions *opt)
{
    TtPageStore *ps = tt_pagestore_new();

    ps->file = tt_storefile_new(&ps->map, opt);
    return ps;
}

TtStatus tt_pagestore_create(const TtPageStoreOptions *opt, TtPageStore **out,
                             TtDiag *diag)
{
    TtPageStore *ps = store_new(opt);
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

TtStatus tt_pagestore_open(const TtPageStoreOptions *opt, TtPageStore **out,
                           TtDiag *diag)
{
    TtPageStore *ps = store_new(opt);
    TtStatus st = store_load(ps, opt, diag);

    if (st != TT_OK) {
        tt_pagestore_free(ps);
        ps = NULL;
    }
    *out = ps;
    return st;
}
