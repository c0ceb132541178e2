/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the page store: what its header promises one by one, and
 * random sequences against a model with full copies.
 */
#include "pages/tt-pagestore.h"
#include "tt-pagestore-test.h"
#include "pagestore-model.h"

#include <glib.h>

#define N_PAGES 6

/* A guest of a few pages, numbered far apart by @stride. */
typedef struct Guest {
    uint8_t ram[N_PAGES][TT_PAGE_BYTES];
    uint64_t stride;
    unsigned n_fetched;
    unsigned n_put[N_PAGES];
} Guest;

static const void *fetch(void *opaque, uint64_t page)
{
    Guest *g = opaque;

    g->n_fetched++;
    return g->ram[page / g->stride];
}

static void put(void *opaque, uint64_t page, const void *bytes)
{
    Guest *g = opaque;

    g->n_put[page / g->stride]++;
    if (bytes) {
        memcpy(g->ram[page / g->stride], bytes, TT_PAGE_BYTES);
    } else {
        memset(g->ram[page / g->stride], 0, TT_PAGE_BYTES);
    }
}

static void set(Guest *g, unsigned page, uint8_t value)
{
    memset(g->ram[page], value, TT_PAGE_BYTES);
}

/* Is page i all @want[i]? */
static void assert_ram(const Guest *g, const char *want)
{
    for (unsigned i = 0; want[i]; i++) {
        for (unsigned k = 0; k < TT_PAGE_BYTES; k++) {
            g_assert_cmpuint(g->ram[i][k], ==, want[i] - '0');
        }
    }
}

/* @dirty: page indices as digits. */
static TtStatus add(TtPageStore *ps, Guest *g, uint64_t pos, TtNodeId base,
                    const char *dirty, TtNodeId *id)
{
    uint64_t list[N_PAGES];
    size_t n = 0;

    for (; dirty[n]; n++) {
        list[n] = (dirty[n] - '0') * g->stride;
    }
    return tt_pagestore_add(ps, pos, base, list, n, fetch, g, id);
}

static TtNodeId must_add(TtPageStore *ps, Guest *g, uint64_t pos,
                         TtNodeId base, const char *dirty)
{
    TtNodeId id = 0;

    g_assert_cmpint(add(ps, g, pos, base, dirty, &id), ==, TT_OK);
    g_assert_cmpuint(id, !=, 0);
    tt_pagestore_check(ps);
    return id;
}

/* @want: how often each page is put, as digits. */
static void restore(TtPageStore *ps, Guest *g, TtNodeId target, TtNodeId base,
                    const char *dirty, const char *want)
{
    uint64_t list[N_PAGES];
    size_t n = 0, n_put = 99, sum = 0;

    for (; dirty[n]; n++) {
        list[n] = (dirty[n] - '0') * g->stride;
    }
    memset(g->n_put, 0, sizeof(g->n_put));
    g_assert_cmpint(tt_pagestore_restore(ps, target, base, list, n, put, g,
                                         &n_put), ==, TT_OK);
    for (unsigned i = 0; i < N_PAGES; i++) {
        g_assert_cmpuint(g->n_put[i], ==, want[i] - '0');
        sum += g->n_put[i];
    }
    g_assert_cmpuint(n_put, ==, sum);
    tt_pagestore_check(ps);
}

static void test_goes_back_and_forth(gconstpointer data)
{
    Guest *g = g_new0(Guest, 1);
    TtPageStore *ps = tt_pagestore_new();
    TtNodeId a, b, c;

    g->stride = *(const uint64_t *)data;
    set(g, 1, 1);
    a = must_add(ps, g, 100, 0, "1");
    set(g, 1, 2);
    set(g, 2, 2);
    b = must_add(ps, g, 200, a, "12");
    set(g, 1, 1);
    set(g, 3, 3);
    c = must_add(ps, g, 300, b, "13");
    set(g, 5, 5);
    /* Page 1 has the same version at a and c: it is left alone. */
    restore(ps, g, a, c, "5", "001101");
    assert_ram(g, "010000");
    restore(ps, g, c, a, "", "001100");
    assert_ram(g, "012300");
    restore(ps, g, b, c, "", "010100");
    assert_ram(g, "022000");
    restore(ps, g, b, b, "", "000000");
    set(g, 4, 4);
    restore(ps, g, b, b, "4", "000010");
    assert_ram(g, "022000");
    tt_pagestore_free(ps);
    g_free(g);
}

