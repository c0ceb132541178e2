/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The operations of the journal, O1 to O5 of docs/reference/disk-format.rst: written,
 * and carried out again when an image is opened. Bytes come from a file here: none of
 * them may reach an assertion.
 */
#include "block-tt/tt-blockmap-int.h"
#include "io/tt-bytes.h"

#include <stdlib.h>

enum { OP_MAP = 1, OP_VERSION, OP_GOTO, OP_DELETE, OP_NEXT, OP_SKIPPABLE = 64 };

enum { RUN_BACKING, RUN_ZERO, RUN_HOST };

/* ---- writing ---- */

static void put(GByteArray *b, uint64_t v)
{
    uint8_t bytes[TT_VARINT_MAX];

    g_byte_array_append(b, bytes, tt_put_varint(bytes, v) - bytes);
}

static void put_op(GByteArray *ops, unsigned type, const GByteArray *body)
{
    put(ops, type);
    put(ops, body->len);
    g_byte_array_append(ops, body->data, body->len);
}

/* Appends runs one after the other: what is needed between two of them. */
typedef struct RunWriter {
    GByteArray *body;
    uint32_t first, n, value;           /* of the run that grows; n 0: none */
    uint32_t end, host_end;             /* of those before */
} RunWriter;

static void end_run(RunWriter *w)
{
    unsigned kind = tt_v_is_host(w->value) ? RUN_HOST :
                    w->value == TT_V_ZERO ? RUN_ZERO : RUN_BACKING;

    if (!w->n) {
        return;
    }
    put(w->body, w->first - w->end);
    put(w->body, (uint64_t)(w->n - 1) * 4 + kind);
    if (kind == RUN_HOST) {
        put(w->body, tt_zigzag((uint64_t)w->value - w->host_end));
        w->host_end = w->value + w->n;
    }
    w->end = w->first + w->n;
    w->n = 0;
}

static void add_cluster(RunWriter *w, uint32_t cluster, uint32_t value)
{
    uint32_t next = tt_v_is_host(w->value) ? w->value + w->n : w->value;

    if (w->n && cluster == w->first + w->n && value == next) {
        w->n++;
        return;
    }
    end_run(w);
    w->first = cluster;
    w->value = value;
    w->n = 1;
}

void tt_ops_map(GByteArray *ops, const TtBlockMap *bm, const uint32_t *clusters,
                size_t n)
{
    RunWriter w = { .body = g_byte_array_new() };

    for (size_t i = 0; i < n; i++) {
        add_cluster(&w, clusters[i], tt_table_get(&bm->table, clusters[i]));
    }
    end_run(&w);
    if (w.body->len) {
        put_op(ops, OP_MAP, w.body);
    }
    g_byte_array_unref(w.body);
}

