/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the page store's files: random sequences against a model, cut
 * at every kind of place, with failing I/O, with damage.
 *
 * The model is simple because a node never changes: `truth` says for each id
 * ever given out what its RAM, its meta data and its blob are. Whatever a store
 * hands out under that id must be that, or an error.
 */
#include "pages/tt-pagestore.h"
#include "tt-pagefile.h"
#include "tt-pagestore-test.h"
#include "tt-pagejournal.h"
#include "pagefile-trace.h"

#include <glib.h>
#include <glib/gstdio.h>

#define N_PAGES     48
#define N_VALUES    400
#define NODES_MAX   20

static const uint8_t uuid[16] = "page-store tests";

typedef struct Truth {
    uint64_t pos, host_ns;
    uint32_t value[N_PAGES];
    uint32_t blob_bytes;
} Truth;

/* What is there after an operation: ids and flags. */
typedef struct Moment {
    unsigned n;
    TtNodeId id[NODES_MAX];
    uint32_t flags[NODES_MAX];
} Moment;

typedef struct World {
    GRand *rng;
    TtPageStore *ps;
    TtPageStoreOptions opt;
    uint8_t ram[N_PAGES][TT_PAGE_BYTES];
    uint32_t value[N_PAGES];
    bool dirty[N_PAGES];
    uint64_t pos;
    TtNodeId base;
    Moment now;
    GArray *truth;              /* of Truth, by id */
    GArray *moments;            /* of Moment, one for each operation */
    unsigned n_add, n_delete, n_restore, n_flush;
    TtIo *opened[2];            /* by open_bytes, owned by the store */
} World;

/* ---- contents ---- */

static uint64_t page_number(unsigned i)
{
    return i < N_PAGES / 2 ? i : 5000 + 3 * i;
}

static unsigned page_index(uint64_t page)
{
    unsigned i = page < 5000 ? page : (page - 5000) / 3;

    g_assert_cmpuint(i, <, N_PAGES);
    g_assert_cmpuint(page_number(i), ==, page);
    return i;
}

/* 0 is the zero page; every third content does not compress. */
static void make_page(uint32_t value, uint8_t *p)
{
    uint64_t x = value * 0x9e3779b97f4a7c15u;

    memset(p, value, TT_PAGE_BYTES);
    for (unsigned i = 0; value && i < TT_PAGE_BYTES; i += 8) {
        if (i && value % 3) {
            break;
        }
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(p + i, &x, 8);
    }
}

static uint8_t *make_blob(TtNodeId id, uint32_t bytes)
{
    uint8_t *p = g_malloc(bytes + 1);

    for (uint32_t i = 0; i < bytes; i++) {
        p[i] = id * 31 + i * 7 + (i >> 8);
    }
    return p;
}

static Truth *truth_of(World *w, TtNodeId id)
{
    if (id >= w->truth->len) {
        g_array_set_size(w->truth, id + 1);
    }
    return &g_array_index(w->truth, Truth, id);
}

static void write_page(World *w, unsigned i, uint32_t value)
{
    w->value[i] = value;
    w->dirty[i] = true;
    make_page(value, w->ram[i]);
}

/* ---- what the store calls ---- */

static const void *fetch(void *opaque, uint64_t page)
{
    World *w = opaque;

    return w->ram[page_index(page)];
}

typedef struct Copy {
    uint8_t (*ram)[TT_PAGE_BYTES];
} Copy;

static void put(void *opaque, uint64_t page, const void *bytes)
{
    Copy *c = opaque;

    if (bytes) {
        memcpy(c->ram[page_index(page)], bytes, TT_PAGE_BYTES);
    } else {
        memset(c->ram[page_index(page)], 0, TT_PAGE_BYTES);
    }
}

static size_t dirty_list(const World *w, uint64_t *list)
{
    size_t n = 0;

    for (unsigned i = 0; i < N_PAGES; i++) {
        if (w->base ? w->dirty[i] : w->value[i] != 0) {
            list[n++] = page_number(i);
        }
    }
    return n;
}

/* ---- checks ---- */

static void check_ram(World *w, TtNodeId id, uint8_t (*ram)[TT_PAGE_BYTES])
{
    uint8_t want[TT_PAGE_BYTES];

    for (unsigned i = 0; i < N_PAGES; i++) {
        make_page(truth_of(w, id)->value[i], want);
        g_assert(!memcmp(ram[i], want, TT_PAGE_BYTES));
    }
}

static void check_blob(World *w, TtPageStore *ps, TtNodeId id, bool may_fail)
{
    g_autofree uint8_t *want = make_blob(id, truth_of(w, id)->blob_bytes);
    g_autofree void *blob = NULL;
    TtDiag diag = { 0 };
    size_t len;
    TtStatus st = tt_pagestore_blob(ps, id, &blob, &len, &diag);

    if (st != TT_OK && may_fail) {
        g_assert_cmpint(diag.text[0], !=, 0);
        return;
    }
    g_assert_cmpint(st, ==, TT_OK);
    g_assert_cmpmem(blob, len, want, truth_of(w, id)->blob_bytes);
}