/* A part of each node's RAM, whatever the store's map stands on. */
static void test_reads_a_part(void)
{
    TtPageStore *ps = tt_pagestore_new();
    Guest g = { .stride = 1 }, seen = { .stride = 1 };
    TtNodeId a, b;

    set(&g, 0, 1);
    set(&g, 2, 3);
    set(&g, 5, 6);
    a = must_add(ps, &g, 0, 0, "025");
    set(&g, 2, 0);
    set(&g, 3, 4);
    b = must_add(ps, &g, 10, a, "23");
    g_assert_cmpint(tt_pagestore_read(ps, a, 1, 3, put, &seen), ==, TT_OK);
    assert_ram(&seen, "003000");
    memset(&seen, 0, sizeof(seen));
    seen.stride = 1;
    g_assert_cmpint(tt_pagestore_read(ps, b, 1, 5, put, &seen), ==, TT_OK);
    assert_ram(&seen, "000406");
    g_assert_cmpuint(seen.n_put[2], ==, 0);     /* zero: not put */
    g_assert_cmpint(tt_pagestore_read(ps, b, 0, UINT64_MAX, put, &seen), ==,
                    TT_OK);
    assert_ram(&seen, "100406");
    g_assert_cmpint(tt_pagestore_read(ps, 77, 0, 1, put, &seen), ==,
                    TT_ERR_INVALID);
    tt_pagestore_check(ps);
    tt_pagestore_free(ps);
}

/* What was written since another node; and what differs from another RAM, which is put. */
static void test_looks(void)
{
    TtPageStore *ps = tt_pagestore_new();
    Guest g = { .stride = 1 }, seen = { .stride = 1 };
    TtNodeId a, b;

    set(&g, 0, 1);
    set(&g, 2, 3);
    set(&g, 5, 6);
    a = must_add(ps, &g, 0, 0, "025");
    set(&g, 2, 0);
    set(&g, 3, 4);
    b = must_add(ps, &g, 10, a, "23");
    set(&seen, 2, 7);
    g_assert_cmpint(tt_pagestore_read_since(ps, a, b, put, &seen), ==, TT_OK);
    assert_ram(&seen, "000400");
    g_assert_cmpuint(seen.n_put[0] + seen.n_put[5], ==, 0);
    g_assert_cmpuint(seen.n_put[2], ==, 1);
    g_assert_cmpint(tt_pagestore_read_since(ps, 0, b, put, &seen), ==, TT_OK);
    assert_ram(&seen, "100406");
    g_assert_cmpint(tt_pagestore_read_since(ps, 77, b, put, &seen), ==, TT_ERR_INVALID);
    memset(&seen, 0, sizeof(seen));
    seen.stride = 1;
    set(&seen, 0, 1);
    set(&seen, 1, 9);
    set(&seen, 2, 3);
    set(&seen, 4, 9);
    g_assert_cmpint(tt_pagestore_compare(ps, b, 6, fetch, put, &seen), ==, TT_OK);
    assert_ram(&seen, "100406");
    g_assert_cmpuint(seen.n_put[0], ==, 0);
    for (unsigned i = 1; i < 6; i++) {
        g_assert_cmpuint(seen.n_put[i], ==, 1);
    }
    g_assert_cmpint(tt_pagestore_compare(ps, b, 6, fetch, put, &seen), ==, TT_OK);
    g_assert_cmpuint(seen.n_put[3], ==, 1);
    set(&seen, 5, 1);
    g_assert_cmpint(tt_pagestore_compare(ps, b, 5, fetch, put, &seen), ==, TT_OK);
    g_assert_cmpuint(seen.n_put[5], ==, 1);         /* not below 5 */
    g_assert_cmpint(tt_pagestore_compare(ps, 77, 6, fetch, put, &seen), ==,
                    TT_ERR_INVALID);
    tt_pagestore_check(ps);
    tt_pagestore_free(ps);
}

