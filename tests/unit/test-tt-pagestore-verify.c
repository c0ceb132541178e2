/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page store says what is wrong with its files: every flipped bit of what is
 * needed is found, and named at the checkpoints that it costs; a writer that was
 * killed is never called damage; a journal that is exported is the store again.
 */
#include "pages/tt-pagestore.h"
#include "pagefile-trace.h"

#include <glib.h>

#define N_PAGES 6
#define N_NODES 4

static const uint8_t uuid[16] = "verified stores";

typedef struct Store {
    Trace *trace;
    TtNodeId id[N_NODES];
} Store;

static uint8_t noise(uint32_t x)
{
    x *= 2654435761u;
    x = (x ^ x >> 15) * 2246822519u;
    return (x ^ x >> 13) >> 7;
}

/* Page @p at checkpoint @n; some do not compress, page 5 is always zero. */
static uint8_t byte_at(unsigned n, uint64_t p, unsigned i)
{
    unsigned since = p == 0 ? 0 : p == 1 ? n : n / 2;

    return p == 5 ? 0 : p == 2 ? noise(i + since * 40503u) : 1 + p * 16 + since;
}

static const void *fetch(void *opaque, uint64_t page)
{
    static uint8_t buf[TT_PAGE_BYTES];

    for (unsigned i = 0; i < TT_PAGE_BYTES; i++) {
        buf[i] = byte_at(*(unsigned *)opaque, page, i);
    }
    return buf;
}

static TtPageStore *make_store(Store *s)
{
    TtPageStoreOptions opt = { 0 };
    static const uint64_t all[] = { 0, 1, 2, 3, 4 }, some[] = { 1, 2, 3, 4 };
    TtPageStore *ps;

    s->trace = trace_new();
    opt.pages = trace_io(s->trace, 0);
    opt.checkpoints = trace_io(s->trace, 1);
    memcpy(opt.uuid, uuid, 16);
    g_assert_cmpint(tt_pagestore_create(&opt, &ps, NULL), ==, TT_OK);
    for (unsigned n = 0; n < N_NODES; n++) {
        TtCheckpointMeta meta = {
            .flags = n == 2 ? TT_CHECKPOINT_FULL : 0, .host_ns = n,
            .blob = "state of the others", .blob_bytes = 10 + n,
        };

        g_assert_cmpint(tt_pagestore_add_checkpoint(
            ps, 1000 * n, n ? s->id[n - 1] : 0, n ? some : all,
            n ? G_N_ELEMENTS(some) : G_N_ELEMENTS(all), fetch, &n, &meta,
            &s->id[n]), ==, TT_OK);
        g_assert_cmpint(tt_pagestore_flush(ps, NULL), ==, TT_OK);
    }
    return ps;
}

static TtStatus open_bytes(const GByteArray *pages, const GByteArray *points,
                           TtPageStore **ps)
{
    TtPageStoreOptions opt = {
        .pages = tt_io_mem_new(pages->data, pages->len),
        .checkpoints = tt_io_mem_new(points->data, points->len),
        .read_only = true, .max_pages = 4096,
    };
    TtDiag diag = { 0 };
    TtStatus st;

    memcpy(opt.uuid, uuid, 16);
    st = tt_pagestore_open(&opt, ps, &diag);
    g_assert_true(st == TT_OK || diag.text[0]);
    return st;
}

/* ---- verify ---- */

typedef struct Found {
    unsigned n;
    TtNodeId id[N_NODES];
    uint64_t first_page;
} Found;

static void found(void *opaque, TtNodeId id, uint64_t pos, uint64_t n_pages,
                  uint64_t first_page, const TtDiag *why)
{
    Found *f = opaque;

    g_assert_cmpuint(n_pages, ==, 1);
    g_assert_true(why->text[0]);
    f->id[f->n++] = id;
    f->first_page = first_page;
}

static bool is_whole(TtPageStore *ps)
{
    Found f = { 0 };

    return !tt_pagestore_damage(ps, 0) && !tt_pagestore_damage(ps, 1) &&
        !tt_pagestore_stats(ps).n_lost &&
        tt_pagestore_verify(ps, found, &f) == 0 &&
        tt_pagestore_count(ps) == N_NODES;
}