/* Every node of @ps is what it was, from a RAM of zeros. */
static unsigned check_nodes(World *w, TtPageStore *ps, bool may_fail)
{
    static uint8_t ram[N_PAGES][TT_PAGE_BYTES];
    g_autofree TtCheckpointInfo *info = NULL;
    size_t n = tt_pagestore_count(ps);
    unsigned n_failed = 0;
    Copy c = { ram };

    info = g_new(TtCheckpointInfo, n + 1);
    g_assert_cmpuint(tt_pagestore_list(ps, info, n + 1), ==, n);
    for (size_t k = 0; k < n; k++) {
        const Truth *t;
        TtStatus st;

        g_assert_cmpuint(info[k].id, <, w->truth->len);
        t = truth_of(w, info[k].id);
        g_assert_cmpuint(info[k].pos, ==, t->pos);
        g_assert_cmpuint(info[k].host_ns, ==, t->host_ns);
        g_assert_cmpuint(info[k].blob_bytes, ==, t->blob_bytes);
        memset(ram, 0, sizeof(ram));
        st = tt_pagestore_restore(ps, info[k].id, 0, NULL, 0, put, &c, NULL);
        if (st != TT_OK && may_fail) {
            g_assert_nonnull(tt_pagestore_read_error(ps));
            n_failed++;
        } else {
            g_assert_cmpint(st, ==, TT_OK);
            check_ram(w, info[k].id, ram);
        }
        check_blob(w, ps, info[k].id, may_fail);
    }
    tt_pagestore_check(ps);
    return n_failed;
}

static bool is_moment(TtPageStore *ps, const Moment *m)
{
    TtCheckpointInfo info;

    if (tt_pagestore_count(ps) != m->n) {
        return false;
    }
    for (unsigned k = 0; k < m->n; k++) {
        if (!tt_pagestore_info(ps, m->id[k], &info) ||
            info.flags != m->flags[k]) {
            return false;
        }
    }
    return true;
}

static void assert_moment(TtPageStore *ps, const World *w, size_t from)
{
    for (size_t k = from; k < w->moments->len; k++) {
        if (is_moment(ps, &g_array_index(w->moments, Moment, k))) {
            return;
        }
    }
    g_error("the store is in no state that there was");
}

/* ---- operations ---- */

static void op_run(World *w)
{
    unsigned n = g_rand_int_range(w->rng, 0, 12);

    w->pos += g_rand_int_range(w->rng, 1, 50);
    for (unsigned k = 0; k < n; k++) {
        write_page(w, g_rand_int_range(w->rng, 0, N_PAGES),
                   g_rand_int_range(w->rng, 0, 8) ?
                   g_rand_int_range(w->rng, 0, N_VALUES) : 0);
    }
}

static bool pos_is_taken(World *w)
{
    for (unsigned k = 0; k < w->now.n; k++) {
        if (truth_of(w, w->now.id[k])->pos == w->pos) {
            return true;
        }
    }
    return w->base && truth_of(w, w->base)->pos >= w->pos;
}

static void op_add(World *w)
{
    uint32_t blob_bytes = g_rand_int_range(w->rng, 0, 3) ?
                          g_rand_int_range(w->rng, 1, 4000) : 0;
    /* The next id is known: they are never used again. */
    g_autofree uint8_t *blob = make_blob(w->truth->len, blob_bytes);
    TtCheckpointMeta meta = { g_rand_int(w->rng) & 3, g_rand_int(w->rng), blob,
                              blob_bytes };
    uint64_t list[N_PAGES];
    TtNodeId id = 0;
    TtStatus st;

    if (w->now.n == NODES_MAX || pos_is_taken(w) || (!w->base && w->now.n)) {
        return;
    }
    if (g_rand_boolean(w->rng)) {
        st = tt_pagestore_add_checkpoint(w->ps, w->pos, w->base, list,
                                         dirty_list(w, list), fetch, w, &meta,
                                         &id);
    } else {
        TtPageBatch *b = tt_pagebatch_new(N_PAGES);
        size_t n = dirty_list(w, list);

        for (size_t i = 0; i < n; i++) {
            g_assert_true(tt_pagebatch_put(b, list[i], fetch(w, list[i])));
        }
        st = tt_pagestore_add_batch(w->ps, w->pos, w->base, b, &meta, &id);
        tt_pagebatch_free(b);
    }
    g_assert_cmpint(st, ==, TT_OK);
    g_assert_cmpuint(id, ==, w->truth->len);
    *truth_of(w, id) = (Truth) { .pos = w->pos, .host_ns = meta.host_ns,
                                 .blob_bytes = blob_bytes };
    memcpy(truth_of(w, id)->value, w->value, sizeof(w->value));
    w->now.id[w->now.n] = id;
    w->now.flags[w->now.n++] = meta.flags;
    w->base = id;
    memset(w->dirty, 0, sizeof(w->dirty));
    g_array_append_val(w->moments, w->now);
    w->n_add++;
}

static void op_delete(World *w)
{
    unsigned k;
    TtNodeId id;

    if (!w->now.n) {
        return;
    }
    k = g_rand_int_range(w->rng, 0, w->now.n);
    id = w->now.id[k];
    if (id == w->base && w->now.n > 1) {
        TtNodeId to = w->now.id[(k + 1) % w->now.n];
        size_t n;
        g_autofree uint64_t *pages = tt_pagestore_rebase(w->ps, id, to, &n);

        for (size_t i = 0; i < n; i++) {
            w->dirty[page_index(pages[i])] = true;
        }
        w->base = to;
        w->pos = MAX(w->pos, truth_of(w, to)->pos);
    } else if (id == w->base) {
        w->base = 0;
    }
    tt_pagestore_delete(w->ps, id);
    w->now.n--;
    w->now.id[k] = w->now.id[w->now.n];
    w->now.flags[k] = w->now.flags[w->now.n];
    g_array_append_val(w->moments, w->now);
    w->n_delete++;
}

static void op_flags(World *w)
{
    unsigned k;

    if (w->now.n) {
        k = g_rand_int_range(w->rng, 0, w->now.n);
        w->now.flags[k] ^= TT_CHECKPOINT_PINNED;
        tt_pagestore_set_flags(w->ps, w->now.id[k], w->now.flags[k]);
        g_array_append_val(w->moments, w->now);
    }
}