static int by_number(gconstpointer a, gconstpointer b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

void tt_ops_dirty(TtBlockMap *bm)
{
    const uint32_t *clusters;

    if (!bm->dirty->len) {
        return;
    }
    g_array_sort(bm->dirty, by_number);
    clusters = (const uint32_t *)bm->dirty->data;
    tt_ops_map(bm->ops, bm, clusters, bm->dirty->len);
    for (guint i = 0; i < bm->dirty->len; i++) {
        tt_bit_put(tt_table_leaf(&bm->table, clusters[i])->dirty,
                   clusters[i] & (TT_LEAF - 1), false);
    }
    g_array_set_size(bm->dirty, 0);
}

void tt_ops_version(GByteArray *ops, const TtVersionInfo *info)
{
    GByteArray *body = g_byte_array_new();

    put(body, info->id);
    put(body, info->date_s);
    put(body, info->date_ns);
    put(body, info->vm_clock_ns);
    put(body, info->has_tag ? info->tag + 1 : 0);
    g_byte_array_append(body, (const uint8_t *)info->name, strlen(info->name));
    put_op(ops, OP_VERSION, body);
    g_byte_array_unref(body);
}

void tt_ops_id(GByteArray *ops, unsigned type, TtVersionId id)
{
    GByteArray *body = g_byte_array_new();

    put(body, id);
    put_op(ops, type, body);
    g_byte_array_unref(body);
}

void tt_ops_next(GByteArray *ops, TtHostRun segment)
{
    GByteArray *body = g_byte_array_new();

    put(body, segment.host);
    put(body, segment.n);
    put_op(ops, OP_NEXT, body);
    g_byte_array_unref(body);
}

static void put_changes(GByteArray *ops, const TtBlockVersion *v)
{
    RunWriter w = { .body = g_byte_array_new() };

    for (size_t i = 0; i < v->n; i++) {
        add_cluster(&w, v->change[i].cluster, v->change[i].is);
    }
    end_run(&w);
    if (w.body->len) {
        put_op(ops, OP_MAP, w.body);
    }
    g_byte_array_unref(w.body);
}

/* By id: a parent comes before what comes from it, and has the lower id. */
void tt_ops_state(GByteArray *ops, const TtBlockMap *bm)
{
    const TtBlockVersion *at = NULL;
    GArray *own = g_array_new(FALSE, FALSE, sizeof(uint32_t));

    for (guint i = 0; i < bm->versions->len; i++) {
        const TtBlockVersion *v = bm->versions->pdata[i];

        if (v->parent != at) {
            tt_ops_id(ops, OP_GOTO, v->parent ? v->parent->info.id : 0);
        }
        put_changes(ops, v);
        tt_ops_version(ops, &v->info);
        at = v;
    }
    if (bm->parent != at) {
        tt_ops_id(ops, OP_GOTO, bm->parent ? bm->parent->info.id : 0);
    }
    for (guint i = 0; i < bm->changed->len; i++) {
        g_array_append_val(own, g_array_index(bm->changed, TtHeadChange, i).cluster);
    }
    g_array_sort(own, by_number);
    tt_ops_map(ops, bm, (const uint32_t *)own->data, own->len);
    g_array_unref(own);
}

/* ---- carrying out ---- */

typedef struct Reader {
    const uint8_t *p, *end;
    bool is_bad;
} Reader;

static uint64_t get(Reader *r)
{
    uint64_t v = 0;
    const uint8_t *p = r->is_bad ? NULL : tt_get_varint(r->p, r->end, &v);

    r->is_bad = !p;
    r->p = p ? p : r->end;
    return p ? v : 0;
}

static TtStatus bad(TtDiag *diag, const char *what)
{
    return tt_fail(diag, TT_ERR_FORMAT, "the journal of the disk is damaged: %s", what);
}

/* A host cluster that the journal gives to a cluster of the disk. */
static TtStatus claim_host(TtBlockMap *bm, uint64_t host, TtDiag *diag)
{
    TtBlockAlloc *a = &bm->alloc;

    if (host >= TT_BLOCKMAP_HOSTS_MAX) {
        return bad(diag, "it names data where no file has any");
    }
    if (host >= a->lost_from) {
        return TT_OK;
    }
    if (!a->ref[host] && !tt_alloc_claim(a, host, 1)) {
        return bad(diag, "it names data in the file's header, or twice");
    }
    return TT_OK;
}

static TtStatus apply_run(TtBlockMap *bm, uint64_t first, uint64_t n, unsigned kind,
                          uint64_t host, TtDiag *diag)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t v = kind == RUN_HOST ? host + i :
                     kind == RUN_ZERO ? TT_V_ZERO : TT_V_BACKING;
        TtStatus st = kind == RUN_HOST ? claim_host(bm, host + i, diag) : TT_OK;

        if (st != TT_OK) {
            return st;
        }
        bm->names_lost |= tt_table_is_lost(&bm->table, first + i, v);
        if (!tt_head_set(bm, first + i, v)) {
            return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for the disk's "
                           "table");
        }
    }
    return TT_OK;
}

/* An extent of O1, and where the ones before it have ended. */
typedef struct Extent {
    uint64_t first, n, host;
    unsigned kind;
    uint64_t end, host_end;
} Extent;

/* The next one. False: it does not fit the disk. */
static bool next_extent(const TtBlockMap *bm, Reader *r, Extent *e)
{
    uint64_t gap = get(r), what = get(r), n_clusters = bm->table.n_clusters;

    e->n = what / 4 + 1;
    e->kind = what % 4;
    e->host = e->kind == RUN_HOST ? e->host_end + tt_unzigzag(get(r)) : 0;
    if (r->is_bad || e->kind > RUN_HOST || gap > n_clusters - e->end ||
        e->n > n_clusters - e->end - gap || e->host > TT_BLOCKMAP_HOSTS_MAX) {
        return false;
    }
    e->first = e->end + gap;
    e->end = e->first + e->n;
    e->host_end = e->kind == RUN_HOST ? e->host + e->n : e->host_end;
    return true;
}

static TtStatus apply_map(TtBlockMap *bm, Reader *r, TtDiag *diag)
{
    Extent e = { 0 };

    while (r->p < r->end) {
        TtStatus st = next_extent(bm, r, &e) ?
                      apply_run(bm, e.first, e.n, e.kind, e.host, diag) :
                      bad(diag, "a run of clusters does not fit the disk");

        if (st != TT_OK) {
            return st;
        }
    }
    return TT_OK;
}