static void test_a_whole_store_is_whole(void)
{
    Store s;
    TtPageStore *ps = make_store(&s);

    g_assert_true(is_whole(ps));
    tt_pagestore_free(ps);
    g_assert_cmpint(open_bytes(s.trace->file[0], s.trace->file[1], &ps), ==,
                    TT_OK);
    g_assert_true(is_whole(ps));
    tt_pagestore_free(ps);
    trace_free(s.trace);
}

static void compare(void *opaque, uint64_t page, const void *bytes)
{
    g_assert_cmpmem(bytes, TT_PAGE_BYTES, fetch(opaque, page), TT_PAGE_BYTES);
}

/* A bit of a compressed page may mean nothing: then nothing may have changed. */
static void contents_are_right(TtPageStore *ps, const Store *s)
{
    for (unsigned n = 0; n < N_NODES; n++) {
        g_assert_cmpint(tt_pagestore_read(ps, s->id[n], 0, N_PAGES, compare,
                                          &n), ==, TT_OK);
    }
}

static void test_every_flip_is_found(void)
{
    unsigned n_harmless = 0;
    Store s;
    TtPageStore *ps = make_store(&s);

    tt_pagestore_free(ps);
    for (unsigned which = 0; which < 2; which++) {
        GByteArray *file = s.trace->file[which];

        for (size_t at = 0; at < file->len; at++) {
            file->data[at] ^= 1 << at % 8;
            if (open_bytes(s.trace->file[0], s.trace->file[1], &ps) ==
                TT_OK) {
                if (is_whole(ps)) {
                    contents_are_right(ps, &s);
                    g_assert_cmpuint(which, ==, 0);
                    n_harmless++;
                }
                tt_pagestore_free(ps);
            }
            file->data[at] ^= 1 << at % 8;
        }
    }
    g_assert_cmpuint(n_harmless, <, 64);
    trace_free(s.trace);
}

/* Page 2 of checkpoints 0 and 1 is one version, that of 2 and 3 another. */
static void test_damage_is_named_where_it_counts(void)
{
    Store s;
    TtPageStore *ps = make_store(&s);
    GByteArray *pages = s.trace->file[0];
    Found f = { 0 };
    unsigned n = 3;
    const uint8_t *raw = fetch(&n, 2);
    size_t at = 0;

    tt_pagestore_free(ps);
    while (memcmp(pages->data + at, raw, TT_PAGE_BYTES)) {
        at++;
    }
    pages->data[at + 77] ^= 4;
    g_assert_cmpint(open_bytes(pages, s.trace->file[1], &ps), ==, TT_OK);
    g_assert_cmpuint(tt_pagestore_verify(ps, found, &f), ==, 1);
    g_assert_cmpuint(f.n, ==, 2);
    g_assert_cmpuint(f.id[0], ==, s.id[2]);
    g_assert_cmpuint(f.id[1], ==, s.id[3]);
    g_assert_cmpuint(f.first_page, ==, 2);
    tt_pagestore_free(ps);
    trace_free(s.trace);
}

/* The journal is whole then: it is pages that is named. */
static void test_pages_that_are_lost_are_no_damage_of_the_journal(void)
{
    Store s;
    TtPageStore *ps = make_store(&s);
    GByteArray *pages = s.trace->file[0];
    size_t at = 0;

    tt_pagestore_free(ps);
    while (memcmp(pages->data + at, "TTVMGRP\n", 8)) {
        g_assert_cmpuint(++at, <, pages->len - 8);
    }
    pages->data[at + 20] ^= 4;
    g_assert_cmpint(open_bytes(pages, s.trace->file[1], &ps), ==, TT_OK);
    for (unsigned which = 0; which < 2; which++) {
        g_assert_nonnull(tt_pagestore_damage(ps, which));
        g_assert_true(g_str_has_prefix(tt_pagestore_damage(ps, which)->text,
                                       "pages: "));
    }
    tt_pagestore_free(ps);
    trace_free(s.trace);
}

/* ---- ends ---- */

static void test_a_killed_writer_is_no_damage(void)
{
    Store s;
    TtPageStore *ps = make_store(&s);

    tt_pagestore_free(ps);
    for (size_t i = 2; i < s.trace->events->len; i++) {
        size_t bytes = trace_event_bytes(s.trace, i);

        for (size_t byte = 0; byte <= bytes; byte += byte < 200 ? 1 : 97) {
            GByteArray *file[2];

            trace_replay(s.trace, i, byte, file);
            g_assert_cmpint(open_bytes(file[0], file[1], &ps), ==, TT_OK);
            g_assert_null(tt_pagestore_damage(ps, 0));
            g_assert_null(tt_pagestore_damage(ps, 1));
            tt_pagestore_free(ps);
            g_byte_array_unref(file[0]);
            g_byte_array_unref(file[1]);
        }
    }
    trace_free(s.trace);
}