static void op_restore(World *w)
{
    Copy c = { w->ram };
    uint64_t list[N_PAGES];
    TtNodeId to;

    if (!w->base) {
        return;
    }
    to = w->now.id[g_rand_int_range(w->rng, 0, w->now.n)];
    g_assert_cmpint(tt_pagestore_restore(w->ps, to, w->base, list,
                                         dirty_list(w, list), put, &c, NULL),
                    ==, TT_OK);
    check_ram(w, to, w->ram);
    memcpy(w->value, truth_of(w, to)->value, sizeof(w->value));
    memset(w->dirty, 0, sizeof(w->dirty));
    w->base = to;
    w->pos = truth_of(w, to)->pos;
    w->n_restore++;
}

static void operate(World *w)
{
    unsigned op = g_rand_int_range(w->rng, 0, 100);

    if (op < 30) {
        op_run(w);
    } else if (op < 60) {
        op_run(w);
        op_add(w);
    } else if (op < 75) {
        op_restore(w);
    } else if (op < 95) {
        op_delete(w);
    } else {
        op_flags(w);
    }
}

/* ---- life ---- */

static World *world_new(uint32_t seed)
{
    World *w = g_new0(World, 1);

    w->rng = g_rand_new_with_seed(seed);
    w->truth = g_array_new(false, true, sizeof(Truth));
    w->moments = g_array_new(false, false, sizeof(Moment));
    g_array_set_size(w->truth, 1);
    g_array_append_val(w->moments, w->now);
    memcpy(w->opt.uuid, uuid, 16);
    w->opt.max_pages = 1 << 14;
    switch (g_rand_int_range(w->rng, 0, 3)) {
    case 0:
        w->opt.cache_bytes = 0;
        break;
    case 1:
        w->opt.cache_bytes = 8 * TT_PAGE_BYTES;
        break;
    case 2:
        w->opt.cache_bytes = UINT64_MAX;
        break;
    }
    return w;
}

static void world_free(World *w)
{
    tt_pagestore_free(w->ps);
    g_array_unref(w->truth);
    g_array_unref(w->moments);
    g_rand_free(w->rng);
    g_free(w);
}

static void must_flush(World *w)
{
    TtDiag diag = { 0 };
    TtStatus st = tt_pagestore_flush(w->ps, &diag);

    if (st != TT_OK) {
        g_error("flush: %s", diag.text);
    }
    g_assert_cmpuint(tt_pagestore_stats(w->ps).pending_bytes, ==, 0);
    w->n_flush++;
}

static TtStatus open_bytes(World *w, const GByteArray *pages,
                           const GByteArray *journal, bool read_only,
                           TtPageStore **ps, TtDiag *diag)
{
    TtPageStoreOptions opt = w->opt;

    opt.pages = tt_io_mem_new(pages->data, pages->len);
    opt.checkpoints = tt_io_mem_new(journal->data, journal->len);
    opt.read_only = read_only;
    w->opened[0] = opt.pages;
    w->opened[1] = opt.checkpoints;
    return tt_pagestore_open(&opt, ps, diag);
}

/* ---- cut anywhere ---- */

typedef struct Flushed {
    size_t events;              /* in the trace when the flush was done */
    size_t moment;              /* the state it wrote */
} Flushed;

/* The first moment that the files may show at event @at of the trace. */
static size_t oldest_moment(const GArray *flushed, size_t at)
{
    size_t oldest = 0;

    for (size_t k = 0; k < flushed->len; k++) {
        const Flushed *f = &g_array_index(flushed, Flushed, k);

        if (f->events <= at) {
            oldest = f->moment;
        }
    }
    return oldest;
}

/* A writer goes on where another was cut off, and a third reads it all. */
static void go_on(World *w, TtPageStore *ps, bool is_writable)
{
    static uint8_t ram[N_PAGES][TT_PAGE_BYTES];
    TtCheckpointInfo info[NODES_MAX + 1];
    size_t n = tt_pagestore_list(ps, info, NODES_MAX);
    uint64_t page = page_number(3);
    GByteArray *file[2];
    TtPageStore *again;
    World *other;
    TtNodeId id;
    Copy c = { ram };

    if (n < 1) {
        return;
    }
    memset(ram, 0, sizeof(ram));
    g_assert_cmpint(tt_pagestore_restore(ps, info[n - 1].id, 0, NULL, 0, put,
                                         &c, NULL), ==, TT_OK);
    other = g_new0(World, 1);
    memcpy(other->ram, ram, sizeof(ram));
    make_page(77777, other->ram[3]);
    g_assert_cmpint(tt_pagestore_add(ps, info[n - 1].pos + 1, info[n - 1].id,
                                     &page, 1, fetch, other, &id), ==, TT_OK);
    g_assert_cmpint(tt_pagestore_flush(ps, NULL), ==, TT_OK);
    for (unsigned k = 0; k < 2; k++) {
        size_t len;
        const uint8_t *bytes = tt_io_mem_data(w->opened[k], &len);

        file[k] = g_byte_array_append(g_byte_array_new(), bytes, len);
    }
    g_assert_cmpint(open_bytes(w, file[0], file[1], true, &again, NULL), ==,
                    TT_OK);
    g_assert_cmpuint(tt_pagestore_count(again), ==, n + is_writable);
    if (is_writable) {
        g_assert_cmpuint(tt_pagestore_stats(again).torn_bytes, ==, 0);
        memset(ram, 0, sizeof(ram));
        g_assert_cmpint(tt_pagestore_restore(again, id, 0, NULL, 0, put, &c,
                                             NULL), ==, TT_OK);
        g_assert(!memcmp(ram, other->ram, sizeof(ram)));
    }
    tt_pagestore_free(again);
    g_byte_array_unref(file[0]);
    g_byte_array_unref(file[1]);
    g_free(other);
}

