/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of pages that one store inherits from another (P8).
 */
#include "pages/tt-pagestore.h"
#include "tt-pagefile.h"
#include "tt-pagestore-test.h"

#include <glib.h>
#include <string.h>

#define N_PAGES 1500            /* three groups */

static const uint8_t uuid[16] = "inherited-page tests";

typedef struct Store {
    TtPageStore *ps;
    TtPageStoreOptions opt;
} Store;

/* The content of a page says which: no two are equal, none is zero. */
static void make_page(uint8_t *to, uint32_t value)
{
    for (unsigned i = 0; i < TT_PAGE_BYTES; i += 4) {
        uint32_t x = (value + 1) * 2654435761u ^ (i * 40503u);

        memcpy(to + i, &x, 4);
    }
}

/* What is fetched and what is expected: values of the pages. */
typedef struct Ram {
    uint32_t value[N_PAGES];
    uint64_t n_put;
} Ram;

static const void *fetch(void *opaque, uint64_t page)
{
    static uint8_t bytes[TT_PAGE_BYTES];
    Ram *ram = opaque;

    make_page(bytes, ram->value[page]);
    return bytes;
}

static void expect(void *opaque, uint64_t page, const void *bytes)
{
    uint8_t wanted[TT_PAGE_BYTES];
    Ram *ram = opaque;

    make_page(wanted, ram->value[page]);
    g_assert(!memcmp(wanted, bytes, TT_PAGE_BYTES));
    ram->n_put++;
}

/* Adds all pages of @ram as the node at @pos. */
static TtNodeId add(TtPageStore *ps, uint64_t pos, TtNodeId base, Ram *ram)
{
    g_autofree uint64_t *pages = g_new(uint64_t, N_PAGES);
    TtNodeId id;

    for (unsigned i = 0; i < N_PAGES; i++) {
        pages[i] = i;
    }
    g_assert_cmpint(tt_pagestore_add(ps, pos, base, pages, N_PAGES, fetch, ram,
                                     &id), ==, TT_OK);
    g_assert_cmpint(tt_pagestore_flush(ps, NULL), ==, TT_OK);
    return id;
}

static TtStatus check(TtPageStore *ps, TtNodeId id, Ram *ram)
{
    TtStatus st;

    ram->n_put = 0;
    st = tt_pagestore_read(ps, id, 0, N_PAGES, expect, ram);
    if (st == TT_OK) {
        g_assert_cmpuint(ram->n_put, ==, N_PAGES);
    }
    return st;
}

static void store_make(Store *s, TtPageOrigin origin, void *opaque)
{
    *s = (Store) { 0 };
    s->opt.pages = tt_io_mem_new(NULL, 0);
    s->opt.checkpoints = tt_io_mem_new(NULL, 0);
    s->opt.origin = origin;
    s->opt.origin_opaque = opaque;
    memcpy(s->opt.uuid, uuid, sizeof(uuid));
    g_assert_cmpint(tt_pagestore_create(&s->opt, &s->ps, NULL), ==, TT_OK);
}

static TtIo *copy_of(TtIo *io)
{
    size_t len;
    const uint8_t *bytes = tt_io_mem_data(io, &len);

    return tt_io_mem_new(bytes, len);
}

/* What a reader finds in the files of @from. */
static TtPageStore *reopen(Store *from, TtPageOrigin origin, void *opaque,
                           bool read_only)
{
    TtPageStoreOptions opt = from->opt;
    TtPageStore *ps;

    opt.pages = copy_of(from->opt.pages);
    opt.checkpoints = copy_of(from->opt.checkpoints);
    opt.origin = origin;
    opt.origin_opaque = opaque;
    opt.read_only = read_only;
    g_assert_cmpint(tt_pagestore_open(&opt, &ps, NULL), ==, TT_OK);
    tt_pagestore_check(ps);
    return ps;
}

static TtStatus inherit_from(void *opaque, const uint64_t hash[2], void *to,
                             TtDiag *diag)
{
    return tt_pagestore_find(opaque, hash, to, diag);
}

static void ram_init(Ram *ram, unsigned from)
{
    for (unsigned i = 0; i < N_PAGES; i++) {
        ram->value[i] = from + i;
    }
}

/* A origin with values 0 .. N_PAGES - 1. */
static TtPageStore *parent_new(Store *s)
{
    static Ram ram;

    ram_init(&ram, 0);
    store_make(s, NULL, NULL);
    add(s->ps, 0, 0, &ram);
    return reopen(s, NULL, NULL, true);
}