static void test_new_node_between(void)
{
    Guest *g = g_new0(Guest, 1);
    TtPageStore *ps = tt_pagestore_new();
    TtNodeId a, b, m, n;

    g->stride = 1;
    a = must_add(ps, g, 100, 0, "");
    for (unsigned i = 0; i < 4; i++) {
        set(g, i, 1 + i);
    }
    b = must_add(ps, g, 200, a, "0123");
    restore(ps, g, a, b, "", "111100");
    set(g, 0, 1);
    set(g, 1, 9);
    m = must_add(ps, g, 150, a, "01");
    set(g, 1, 2);
    set(g, 2, 3);
    set(g, 3, 4);
    set(g, 4, 5);
    /* The RAM still comes from a, and has run past m and b. */
    n = must_add(ps, g, 250, a, "01234");
    restore(ps, g, b, n, "", "000010");
    assert_ram(g, "123400");
    restore(ps, g, m, b, "", "011100");
    assert_ram(g, "190000");
    restore(ps, g, n, m, "", "011110");
    assert_ram(g, "123450");
    restore(ps, g, a, n, "", "111110");
    assert_ram(g, "000000");
    tt_pagestore_free(ps);
    g_free(g);
}

/* What a replay does whose recorder kept nothing at the start. */
static void test_new_first_node(void)
{
    Guest *g = g_new0(Guest, 1);
    TtPageStore *ps = tt_pagestore_new();
    TtNodeId a, b, first;

    g->stride = 1;
    set(g, 1, 1);
    set(g, 2, 2);
    a = must_add(ps, g, 100, 0, "12");
    set(g, 3, 3);
    b = must_add(ps, g, 200, a, "3");
    memset(g->ram, 0, sizeof(g->ram));
    set(g, 1, 1);
    set(g, 4, 4);
    first = must_add(ps, g, 50, 0, "14");
    restore(ps, g, b, first, "", "001110");
    assert_ram(g, "012300");
    restore(ps, g, first, b, "", "001110");
    assert_ram(g, "010040");
    restore(ps, g, a, first, "", "001010");
    assert_ram(g, "012000");
    g_assert_cmpuint(tt_pagestore_node_pages(ps, first), ==, 2);
    g_assert_true(tt_pagestore_changed(ps, a, 4));
    tt_pagestore_delete(ps, first);
    tt_pagestore_check(ps);
    restore(ps, g, b, a, "", "000100");
    assert_ram(g, "012300");
    tt_pagestore_free(ps);
    g_free(g);
}

static void test_refuses_nonsense(void)
{
    Guest *g = g_new0(Guest, 1);
    TtPageStore *ps = tt_pagestore_new();
    const uint64_t too_high = TT_PAGES_MAX;
    TtNodeId a, b, id = 77;

    g->stride = 1;
    g_assert_cmpint(add(ps, g, 5, 3, "", &id), ==, TT_ERR_INVALID);
    a = must_add(ps, g, 100, 0, "");
    b = must_add(ps, g, 200, a, "");
    g_assert_cmpint(add(ps, g, 300, 0, "", &id), ==, TT_ERR_INVALID);
    g_assert_cmpint(add(ps, g, 300, 9, "", &id), ==, TT_ERR_INVALID);
    g_assert_cmpint(add(ps, g, 200, a, "", &id), ==, TT_ERR_INVALID);
    g_assert_cmpint(add(ps, g, 200, b, "", &id), ==, TT_ERR_INVALID);
    g_assert_cmpint(add(ps, g, 150, b, "", &id), ==, TT_ERR_INVALID);
    g_assert_cmpint(tt_pagestore_add(ps, 300, b, &too_high, 1, fetch, g, &id),
                    ==, TT_ERR_INVALID);
    g_assert_cmpint(tt_pagestore_restore(ps, a, b, &too_high, 1, put, g, NULL),
                    ==, TT_ERR_INVALID);
    g_assert_cmpint(tt_pagestore_restore(ps, 9, b, NULL, 0, put, g, NULL), ==,
                    TT_ERR_INVALID);
    g_assert_cmpint(tt_pagestore_restore(ps, a, 9, NULL, 0, put, g, NULL), ==,
                    TT_ERR_INVALID);
    g_assert_cmpuint(id, ==, 77);
    tt_pagestore_free(ps);
    tt_pagestore_free(NULL);
    g_free(g);
}