static void test_zeros_behind_the_end_are_no_damage(void)
{
    static const uint8_t zeros[300];
    Store s;
    TtPageStore *ps = make_store(&s);

    tt_pagestore_free(ps);
    for (unsigned which = 0; which < 2; which++) {
        g_byte_array_append(s.trace->file[which], zeros, sizeof(zeros));
    }
    g_assert_cmpint(open_bytes(s.trace->file[0], s.trace->file[1], &ps), ==,
                    TT_OK);
    g_assert_true(is_whole(ps));
    tt_pagestore_free(ps);
    g_byte_array_append(s.trace->file[1], (const uint8_t *)"x", 1);
    g_assert_cmpint(open_bytes(s.trace->file[0], s.trace->file[1], &ps), ==,
                    TT_OK);
    g_assert_nonnull(tt_pagestore_damage(ps, 1));
    g_assert_null(tt_pagestore_damage(ps, 0));
    tt_pagestore_free(ps);
    trace_free(s.trace);
}

/* ---- export ---- */

static void strip(void **blob, size_t *len, uint32_t *flags)
{
    if (*flags & TT_CHECKPOINT_FULL) {
        *flags = 0;
        *len = 3;
    }
}

static void export(TtPageStore *ps, TtPageStrip how, GByteArray *out)
{
    TtIo *to = tt_io_mem_new(NULL, 0);
    const uint8_t *bytes;
    size_t len;

    g_assert_cmpint(tt_pagestore_export(ps, to, uuid, how, NULL), ==, TT_OK);
    bytes = tt_io_mem_data(to, &len);
    g_byte_array_append(out, bytes, len);
    tt_io_close(to);
}

static void test_an_export_is_the_store_again(void)
{
    g_autoptr(GByteArray) journal = g_byte_array_new();
    TtCheckpointInfo infos[N_NODES];
    Store s;
    TtPageStore *ps = make_store(&s);

    tt_pagestore_free(ps);
    open_bytes(s.trace->file[0], s.trace->file[1], &ps);
    export(ps, strip, journal);
    tt_pagestore_free(ps);
    g_assert_cmpint(open_bytes(s.trace->file[0], journal, &ps), ==, TT_OK);
    g_assert_true(is_whole(ps));
    g_assert_cmpuint(tt_pagestore_list(ps, infos, N_NODES), ==, N_NODES);
    for (unsigned n = 0; n < N_NODES; n++) {
        g_assert_cmpuint(infos[n].id, ==, s.id[n]);
        g_assert_cmpuint(infos[n].pos, ==, 1000 * n);
        g_assert_cmpuint(infos[n].host_ns, ==, n);
        g_assert_cmpuint(infos[n].flags, ==, 0);
        g_assert_cmpuint(infos[n].blob_bytes, ==, n == 2 ? 3 : 10 + n);
    }
    tt_pagestore_free(ps);
    trace_free(s.trace);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/pagestore/verify/a-whole-store-is-whole",
                    test_a_whole_store_is_whole);
    g_test_add_func("/tt/pagestore/verify/every-flip-is-found",
                    test_every_flip_is_found);
    g_test_add_func("/tt/pagestore/verify/damage-is-named-where-it-counts",
                    test_damage_is_named_where_it_counts);
    g_test_add_func("/tt/pagestore/verify/pages-that-are-lost-are-no-damage-of-"
                    "the-journal",
                    test_pages_that_are_lost_are_no_damage_of_the_journal);
    g_test_add_func("/tt/pagestore/verify/a-killed-writer-is-no-damage",
                    test_a_killed_writer_is_no_damage);
    g_test_add_func("/tt/pagestore/verify/zeros-behind-the-end-are-no-damage",
                    test_zeros_behind_the_end_are_no_damage);
    g_test_add_func("/tt/pagestore/verify/an-export-is-the-store-again",
                    test_an_export_is_the_store_again);
    return g_test_run();
}