static void check_cut(World *w, const Trace *trace, size_t event, size_t byte,
                      const GArray *flushed)
{
    bool read_only = g_rand_boolean(w->rng);
    GByteArray *file[2];
    TtPageStore *ps = NULL;
    TtDiag diag = { 0 };
    TtStatus st;

    trace_replay(trace, event, byte, file);
    st = open_bytes(w, file[0], file[1], read_only, &ps, &diag);
    if (file[0]->len < 64 || file[1]->len < 64) {
        g_assert_cmpint(st, ==, TT_ERR_FORMAT);
        g_assert_null(ps);
    } else {
        g_assert_cmpint(st, ==, TT_OK);
        g_assert_cmpuint(check_nodes(w, ps, false), ==, 0);
        assert_moment(ps, w, oldest_moment(flushed, event));
        go_on(w, ps, !read_only);
        tt_pagestore_free(ps);
    }
    g_byte_array_unref(file[0]);
    g_byte_array_unref(file[1]);
}

/* Files of which each lost its own part, as after a power cut. */
static void check_torn_apart(World *w, const Trace *trace)
{
    GByteArray *file[2];
    TtPageStore *ps = NULL;
    TtDiag diag = { 0 };

    trace_replay(trace, trace->events->len, 0, file);
    for (unsigned k = 0; k < 2; k++) {
        g_byte_array_set_size(file[k], g_rand_int_range(w->rng, 0,
                                                        file[k]->len + 1));
        if (file[k]->len && g_rand_boolean(w->rng)) {
            unsigned at = g_rand_int_range(w->rng, 0, file[k]->len);

            file[k]->data[at] ^= 1 << g_rand_int_range(w->rng, 0, 8);
        }
    }
    if (open_bytes(w, file[0], file[1], true, &ps, &diag) == TT_OK) {
        check_nodes(w, ps, true);
        tt_pagestore_free(ps);
    } else {
        g_assert_cmpint(diag.text[0], !=, 0);
        g_assert_null(ps);
    }
    g_byte_array_unref(file[0]);
    g_byte_array_unref(file[1]);
}

#define CAP_BYTES   (4u << 20)      /* of the worlds that have one */

/* Makes the pages anew if anything is dead. */
static bool make_anew(World *w)
{
    uint64_t before = tt_pagestore_stats(w->ps).pages_file_bytes, after;

    g_assert_cmpint(tt_pagestore_make_room(w->ps, CAP_BYTES, NULL), ==, TT_OK);
    after = tt_pagestore_stats(w->ps).pages_file_bytes;
    g_assert_cmpuint(after, <=, before);
    return after < before;
}

typedef struct Totals {
    unsigned n_add, n_delete, n_restore, n_flush, n_cut, n_reopen, n_anew;
    unsigned n_replaced, n_punched, n_truncated;
} Totals;

static void reopen(World *w, Trace *trace)
{
    tt_pagestore_free(w->ps);
    w->opt.pages = trace_io(trace, 0);
    w->opt.checkpoints = trace_io(trace, 1);
    g_assert_cmpint(tt_pagestore_open(&w->opt, &w->ps, NULL), ==, TT_OK);
    g_assert_true(is_moment(w->ps, &w->now));
}

static void run_sequence(uint32_t seed, unsigned n_ops, unsigned n_cuts,
                         Totals *sum)
{
    World *w = world_new(seed);
    Trace *trace = trace_new();
    GArray *flushed = g_array_new(false, false, sizeof(Flushed));

    w->opt.pages = trace_io(trace, 0);
    w->opt.checkpoints = trace_io(trace, 1);
    w->opt.max_bytes = seed % 2 ? CAP_BYTES : 0;
    g_assert_cmpint(tt_pagestore_create(&w->opt, &w->ps, NULL), ==, TT_OK);
    for (unsigned k = 0; k < n_ops; k++) {
        operate(w);
        if (g_rand_int_range(w->rng, 0, 4) == 0) {
            Flushed f;

            must_flush(w);
            if (w->opt.max_bytes && g_rand_int_range(w->rng, 0, 4) == 0) {
                sum->n_anew += make_anew(w);
            }
            f = (Flushed) { trace->events->len, w->moments->len - 1 };
            g_array_append_val(flushed, f);
            if (g_rand_int_range(w->rng, 0, 12) == 0) {
                reopen(w, trace);
                sum->n_reopen++;
            }
        }
    }
    check_nodes(w, w->ps, false);
    for (unsigned k = 0; k < n_cuts; k++) {
        size_t event = g_rand_int_range(w->rng, 0, trace->events->len);
        size_t bytes = trace_event_bytes(trace, event);

        check_cut(w, trace, event, bytes ? g_rand_int_range(w->rng, 0,
                                                            bytes + 1) : 0,
                  flushed);
        check_torn_apart(w, trace);
        sum->n_cut++;
    }
    sum->n_add += w->n_add;
    sum->n_delete += w->n_delete;
    sum->n_restore += w->n_restore;
    sum->n_flush += w->n_flush;
    sum->n_replaced += trace->n_replaced;
    sum->n_punched += trace->n_punched;
    sum->n_truncated += trace->n_truncated;
    world_free(w);
    trace_free(trace);
    g_array_unref(flushed);
}