static void test_whole(void)
{
    Store origin, s;
    TtPageStore *from = parent_new(&origin), *again;
    Ram ram;
    TtNodeId id;

    ram_init(&ram, 0);
    store_make(&s, inherit_from, from);
    id = add(s.ps, 0, 0, &ram);
    tt_pagestore_check(s.ps);
    g_assert_cmpuint(tt_pagestore_stats(s.ps).n_inherited, ==, N_PAGES);
    g_assert_cmpuint(tt_pagestore_stats(s.ps).live_bytes, ==, 0);
    g_assert_cmpuint(tt_pagestore_stats(s.ps).pages_file_bytes, <,
                     N_PAGES * 20);
    g_assert_cmpint(check(s.ps, id, &ram), ==, TT_OK);

    again = reopen(&s, inherit_from, from, true);
    g_assert_cmpuint(tt_pagestore_stats(again).n_inherited, ==, N_PAGES);
    g_assert_cmpint(check(again, id, &ram), ==, TT_OK);
    tt_pagestore_free(again);

    /* Without the origin nothing can be read, and the reason is told. */
    again = reopen(&s, NULL, NULL, true);
    g_assert_cmpint(check(again, id, &ram), ==, TT_ERR_FORMAT);
    g_assert(strstr(tt_pagestore_read_error(again)->text, "not available"));
    tt_pagestore_free(again);
    tt_pagestore_free(s.ps);
    tt_pagestore_free(from);
    tt_pagestore_free(origin.ps);
}

/* Own pages and inherited ones in one group; a second node; and one inherited page less. */
static void test_mixed(void)
{
    Store origin, s;
    TtPageStore *from = parent_new(&origin), *again;
    Ram a, b;
    TtNodeId ia, ib;

    ram_init(&a, N_PAGES / 2);              /* the second half is its own */
    ram_init(&b, N_PAGES);                  /* all are */
    store_make(&s, inherit_from, from);
    ia = add(s.ps, 0, 0, &a);
    g_assert_cmpuint(tt_pagestore_stats(s.ps).n_inherited, ==, N_PAGES / 2);
    ib = add(s.ps, 10, ia, &b);
    g_assert_cmpuint(tt_pagestore_stats(s.ps).n_inherited, ==, N_PAGES / 2);
    g_assert_cmpint(check(s.ps, ia, &a), ==, TT_OK);
    again = reopen(&s, inherit_from, from, true);
    g_assert_cmpint(check(again, ia, &a), ==, TT_OK);
    g_assert_cmpint(check(again, ib, &b), ==, TT_OK);
    tt_pagestore_free(again);

    /* What is its own is there without the origin. */
    again = reopen(&s, NULL, NULL, true);
    g_assert_cmpint(check(again, ia, &a), ==, TT_ERR_FORMAT);
    g_assert_cmpint(check(again, ib, &b), ==, TT_OK);
    tt_pagestore_free(again);
    tt_pagestore_free(s.ps);
    tt_pagestore_free(from);
    tt_pagestore_free(origin.ps);
}

/* Deleting gives inherited versions back; making the file anew copies them. */
static void test_delete_and_anew(void)
{
    Store origin, s;
    TtPageStore *from = parent_new(&origin), *again;
    Ram a, b, c;
    TtNodeId ia, ib, ic;

    ram_init(&a, 0);
    ram_init(&b, N_PAGES * 2 / 3);
    ram_init(&c, N_PAGES / 3);
    store_make(&s, inherit_from, from);
    ia = add(s.ps, 0, 0, &a);
    ib = add(s.ps, 5, ia, &b);
    ic = add(s.ps, 9, ib, &c);
    again = reopen(&s, inherit_from, from, false);
    tt_pagestore_delete(again, ia);
    tt_pagestore_delete(again, ib);
    g_assert_cmpint(tt_pagestore_flush(again, NULL), ==, TT_OK);
    g_assert_cmpint(tt_pagestore_make_room(again, UINT32_MAX, NULL), ==, TT_OK);
    tt_pagestore_check(again);
    g_assert_cmpint(check(again, ic, &c), ==, TT_OK);
    g_assert_cmpuint(tt_pagestore_stats(again).n_inherited, ==, N_PAGES * 2 / 3);
    tt_pagestore_delete(again, ic);
    g_assert_cmpint(tt_pagestore_flush(again, NULL), ==, TT_OK);
    g_assert_cmpuint(tt_pagestore_stats(again).n_inherited, ==, 0);
    tt_pagestore_free(again);
    tt_pagestore_free(s.ps);
    tt_pagestore_free(from);
    tt_pagestore_free(origin.ps);
}