static void test_keeps_equal_pages_once(void)
{
    Guest *g = g_new0(Guest, 1);
    TtPageStore *ps = tt_pagestore_new();
    uint64_t before;
    TtNodeId a, b;

    g->stride = 1;
    for (unsigned i = 0; i < N_PAGES; i++) {
        set(g, i, 7);
    }
    a = must_add(ps, g, 1, 0, "012345");
    g_assert_cmpuint(tt_pagestore_versions(ps), ==, 1);
    before = tt_pagestore_bytes(ps);
    for (unsigned i = 0; i < N_PAGES; i++) {
        set(g, i, 0);
    }
    b = must_add(ps, g, 2, a, "012345");
    g_assert_cmpuint(tt_pagestore_versions(ps), ==, 1);
    /* Zero pages cost their place in the list only. */
    g_assert_cmpuint(tt_pagestore_bytes(ps) - before, <, TT_PAGE_BYTES);
    tt_pagestore_delete(ps, a);
    g_assert_cmpuint(tt_pagestore_versions(ps), ==, 0);
    restore(ps, g, b, b, "", "000000");
    tt_pagestore_free(ps);
    g_free(g);
}

/* The list of what was the first node has only what is not zero there. */
static void test_before_the_first(void)
{
    Guest *g = g_new0(Guest, 1);
    TtPageStore *ps = tt_pagestore_new();
    TtNodeId a, b, m;

    g->stride = 1;
    a = must_add(ps, g, 100, 0, "");
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 1, 100), ==, 100);
    m = must_add(ps, g, 50, 0, "");
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 1, 100), ==, 100);
    g_assert_true(tt_pagestore_changed(ps, a, 1));
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 1, 50), ==, 50);
    /* Nor is that of one between them: it leaves out what the one behind it does. */
    b = must_add(ps, g, 70, m, "1");
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 1, 70), ==, 70);
    tt_pagestore_delete(ps, b);
    tt_pagestore_delete(ps, m);
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 1, 100), ==, 100);
    tt_pagestore_free(ps);
    g_free(g);
}

static void test_changed_misses_no_write(void)
{
    Guest *g = g_new0(Guest, 1);
    TtPageStore *ps = tt_pagestore_new();
    TtNodeId a, b, c, m;

    g->stride = 1;
    a = must_add(ps, g, 100, 0, "");
    set(g, 1, 1);
    /* Page 2 was written, and holds what it held before. */
    b = must_add(ps, g, 200, a, "12");
    c = must_add(ps, g, 300, b, "3");
    g_assert_true(tt_pagestore_changed(ps, b, 1));
    g_assert_true(tt_pagestore_changed(ps, b, 2));
    g_assert_false(tt_pagestore_changed(ps, b, 0));
    g_assert_false(tt_pagestore_changed(ps, b, 3));
    g_assert_false(tt_pagestore_changed(ps, c, 2));
    g_assert_true(tt_pagestore_changed(ps, c, 3));
    g_assert_false(tt_pagestore_changed(ps, c, TT_PAGES_MAX - 1));
    g_assert_cmpuint(tt_pagestore_node_pages(ps, b), ==, 2);
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 3, 250), ==, 250);
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 2, 250), ==, 200);
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 2, 300), ==, 200);
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 2, 301), ==, 301);
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 0, 300), ==, 100);
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 3, 200), ==, 100);
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 1, 200), ==, 200);
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 1, 100), ==, 100);
    g_assert_cmpuint(tt_pagestore_unwritten_since(ps, 1, 50), ==, 50);

    /* A node in between: page 3 is not in b's list, so it was not written. */
    restore(ps, g, a, c, "", "010000");
    m = must_add(ps, g, 150, a, "23");
    g_assert_true(tt_pagestore_changed(ps, m, 2));
    g_assert_false(tt_pagestore_changed(ps, m, 3));
    g_assert_true(tt_pagestore_changed(ps, b, 1));
    g_assert_true(tt_pagestore_changed(ps, b, 2));

    /* Deleting joins the lists. */
    tt_pagestore_delete(ps, b);
    for (unsigned page = 1; page <= 3; page++) {
        g_assert_true(tt_pagestore_changed(ps, c, page));
    }
    g_assert_false(tt_pagestore_changed(ps, c, 0));
    tt_pagestore_free(ps);
    g_free(g);
}