static void test_survives_any_cut(void)
{
    enum { SEQUENCES = 20, OPS = 700, CUTS = 30 };
    uint32_t seed = g_test_rand_int();
    Totals t = { 0 };

    g_test_message("first seed %u", seed);
    for (unsigned i = 0; i < SEQUENCES; i++) {
        run_sequence(seed + i, OPS, CUTS, &t);
    }
    g_test_message("%u add, %u delete, %u restore, %u flush, %u reopen, %u "
                   "cuts; %u files replaced, %u of them pages, %u groups given "
                   "back", t.n_add, t.n_delete, t.n_restore, t.n_flush,
                   t.n_reopen, t.n_cut, t.n_replaced, t.n_anew, t.n_punched);
    g_assert_cmpuint(t.n_replaced, >, t.n_anew + 5);
    g_assert_cmpuint(t.n_anew, >, 20);
    g_assert_cmpuint(t.n_punched, >, 100);
}

/* Every byte of a short history. */
static void test_survives_every_cut(void)
{
    World *w = world_new(5);
    Trace *trace = trace_new();
    GArray *flushed = g_array_new(false, false, sizeof(Flushed));
    unsigned n = 0;

    w->opt.pages = trace_io(trace, 0);
    w->opt.checkpoints = trace_io(trace, 1);
    g_assert_cmpint(tt_pagestore_create(&w->opt, &w->ps, NULL), ==, TT_OK);
    for (unsigned k = 0; k < 3; k++) {
        Flushed f;

        w->pos++;
        write_page(w, k, 3 * k + 1);
        write_page(w, k + 1, 3 * k + 2);
        op_add(w);
        if (k == 1) {
            op_delete(w);
        }
        must_flush(w);
        f = (Flushed) { trace->events->len, w->moments->len - 1 };
        g_array_append_val(flushed, f);
    }
    for (size_t e = 0; e < trace->events->len; e++) {
        for (size_t b = 0; b <= trace_event_bytes(trace, e); b += 1 + b % 3) {
            check_cut(w, trace, e, b, flushed);
            n++;
        }
    }
    g_test_message("%u cuts", n);
    world_free(w);
    trace_free(trace);
    g_array_unref(flushed);
}

/* ---- failing I/O ---- */

/* One history with operation @nth on file @which failing. False: it is past
 * the end. */
static bool run_with_fault(uint32_t seed, unsigned which, uint64_t nth,
                           TtStatus how)
{
    World *w = world_new(seed);
    TtIo *base[2] = { tt_io_mem_new(NULL, 0), tt_io_mem_new(NULL, 0) };
    TtIo *io[2] = { base[0], base[1] };
    unsigned n_failed = 0, n_silent = 0;
    GByteArray *file[2];
    TtPageStore *again;
    TtStatus st;
    bool was_reached;

    io[which] = tt_io_fault_new(base[which], nth, how);
    w->opt.pages = io[0];
    w->opt.checkpoints = io[1];
    w->opt.cache_bytes = UINT64_MAX;
    w->opt.max_bytes = seed % 4 ? CAP_BYTES : 0;
    st = tt_pagestore_create(&w->opt, &w->ps, NULL);
    if (st != TT_OK) {
        g_assert_cmpint(st, ==, how);
        world_free(w);
        return true;
    }
    for (unsigned k = 0; k < 250; k++) {
        operate(w);
        if (k % 5 == 0) {
            TtDiag diag = { 0 };

            st = tt_pagestore_flush(w->ps, &diag);
            n_failed += st < 0;
            n_silent += st == TT_END;
            g_assert_cmpint(st == TT_OK || st == TT_END || diag.text[0], !=, 0);
        }
        if (k % 20 == 0) {
            n_failed += tt_pagestore_make_room(w->ps, CAP_BYTES, NULL) < 0;
        }
    }
    n_failed += tt_pagestore_flush(w->ps, NULL) < 0;
    /* Twice: in a new file that was given up, and then in the old one. */
    g_assert_cmpuint(n_failed, <=, 2);
    g_assert_cmpuint(n_silent, ==, 0);          /* it fails once only */
    check_nodes(w, w->ps, true);                /* a blob cannot be read */
    must_flush(w);
    check_nodes(w, w->ps, false);
    was_reached = tt_io_fault_count(io[which]) >= nth;
    g_assert_false(tt_pagestore_stats(w->ps).is_behind);
    for (unsigned k = 0; k < 2; k++) {
        size_t len;
        const uint8_t *bytes = tt_io_mem_data(base[k], &len);

        file[k] = g_byte_array_new();
        g_byte_array_append(file[k], bytes, len);
    }
    g_assert_cmpint(open_bytes(w, file[0], file[1], true, &again, NULL), ==,
                    TT_OK);
    g_assert_true(is_moment(again, &w->now));
    check_nodes(w, again, false);
    tt_pagestore_free(again);
    g_byte_array_unref(file[0]);
    g_byte_array_unref(file[1]);
    world_free(w);
    return was_reached;
}

static void test_any_failure_leaves_it_usable(void)
{
    unsigned n[2] = { 0, 0 };

    for (unsigned which = 0; which < 2; which++) {
        for (uint64_t nth = 1; nth < 400; nth += 1 + nth / 8) {
            TtStatus how = nth % 2 ? TT_ERR_NOSPACE : TT_ERR_IO;

            if (!run_with_fault(100 + nth, which, nth, how)) {
                break;
            }
            n[which]++;
        }
    }
    g_test_message("%u faults of pages, %u of checkpoints", n[0], n[1]);
    g_assert_cmpuint(n[0], >, 10);
    g_assert_cmpuint(n[1], >, 10);
}