uint64_t tt_ops_map_needs(const TtBlockMap *bm, const uint8_t *p, size_t len)
{
    const TtBlockTable *t = &bm->table;
    Reader r = { p, p + len, false };
    Extent e = { 0 };
    uint64_t needs = 0, type = get(&r), bytes = get(&r);

    if (type != OP_MAP || bytes != (uint64_t)(r.end - r.p)) {
        return 0;
    }
    while (r.p < r.end && next_extent(bm, &r, &e)) {
        uint64_t last = e.n - 1, end;

        if (e.kind == RUN_HOST && e.host + last < TT_BLOCKMAP_HOSTS_MAX &&
            tt_table_is_lost(t, e.first + last, e.host + last)) {
            end = MIN((uint64_t)(e.first + last + 1) << t->cluster_bits, t->size_bytes);
            needs = MAX(needs, ((e.host + last) << t->cluster_bits) + end -
                               ((uint64_t)(e.first + last) << t->cluster_bits));
        }
    }
    return needs;
}

static TtStatus apply_version(TtBlockMap *bm, Reader *r, TtDiag *diag)
{
    TtVersionInfo info = { 0 };
    uint64_t id = get(r), tag;

    info.date_s = get(r);
    info.date_ns = get(r);
    info.vm_clock_ns = get(r);
    tag = get(r);
    info.has_tag = tag > 0;
    info.tag = tag ? tag - 1 : 0;
    if (r->is_bad || id <= bm->last_id || id > UINT32_MAX ||
        r->end - r->p > TT_BLOCKMAP_NAME_MAX) {
        return bad(diag, "a version has no valid number or name");
    }
    info.id = id;
    memcpy(info.name, r->p, r->end - r->p);
    tt_replace_controls(info.name, '?');
    return tt_version_make(bm, &info, diag);
}

static TtStatus apply_id(TtBlockMap *bm, unsigned type, Reader *r, TtDiag *diag)
{
    uint64_t id = get(r);

    if (r->is_bad || id > UINT32_MAX || (id && !tt_version_find(bm, id)) ||
        (!id && type == OP_DELETE)) {
        return bad(diag, "it names a version that does not exist");
    }
    return type == OP_GOTO ? tt_blockmap_goto(bm, id, diag) :
           tt_blockmap_version_delete(bm, id, diag);
}

static TtStatus apply_next(Reader *r, TtHostRun *next, TtDiag *diag)
{
    uint64_t host = get(r), n = get(r);

    if (r->is_bad || !n || host > TT_BLOCKMAP_HOSTS_MAX || n > TT_F_BLOCK_SEGMENT_MAX) {
        return bad(diag, "its next segment has an impossible place");
    }
    *next = (TtHostRun) { host, n };
    return TT_OK;
}

static TtStatus apply_op(TtBlockMap *bm, uint64_t type, Reader *r, TtHostRun *next,
                         TtDiag *diag)
{
    switch (type) {
    case OP_MAP:
        return apply_map(bm, r, diag);
    case OP_VERSION:
        return apply_version(bm, r, diag);
    case OP_GOTO:
    case OP_DELETE:
        return apply_id(bm, type, r, diag);
    case OP_NEXT:
        return apply_next(r, next, diag);
    default:
        return type >= OP_SKIPPABLE ? TT_OK :
               tt_fail(diag, TT_ERR_VERSION, "the disk was written by a newer version: "
                       "use that version");
    }
}

/* While loading, what is freed is free at once: the journal is past it. */
static void drop_freed(TtBlockAlloc *a)
{
    for (guint i = 0; i < a->free_next->len; i++) {
        const TtHostRun *run = &g_array_index(a->free_next, TtHostRun, i);

        tt_alloc_untake(a, run->host, run->n);
    }
    g_array_set_size(a->free_next, 0);
}

TtStatus tt_ops_apply(TtBlockMap *bm, const uint8_t *p, size_t len, TtHostRun *next,
                      TtDiag *diag)
{
    Reader r = { p, p + len, false };

    *next = (TtHostRun) { 0, 0 };
    while (r.p < r.end) {
        uint64_t type = get(&r), bytes = get(&r);
        Reader body;
        TtStatus st;

        if (r.is_bad || bytes > (uint64_t)(r.end - r.p)) {
            return bad(diag, "an operation goes beyond its record");
        }
        body = (Reader) { r.p, r.p + bytes, false };
        st = apply_op(bm, type, &body, next, diag);
        if (st != TT_OK) {
            return st;
        }
        drop_freed(&bm->alloc);
        r.p += bytes;
    }
    return TT_OK;
}