static void test_rebase_names_what_differs(void)
{
    Guest *g = g_new0(Guest, 1);
    TtPageStore *ps = tt_pagestore_new();
    static const uint64_t want[] = { 1000, 3000, 4000 };
    uint64_t *pages;
    TtNodeId a, b, c;
    size_t n;

    g->stride = 1000;
    a = must_add(ps, g, 1, 0, "");
    set(g, 1, 1);
    set(g, 4, 1);
    b = must_add(ps, g, 2, a, "14");
    set(g, 3, 1);
    c = must_add(ps, g, 3, b, "3");
    pages = tt_pagestore_rebase(ps, c, a, &n);
    g_assert_cmpuint(n, ==, 3);
    for (unsigned i = 0; i < n; i++) {
        g_assert_cmpuint(pages[i], ==, want[i]);
    }
    g_free(pages);
    tt_pagestore_delete(ps, c);
    restore(ps, g, b, a, "134", "010110");
    assert_ram(g, "010010");
    pages = tt_pagestore_rebase(ps, b, b, &n);
    g_assert_nonnull(pages);
    g_assert_cmpuint(n, ==, 0);
    g_free(pages);
    tt_pagestore_free(ps);
    g_free(g);
}

/* Adds with the Nth allocation failing. If that happens, nothing may have
 * changed, and the same works when there is memory. */
static TtNodeId add_short_of_memory(TtPageStore *ps, Guest *g, uint64_t pos,
                                    TtNodeId base, const char *dirty,
                                    unsigned nth, unsigned *n_failed)
{
    uint64_t n_versions = tt_pagestore_versions(ps);
    TtNodeId id = 0;
    TtStatus st;

    tt_pagestore_fail_alloc(ps, nth);
    st = add(ps, g, pos, base, dirty, &id);
    tt_pagestore_fail_alloc(ps, 0);
    if (st == TT_OK) {
        return id;
    }
    g_assert_cmpint(st, ==, TT_ERR_NOMEM);
    g_assert_cmpuint(id, ==, 0);
    g_assert_cmpuint(tt_pagestore_versions(ps), ==, n_versions);
    tt_pagestore_check(ps);
    ++*n_failed;
    return must_add(ps, g, pos, base, dirty);
}

static unsigned add_three_short_of_memory(unsigned nth)
{
    Guest *g = g_new0(Guest, 1);
    TtPageStore *ps = tt_pagestore_new();
    unsigned n_failed = 0;
    TtNodeId a, b, c;

    g->stride = 1u << 20;
    set(g, 1, 1);
    a = add_short_of_memory(ps, g, 100, 0, "1", nth, &n_failed);
    set(g, 1, 2);
    set(g, 2, 2);
    b = add_short_of_memory(ps, g, 200, a, "12", nth, &n_failed);
    restore(ps, g, a, b, "", "011000");
    set(g, 1, 3);
    set(g, 4, 4);
    set(g, 5, 5);
    c = add_short_of_memory(ps, g, 150, a, "145", nth, &n_failed);
    restore(ps, g, b, c, "", "011011");
    assert_ram(g, "022000");
    restore(ps, g, c, b, "", "011011");
    assert_ram(g, "030045");
    restore(ps, g, a, c, "", "010011");
    assert_ram(g, "010000");
    tt_pagestore_free(ps);
    g_free(g);
    return n_failed;
}

/* Every allocation in turn fails. */
static void test_add_without_memory_changes_nothing(void)
{
    unsigned nth = 1, n_failed = 0, n;

    for (; (n = add_three_short_of_memory(nth)) > 0; nth++) {
        n_failed += n;
    }
    g_test_message("%u allocations failed", n_failed);
    g_assert_cmpuint(nth, >, 7);
}