static void test_a_full_disk_is_said_once(void)
{
    World *w = world_new(9);
    Trace *trace = trace_new();
    GByteArray *file[2];
    TtPageStore *again;
    TtDiag diag = { 0 };

    w->opt.pages = trace_io(trace, 0);
    w->opt.checkpoints = trace_io(trace, 1);
    g_assert_cmpint(tt_pagestore_create(&w->opt, &w->ps, NULL), ==, TT_OK);
    w->pos = 1;
    write_page(w, 1, 1);
    op_add(w);
    must_flush(w);
    trace->is_full = true;
    for (unsigned k = 0; k < 200; k++) {
        operate(w);
    }
    w->pos = MAX(w->pos, 20000);
    write_page(w, 1, 2);
    op_add(w);
    g_assert_cmpint(tt_pagestore_flush(w->ps, &diag), ==, TT_ERR_NOSPACE);
    g_assert_cmpint(diag.text[0], !=, 0);
    diag.text[0] = 0;
    g_assert_true(tt_pagestore_stats(w->ps).is_behind);
    for (unsigned k = 0; k < 200; k++) {
        operate(w);
        if (k % 10 == 0) {
            g_assert_cmpint(tt_pagestore_flush(w->ps, &diag), ==, TT_END);
            g_assert_cmpint(diag.text[0], ==, 0);
        }
    }
    check_nodes(w, w->ps, false);
    trace->is_full = false;
    must_flush(w);
    g_assert_false(tt_pagestore_stats(w->ps).is_behind);
    trace_replay(trace, trace->events->len, 0, file);
    g_assert_cmpint(open_bytes(w, file[0], file[1], false, &again, NULL), ==,
                    TT_OK);
    g_assert_true(is_moment(again, &w->now));
    check_nodes(w, again, false);
    tt_pagestore_free(again);
    g_byte_array_unref(file[0]);
    g_byte_array_unref(file[1]);
    world_free(w);
    trace_free(trace);
}

/* ---- space ---- */

/* A long life with few nodes: the file's data stays near what lives. */
static void test_space_comes_back(void)
{
    World *w = world_new(3);
    Trace *trace = trace_new();
    TtPageStoreStats st;
    uint64_t worst = 0;

    w->opt.pages = trace_io(trace, 0);
    w->opt.checkpoints = trace_io(trace, 1);
    g_assert_cmpint(tt_pagestore_create(&w->opt, &w->ps, NULL), ==, TT_OK);
    for (unsigned k = 0; k < 8000; k++) {
        operate(w);
        if (k % 3 == 0) {
            must_flush(w);
            st = tt_pagestore_stats(w->ps);
            worst = MAX(worst, st.stored_bytes - MIN(st.stored_bytes,
                                                     st.live_bytes * 5 / 4));
        }
    }
    st = tt_pagestore_stats(w->ps);
    g_test_message("live %" G_GUINT64_FORMAT ", stored %" G_GUINT64_FORMAT
                   ", file %" G_GUINT64_FORMAT ", journal %" G_GUINT64_FORMAT
                   ", worst excess %" G_GUINT64_FORMAT, st.live_bytes,
                   st.stored_bytes, st.pages_file_bytes, st.journal_bytes,
                   worst);
    g_assert_cmpuint(worst, <, 512 << 10);
    g_assert_cmpuint(st.journal_bytes, <, 1 << 20);
    check_nodes(w, w->ps, false);
    world_free(w);
    trace_free(trace);
}

/* A store that lives for ever has a file that does not grow for ever. */
static void test_holes_do_not_pile_up(void)
{
    const uint64_t least = 64 << 10;
    uint64_t most = 0, without = 0;

    for (unsigned renews = 0; renews < 2; renews++) {
        World *w = world_new(5);
        uint64_t longest = 0;

        w->opt.pages = tt_io_mem_new(NULL, 0);
        w->opt.checkpoints = tt_io_mem_new(NULL, 0);
        g_assert_cmpint(tt_pagestore_create(&w->opt, &w->ps, NULL), ==, TT_OK);
        for (unsigned k = 0; k < 8000; k++) {
            TtPageStoreStats st;

            operate(w);
            must_flush(w);
            g_assert_cmpint(tt_pagestore_sync(w->ps, NULL), ==, TT_OK);
            if (renews) {
                tt_pagestore_renew(w->ps, least);
            }
            st = tt_pagestore_stats(w->ps);
            longest = MAX(longest, st.pages_file_bytes);
            if (renews) {
                g_assert_cmpuint(st.pages_file_bytes, <=,
                                 9 * st.live_bytes + least);
            }
            if (k % 500 == 0) {
                check_nodes(w, w->ps, false);
            }
        }
        check_nodes(w, w->ps, false);
        *(renews ? &most : &without) = longest;
        world_free(w);
    }
    g_assert_cmpuint(most, <, without / 2);
}

static void delete_newest(World *w)
{
    for (unsigned k = 0; k < w->now.n; k++) {
        if (w->now.id[k] == w->base && w->now.n > 1) {
            unsigned to = (k + 1) % w->now.n;
            size_t n;
            g_autofree uint64_t *pages =
                tt_pagestore_rebase(w->ps, w->base, w->now.id[to], &n);

            for (size_t i = 0; i < n; i++) {
                w->dirty[page_index(pages[i])] = true;
            }
            tt_pagestore_delete(w->ps, w->base);
            w->base = w->now.id[to];
            w->pos = MAX(w->pos, truth_of(w, w->base)->pos);
            w->now.n--;
            w->now.id[k] = w->now.id[w->now.n];
            w->now.flags[k] = w->now.flags[w->now.n];
            return;
        }
    }
}