static TtPageStore *parent_of_two;

static TtStatus parent_lies(void *opaque, const uint64_t hash[2], void *to,
                            TtDiag *diag)
{
    memset(to, 0x5a, TT_PAGE_BYTES);
    return TT_OK;
}

static TtStatus parent_fails(void *opaque, const uint64_t hash[2], void *to,
                             TtDiag *diag)
{
    return tt_fail(diag, TT_ERR_IO, "the cable fell out");
}

/* For two pages there is memory. */
static TtStatus inherit_two(void *opaque, const uint64_t hash[2], void *to,
                            TtDiag *diag)
{
    unsigned *n = opaque;

    return (*n)++ < 2 ? tt_pagestore_find(parent_of_two, hash, to, diag)
        : tt_fail(diag, TT_ERR_NOMEM, "the store cannot be opened");
}

/* Half-way through it is short of memory, which is no damage, and is told as what it
 * is, with the number of pages that were put. */
static void test_short_lender(void)
{
    Store origin, s;
    TtPageStore *from = parent_new(&origin), *again;
    unsigned n;
    size_t n_put;
    TtNodeId id;
    Ram ram;

    ram_init(&ram, 0);
    store_make(&s, inherit_from, from);
    id = add(s.ps, 0, 0, &ram);
    parent_of_two = from;
    again = reopen(&s, inherit_two, &n, true);
    n = 0;
    g_assert_cmpint(tt_pagestore_restore(again, id, 0, NULL, 0, expect, &ram,
                                         &n_put), ==, TT_ERR_NOMEM);
    g_assert_cmpuint(n_put, ==, 2);
    g_assert(strstr(tt_pagestore_read_error(again)->text, "cannot be opened"));
    n = 2;
    g_assert_cmpint(tt_pagestore_restore(again, id, 0, NULL, 0, expect, &ram,
                                         &n_put), ==, TT_ERR_NOMEM);
    g_assert_cmpuint(n_put, ==, 0);
    tt_pagestore_free(again);
    tt_pagestore_free(s.ps);
    tt_pagestore_free(from);
    tt_pagestore_free(origin.ps);
}

/* A origin that lies is found out, when written and when read. */
static void test_bad_lender(void)
{
    Store origin, s;
    TtPageStore *from = parent_new(&origin), *again;
    Ram ram;
    TtNodeId id;

    ram_init(&ram, 0);
    store_make(&s, parent_lies, NULL);
    id = add(s.ps, 0, 0, &ram);
    g_assert_cmpuint(tt_pagestore_stats(s.ps).n_inherited, ==, 0);
    g_assert_cmpint(check(s.ps, id, &ram), ==, TT_OK);
    tt_pagestore_free(s.ps);

    store_make(&s, parent_fails, NULL);
    id = add(s.ps, 0, 0, &ram);
    g_assert_cmpuint(tt_pagestore_stats(s.ps).n_inherited, ==, 0);
    tt_pagestore_free(s.ps);

    store_make(&s, inherit_from, from);
    id = add(s.ps, 0, 0, &ram);
    again = reopen(&s, parent_lies, NULL, true);
    g_assert_cmpint(check(again, id, &ram), ==, TT_ERR_FORMAT);
    g_assert(strstr(tt_pagestore_read_error(again)->text, "hash is wrong"));
    tt_pagestore_free(again);
    again = reopen(&s, parent_fails, NULL, true);
    g_assert_cmpint(check(again, id, &ram), ==, TT_ERR_IO);
    g_assert(strstr(tt_pagestore_read_error(again)->text, "the cable"));
    tt_pagestore_free(again);
    tt_pagestore_free(s.ps);
    tt_pagestore_free(from);
    tt_pagestore_free(origin.ps);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/pagestore/inherited/whole", test_whole);
    g_test_add_func("/tt/pagestore/inherited/mixed", test_mixed);
    g_test_add_func("/tt/pagestore/inherited/delete-and-anew",
                    test_delete_and_anew);
    g_test_add_func("/tt/pagestore/inherited/bad-origin", test_bad_lender);
    g_test_add_func("/tt/pagestore/inherited/short-origin", test_short_lender);
    return g_test_run();
}