static void test_restore_without_memory_puts_nothing(void)
{
    Guest *g = g_new0(Guest, 1);
    TtPageStore *ps = tt_pagestore_new();
    uint64_t dirty = 5;
    TtNodeId a, b;
    size_t n;

    g->stride = 1;
    a = must_add(ps, g, 100, 0, "");
    set(g, 1, 1);
    b = must_add(ps, g, 200, a, "1");
    set(g, 5, 1);
    tt_pagestore_fail_alloc(ps, 1);
    g_assert_cmpint(tt_pagestore_restore(ps, a, b, &dirty, 1, put, g, NULL),
                    ==, TT_ERR_NOMEM);
    g_assert_null(tt_pagestore_rebase(ps, a, b, &n));
    tt_pagestore_fail_alloc(ps, 0);
    for (unsigned i = 0; i < N_PAGES; i++) {
        g_assert_cmpuint(g->n_put[i], ==, 0);
    }
    restore(ps, g, a, b, "5", "010001");
    tt_pagestore_free(ps);
    g_free(g);
}

static void test_delete_needs_no_memory(void)
{
    Guest *g = g_new0(Guest, 1);
    TtPageStore *ps = tt_pagestore_new();
    TtNodeId a, b, c, d;

    g->stride = 1;
    a = must_add(ps, g, 100, 0, "");
    set(g, 1, 1);
    b = must_add(ps, g, 200, a, "1");
    set(g, 2, 2);
    c = must_add(ps, g, 300, b, "2");
    set(g, 3, 3);
    d = must_add(ps, g, 400, c, "3");
    tt_pagestore_fail_alloc(ps, 1);
    tt_pagestore_delete(ps, b);
    tt_pagestore_delete(ps, c);
    tt_pagestore_fail_alloc(ps, 0);
    tt_pagestore_check(ps);
    g_assert_true(tt_pagestore_changed(ps, d, 1));
    g_assert_true(tt_pagestore_changed(ps, d, 2));
    restore(ps, g, a, d, "", "011100");
    assert_ram(g, "000000");
    restore(ps, g, d, a, "", "011100");
    assert_ram(g, "012300");
    /* Their positions are free again. */
    restore(ps, g, a, d, "", "011100");
    set(g, 1, 1);
    b = must_add(ps, g, 200, a, "1");
    restore(ps, g, d, b, "", "001100");
    assert_ram(g, "012300");
    tt_pagestore_free(ps);
    g_free(g);
}

static void test_gives_memory_back(void)
{
    enum { PAGES = 4096 };
    TtPageStore *ps = tt_pagestore_new();
    uint64_t *list = g_new(uint64_t, PAGES), most, left;
    Guest *g = g_new0(Guest, 1);
    TtNodeId base = 0;

    g->stride = PAGES;          /* all pages read the same bytes... */
    for (unsigned i = 0; i < PAGES; i++) {
        list[i] = i;
    }
    for (unsigned pos = 1; pos <= 40; pos++) {
        set(g, 0, pos);         /* ...which differ from node to node */
        g_assert_cmpint(tt_pagestore_add(ps, pos, base, list, PAGES, fetch, g,
                                         &base), ==, TT_OK);
    }
    g_assert_cmpuint(g->n_fetched, ==, 40 * PAGES);
    g_assert_cmpuint(tt_pagestore_versions(ps), ==, 40);
    most = tt_pagestore_bytes(ps);
    g_assert_cmpuint(most, >, 40 * PAGES * 12);
    for (TtNodeId id = 1; id < base; id++) {
        tt_pagestore_delete(ps, id);
    }
    left = tt_pagestore_bytes(ps);
    g_assert_cmpuint(tt_pagestore_versions(ps), ==, 1);
    g_assert_cmpuint(most - left, >=, 39 * PAGES * 12);
    tt_pagestore_free(ps);
    g_free(list);
    g_free(g);
}

/* Pages of two nodes lie side by side in memory, so that deleting one empties
 * no slab. A caller that deletes until it is below a cap must see it shrink. */