/* As long as the owner does what the header says, and when he does not. */
static void stay_below(uint32_t seed, uint64_t cap, unsigned *n_limit)
{
    World *w = world_new(seed);
    Trace *trace = trace_new();

    w->opt.pages = trace_io(trace, 0);
    w->opt.checkpoints = trace_io(trace, 1);
    w->opt.max_bytes = cap;
    g_assert_cmpint(tt_pagestore_create(&w->opt, &w->ps, NULL), ==, TT_OK);
    for (unsigned k = 0; k < 1500; k++) {
        TtDiag diag = { 0 };
        TtStatus st;

        if (k % 3 == 0 && seed % 2) {
            while (tt_pagestore_wants_thinning(w->ps, 60000) && w->now.n > 1) {
                op_delete(w);
            }
        }
        st = tt_pagestore_flush(w->ps, &diag);
        while (st != TT_OK) {
            g_assert_cmpint(st, ==, *diag.text ? TT_ERR_LIMIT : TT_END);
            diag.text[0] = 0;
            (*n_limit)++;
            delete_newest(w);
            st = tt_pagestore_flush(w->ps, &diag);
        }
        g_assert_cmpint(tt_pagestore_make_room(w->ps, 60000, &diag), ==,
                        TT_OK);
        g_assert_cmpuint(trace->file[0]->len + trace->file[1]->len, <=, cap);
        operate(w);
    }
    check_nodes(w, w->ps, false);
    must_flush(w);
    reopen(w, trace);
    check_nodes(w, w->ps, false);
    world_free(w);
    trace_free(trace);
}

static void test_stays_below_a_cap(void)
{
    unsigned careful = 0, careless = 0;

    stay_below(11, 900 << 10, &careful);
    stay_below(12, 300 << 10, &careless);
    g_test_message("%u and %u flushes had no room", careful, careless);
    g_assert_cmpuint(careful, ==, 0);
    g_assert_cmpuint(careless, >, 0);
}

static void test_memory_is_bounded(void)
{
    World *w = world_new(4);
    Trace *trace = trace_new();
    TtPageStoreStats st;

    w->opt.pages = trace_io(trace, 0);
    w->opt.checkpoints = trace_io(trace, 1);
    w->opt.cache_bytes = 10 * TT_PAGE_BYTES;
    g_assert_cmpint(tt_pagestore_create(&w->opt, &w->ps, NULL), ==, TT_OK);
    for (unsigned k = 0; k < 600; k++) {
        operate(w);
        must_flush(w);
        st = tt_pagestore_stats(w->ps);
        g_assert_cmpuint(st.cached_bytes, <=, 10 * TT_PAGE_BYTES);
    }
    g_assert_cmpuint(st.n_evicted, >, 100);
    g_assert_cmpuint(st.n_loads, >, 100);
    world_free(w);
    trace_free(trace);
}

/* ---- small promises ---- */

static void test_equal_pages_are_written_once(void)
{
    World *w = world_new(1);
    Trace *trace = trace_new();
    TtPageStoreStats st;

    w->opt.pages = trace_io(trace, 0);
    w->opt.checkpoints = trace_io(trace, 1);
    w->opt.cache_bytes = 0;
    g_assert_cmpint(tt_pagestore_create(&w->opt, &w->ps, NULL), ==, TT_OK);
    for (unsigned i = 0; i < N_PAGES; i++) {
        write_page(w, i, 3);
    }
    w->pos = 1;
    op_add(w);
    must_flush(w);
    write_page(w, 0, 6);
    w->pos = 2;
    op_add(w);
    must_flush(w);
    /* The first content comes back, and is on disk only. */
    write_page(w, 0, 3);
    w->pos = 3;
    op_add(w);
    must_flush(w);
    st = tt_pagestore_stats(w->ps);
    g_assert_cmpuint(st.n_versions, ==, 2);
    g_assert_cmpuint(st.stored_bytes, ==, 2 * TT_PAGE_BYTES);
    g_assert_cmpuint(st.cached_bytes, ==, 0);
    g_assert_cmpuint(st.n_shared, ==, N_PAGES);
    check_nodes(w, w->ps, false);
    world_free(w);
    trace_free(trace);
}

static void test_damage_is_named(void)
{
    World *w = world_new(1);
    Trace *trace = trace_new();
    GByteArray *file[2];
    TtPageStore *ps;
    const TtDiag *diag;
    static uint8_t ram[N_PAGES][TT_PAGE_BYTES];
    Copy c = { ram };
    size_t n_put = 99;

    w->opt.pages = trace_io(trace, 0);
    w->opt.checkpoints = trace_io(trace, 1);
    g_assert_cmpint(tt_pagestore_create(&w->opt, &w->ps, NULL), ==, TT_OK);
    w->pos = 1;
    write_page(w, 0, 3);
    write_page(w, 1, 6);
    op_add(w);
    must_flush(w);
    trace_replay(trace, trace->events->len, 0, file);
    file[0]->data[file[0]->len - 1] ^= 1;
    g_assert_cmpint(open_bytes(w, file[0], file[1], false, &ps, NULL), ==,
                    TT_OK);
    g_assert_cmpint(tt_pagestore_restore(ps, w->base, 0, NULL, 0, put, &c,
                                         &n_put), ==, TT_ERR_FORMAT);
    g_assert_cmpuint(n_put, ==, 1);
    diag = tt_pagestore_read_error(ps);
    g_assert_cmpuint(diag->offset, ==, file[0]->len - TT_PAGE_BYTES);
    g_assert_nonnull(strstr(diag->text, "damaged"));
    tt_pagestore_free(ps);
    /* Another run's files, and files in each other's place. */
    w->opt.uuid[0]++;
    g_assert_cmpint(open_bytes(w, file[0], file[1], false, &ps, NULL), ==,
                    TT_ERR_FORMAT);
    w->opt.uuid[0]--;
    g_assert_cmpint(open_bytes(w, file[1], file[0], false, &ps, NULL), ==,
                    TT_ERR_FORMAT);
    g_byte_array_unref(file[0]);
    g_byte_array_unref(file[1]);
    world_free(w);
    trace_free(trace);
}