static void test_deleting_counts_at_once(void)
{
    enum { PAGES = 2048 };
    TtPageStore *ps = tt_pagestore_new();
    uint64_t *list = g_new(uint64_t, PAGES), before;
    Guest *g = g_new0(Guest, 1);
    TtNodeId id = 0, first = 0;

    g->stride = TT_PAGES_MAX;
    for (unsigned i = 0; i < PAGES; i++) {
        set(g, 0, 1);
        memcpy(g->ram[0], &i, sizeof(i));
        list[0] = i;
        g_assert_cmpint(tt_pagestore_add(ps, i + 1, id, list, 1, fetch, g,
                                         &id), ==, TT_OK);
        first = first ?: id;
    }
    /* Every other page is written once more in the last node. */
    for (unsigned i = 0; i < PAGES / 2; i++) {
        list[i] = 2 * i;
    }
    set(g, 0, 2);
    g_assert_cmpint(tt_pagestore_add(ps, PAGES + 1, id, list, PAGES / 2, fetch,
                                     g, &id), ==, TT_OK);
    before = tt_pagestore_bytes(ps);
    g_assert_cmpuint(before, >, PAGES * TT_PAGE_BYTES);
    for (TtNodeId k = first; k < id; k++) {
        tt_pagestore_delete(ps, k);
    }
    g_assert_cmpuint(tt_pagestore_versions(ps), ==, PAGES / 2 + 1);
    g_assert_cmpuint(before - tt_pagestore_bytes(ps), >=,
                     (PAGES / 2 - 1) * TT_PAGE_BYTES);
    tt_pagestore_check(ps);
    tt_pagestore_free(ps);
    g_free(list);
    g_free(g);
}

static void test_equals_full_copies(void)
{
    enum { SEQUENCES = 400, LENGTH = 400 };
    PagestoreModelStats st = { 0 };
    uint32_t seed = g_test_rand_int();
    uint8_t bytes[LENGTH];

    g_test_message("first seed %u", seed);
    for (unsigned i = 0; i < SEQUENCES; i++) {
        GRand *rng = g_rand_new_with_seed(seed + i);

        for (unsigned k = 0; k < LENGTH; k++) {
            bytes[k] = g_rand_int(rng);
        }
        g_rand_free(rng);
        pagestore_model_run(bytes, LENGTH, &st);
    }
    g_test_message("%u add, %u restore, %u delete, %u rebase, %u refused, "
                   "%u out of memory", st.n_add, st.n_restore, st.n_delete,
                   st.n_rebase, st.n_refused, st.n_nomem);
    g_assert_true(st.n_add > SEQUENCES && st.n_restore > SEQUENCES &&
                  st.n_delete > SEQUENCES && st.n_rebase > SEQUENCES &&
                  st.n_pack > SEQUENCES &&
                  st.n_nomem > SEQUENCES / 4);
}

int main(int argc, char **argv)
{
    static const uint64_t strides[] = { 1, 1023, (TT_PAGES_MAX - 1) / 5 };

    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/tt/pagestore/goes-back-and-forth", &strides[0],
                         test_goes_back_and_forth);
    g_test_add_data_func("/tt/pagestore/goes-back-and-forth/pages-apart",
                         &strides[1], test_goes_back_and_forth);
    g_test_add_data_func("/tt/pagestore/goes-back-and-forth/up-to-the-limit",
                         &strides[2], test_goes_back_and_forth);
    g_test_add_func("/tt/pagestore/new-node-between", test_new_node_between);
    g_test_add_func("/tt/pagestore/new-first-node", test_new_first_node);
    g_test_add_func("/tt/pagestore/reads-a-part", test_reads_a_part);
    g_test_add_func("/tt/pagestore/looks", test_looks);
    g_test_add_func("/tt/pagestore/refuses-nonsense", test_refuses_nonsense);
    g_test_add_func("/tt/pagestore/keeps-equal-pages-once",
                    test_keeps_equal_pages_once);
    g_test_add_func("/tt/pagestore/changed-misses-no-write",
                    test_changed_misses_no_write);
    g_test_add_func("/tt/pagestore/before-the-first", test_before_the_first);
    g_test_add_func("/tt/pagestore/rebase-names-what-differs",
                    test_rebase_names_what_differs);
    g_test_add_func("/tt/pagestore/add-without-memory-changes-nothing",
                    test_add_without_memory_changes_nothing);
    g_test_add_func("/tt/pagestore/restore-without-memory-puts-nothing",
                    test_restore_without_memory_puts_nothing);
    g_test_add_func("/tt/pagestore/delete-needs-no-memory",
                    test_delete_needs_no_memory);
    g_test_add_func("/tt/pagestore/gives-memory-back",
                    test_gives_memory_back);
    g_test_add_func("/tt/pagestore/deleting-counts-at-once",
                    test_deleting_counts_at_once);
    g_test_add_func("/tt/pagestore/equals-full-copies",
                    test_equals_full_copies);
    return g_test_run();
}