static void test_read_only_writes_nothing(void)
{
    World *w = world_new(2);
    Trace *trace = trace_new();
    size_t events;

    w->opt.pages = trace_io(trace, 0);
    w->opt.checkpoints = trace_io(trace, 1);
    g_assert_cmpint(tt_pagestore_create(&w->opt, &w->ps, NULL), ==, TT_OK);
    for (unsigned k = 0; k < 50; k++) {
        operate(w);
    }
    must_flush(w);
    events = trace->events->len;
    w->opt.read_only = true;
    reopen(w, trace);
    for (unsigned k = 0; k < 300; k++) {
        operate(w);
        g_assert_cmpint(tt_pagestore_flush(w->ps, NULL), ==, TT_OK);
    }
    check_nodes(w, w->ps, false);
    g_assert_cmpuint(trace->events->len, ==, events);
    world_free(w);
    trace_free(trace);
}

static void test_real_files(void)
{
    g_autofree char *dir = g_dir_make_tmp("tt-pagestore-XXXXXX", NULL);
    g_autofree char *pages = g_build_filename(dir, "pages", NULL);
    g_autofree char *journal = g_build_filename(dir, "checkpoints", NULL);
    World *w = world_new(6);

    g_assert_cmpint(tt_io_posix_create(pages, &w->opt.pages, NULL), ==, TT_OK);
    g_assert_cmpint(tt_io_posix_create(journal, &w->opt.checkpoints, NULL), ==,
                    TT_OK);
    g_assert_cmpint(tt_pagestore_create(&w->opt, &w->ps, NULL), ==, TT_OK);
    for (unsigned k = 0; k < 1500; k++) {
        operate(w);
        if (k % 4 == 0) {
            must_flush(w);
        }
        if (k % 100 == 99) {
            must_flush(w);
            tt_pagestore_free(w->ps);
            g_assert_cmpint(tt_io_posix_open_append(pages, &w->opt.pages,
                                                    NULL), ==, TT_OK);
            g_assert_cmpint(tt_io_posix_open_append(journal,
                                                    &w->opt.checkpoints,
                                                    NULL), ==, TT_OK);
            g_assert_cmpint(tt_pagestore_open(&w->opt, &w->ps, NULL), ==,
                            TT_OK);
            g_assert_true(is_moment(w->ps, &w->now));
        }
    }
    check_nodes(w, w->ps, false);
    world_free(w);
    g_unlink(pages);
    g_unlink(journal);
    g_assert_cmpint(g_rmdir(dir), ==, 0);
}

static void test_batch_takes_what_fits(void)
{
    static const uint8_t page[TT_PAGE_BYTES] = { 1 };
    TtPageBatch *b = tt_pagebatch_new(3);

    g_assert_true(tt_pagebatch_put(b, 7, page));
    g_assert_false(tt_pagebatch_put(b, 7, page));
    g_assert_false(tt_pagebatch_put(b, 6, page));
    g_assert_true(tt_pagebatch_put(b, 8, page));
    g_assert_cmpuint(tt_pagebatch_room(b), ==, 1);
    g_assert_true(tt_pagebatch_put(b, 100, page));
    g_assert_false(tt_pagebatch_put(b, 101, page));
    g_assert_cmpuint(tt_pagebatch_count(b), ==, 3);
    g_assert_cmpuint(tt_pagebatch_pages(b)[2], ==, 100);
    tt_pagebatch_clear(b);
    g_assert_true(tt_pagebatch_put(b, 0, page));
    tt_pagebatch_free(b);
    tt_pagebatch_free(NULL);
    g_assert_null(tt_pagebatch_new(SIZE_MAX / 2));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/pagestore/file/equal-pages-are-written-once",
                    test_equal_pages_are_written_once);
    g_test_add_func("/tt/pagestore/file/damage-is-named",
                    test_damage_is_named);
    g_test_add_func("/tt/pagestore/file/read-only-writes-nothing",
                    test_read_only_writes_nothing);
    g_test_add_func("/tt/pagestore/file/survives-every-cut",
                    test_survives_every_cut);
    g_test_add_func("/tt/pagestore/file/survives-any-cut",
                    test_survives_any_cut);
    g_test_add_func("/tt/pagestore/file/any-failure-leaves-it-usable",
                    test_any_failure_leaves_it_usable);
    g_test_add_func("/tt/pagestore/file/a-full-disk-is-said-once",
                    test_a_full_disk_is_said_once);
    g_test_add_func("/tt/pagestore/file/space-comes-back",
                    test_space_comes_back);
    g_test_add_func("/tt/pagestore-file/holes-do-not-pile-up",
                    test_holes_do_not_pile_up);
    g_test_add_func("/tt/pagestore/file/stays-below-a-cap",
                    test_stays_below_a_cap);
    g_test_add_func("/tt/pagestore/file/memory-is-bounded",
                    test_memory_is_bounded);
    g_test_add_func("/tt/pagestore/file/real-files", test_real_files);
    g_test_add_func("/tt/pagestore/file/batch-takes-what-fits",
                    test_batch_takes_what_fits);
    return g_test_run();
}
