/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Page tables: where an address leads in each mode, which entries it depends on, and the
 * set of those that were used as bytes, also damaged ones. */
#include "debug/tt-paging.h"

#include <glib.h>

/* Memory as a few entries; what is not there cannot be read. */
typedef struct Entry {
    uint64_t at, value;
} Entry;

static const Entry *memory;
static size_t n_memory;
static uint64_t asked[8];
static unsigned n_asked;

static bool read_entry(void *opaque, uint64_t physical, unsigned bytes, uint64_t *entry)
{
    g_assert_true(bytes == 4 || bytes == 8);
    g_assert_cmpuint(n_asked, <, G_N_ELEMENTS(asked));
    asked[n_asked++] = physical;
    for (size_t i = 0; i < n_memory; i++) {
        if (memory[i].at == physical) {
            *entry = memory[i].value;
            return true;
        }
    }
    return false;
}

static TtPagingWalk walk(unsigned mode, uint64_t root, const Entry *entries, size_t n,
                         uint64_t addr, uint64_t *physical)
{
    const TtPaging p = { .root = root, .mode = mode };

    memory = entries;
    n_memory = n;
    n_asked = 0;
    *physical = 0;
    return tt_paging_walk(&p, addr, read_entry, NULL, physical);
}

#define LONG_MODE (TT_PAGING_ON | TT_PAGING_PAE | TT_PAGING_LONG)

static void test_long_mode(void)
{
    static const Entry e[] = {
        { 0x1000 + 8 * 511, 0x2003 },                   /* ffff ff80... */
        { 0x2000 + 8 * 510, 0x3067 },
        { 0x3000 + 8 * 3, 0x8000000000004063 },         /* NX and others */
        { 0x3000 + 8 * 4, 0x400000e3 },                 /* 2 MiB */
        { 0x4000 + 8 * 5, 0x7654321063 },
        { 0x4000 + 8 * 6, 0x7654321062 },               /* is not there */
        { 0x2000 + 8 * 511, 0x1c00000e3 },              /* 1 GiB */
    };
    uint64_t base = 0xffffffff80000000, to;
    const size_t n = G_N_ELEMENTS(e);

    g_assert_cmpint(walk(LONG_MODE, 0x1abc, e, n, base + (3 << 21 | 5 << 12 | 0x123), &to),
                    ==, TT_WALK_MAPPED);
    g_assert_cmphex(to, ==, 0x7654321123);
    g_assert_cmpuint(n_asked, ==, 4);
    g_assert_cmphex(asked[0], ==, 0x1000 + 8 * 511);
    g_assert_cmphex(asked[3], ==, 0x4000 + 8 * 5);
    g_assert_cmpint(walk(LONG_MODE, 0x1000, e, n, base + (3 << 21 | 6 << 12), &to), ==,
                    TT_WALK_UNMAPPED);
    g_assert_cmpuint(n_asked, ==, 4);
    g_assert_cmpint(walk(LONG_MODE, 0x1000, e, n, base + (4 << 21 | 0x12345), &to), ==,
                    TT_WALK_MAPPED);
    g_assert_cmphex(to, ==, 0x40012345);
    g_assert_cmpint(walk(LONG_MODE, 0x1000, e, n, base + (1 << 30) + 0x1234567, &to), ==,
                    TT_WALK_MAPPED);
    g_assert_cmphex(to, ==, 0x1c1234567);
    g_assert_cmpint(walk(LONG_MODE, 0x1000, e, n, 0x1234, &to), ==, TT_WALK_UNKNOWN);
    g_assert_cmpint(walk(LONG_MODE, 0x1000, e, n, 1ull << 47, &to), ==, TT_WALK_UNMAPPED);
    g_assert_cmpuint(n_asked, ==, 0);
}

static void test_five_levels(void)
{
    static const Entry e[] = {
        { 0x1000 + 8 * 1, 0x2001 }, { 0x2000 + 8 * 2, 0x3001 }, { 0x3000 + 8 * 3, 0x4001 },
        { 0x4000 + 8 * 4, 0x5001 }, { 0x5000 + 8 * 5, 0x6001 },
    };
    uint64_t addr = 1ull << 48 | 2ull << 39 | 3ull << 30 | 4ull << 21 | 5ull << 12 | 6, to;

    g_assert_cmpint(walk(LONG_MODE | TT_PAGING_LA57, 0x1000, e, G_N_ELEMENTS(e), addr, &to),
                    ==, TT_WALK_MAPPED);
    g_assert_cmphex(to, ==, 0x6006);
    g_assert_cmpuint(n_asked, ==, 5);
    g_assert_cmpint(walk(LONG_MODE, 0x1000, e, G_N_ELEMENTS(e), addr, &to), ==,
                    TT_WALK_UNMAPPED);
}

static void test_narrow_modes(void)
{
    static const Entry two[] = {
        { 0x1000 + 4 * 768, 0x2001 }, { 0x2000 + 4 * 7, 0xabcde007 },
        { 0x1000 + 4 * 769, 0x00c020e3 },               /* 4 MiB, bits 32 up: 1 */
    };
    static const Entry pae[] = {
        { 0x1020 + 8 * 3, 0x2001 }, { 0x2000 + 8 * 1, 0x3001 }, { 0x3000 + 8 * 2, 0x4001 },
    };
    uint64_t to;

    g_assert_cmpint(walk(TT_PAGING_ON, 0x1fff, two, 3, 0xc0007123, &to), ==, TT_WALK_MAPPED);
    g_assert_cmphex(to, ==, 0xabcde123);
    g_assert_cmpint(walk(TT_PAGING_ON | TT_PAGING_PSE, 0x1000, two, 3, 0xc0412345, &to), ==,
                    TT_WALK_MAPPED);
    g_assert_cmphex(to, ==, 0x100c12345);
    g_assert_cmpint(walk(TT_PAGING_ON, 0x1000, two, 3, 0xc0412345, &to), ==,
                    TT_WALK_UNKNOWN);                   /* a table at c02000 */
    g_assert_cmphex(asked[1], ==, 0xc02000 + 4 * 0x12);
    g_assert_cmpint(walk(TT_PAGING_ON | TT_PAGING_PAE, 0x103f, pae, 3, 0xc0202008, &to), ==,
                    TT_WALK_MAPPED);
    g_assert_cmphex(to, ==, 0x4008);
    g_assert_cmpint(walk(0, 0x1000, NULL, 0, 0xc0202008, &to), ==, TT_WALK_MAPPED);
    g_assert_cmphex(to, ==, 0xc0202008);
    g_assert_cmpint(walk(TT_PAGING_A20_OFF, 0, NULL, 0, 1, &to), ==, TT_WALK_UNKNOWN);
}

/* ---- those that were used ---- */

static void test_set(void)
{
    TtPagings *s = tt_pagings_new(), *back;
    TtPaging p = { 0x1000, 1, LONG_MODE };
    const TtPaging *list;
    uint8_t *bytes;
    uint32_t len;
    size_t n;

    tt_pagings_begin(s, 77);
    for (unsigned i = 0; i < 3000; i++) {
        p.root = i % 1000 << 12;
        tt_pagings_add(s, &p);
    }
    g_assert_true(tt_pagings_are_known(s));
    tt_pagings_list(s, &n);
    g_assert_cmpuint(n, ==, 1000);
    bytes = tt_pagings_encode(s, &len);
    g_assert_cmpuint(len, <=, TT_PAGINGS_BYTES_MAX);
    back = tt_pagings_decode(bytes, len);
    g_assert_cmpuint(tt_pagings_since(back), ==, 77);
    list = tt_pagings_list(back, &n);
    g_assert_cmpuint(n, ==, 1000);
    for (size_t i = 0; i < n; i++) {
        g_assert_cmphex(list[i].root, ==, i << 12);
        g_assert_cmpuint(list[i].cpu, ==, 1);
        g_assert_cmphex(list[i].mode, ==, LONG_MODE);
    }
    tt_pagings_free(back);
    g_free(bytes);
    for (unsigned i = 0; i < TT_PAGINGS_MAX; i++) {
        p.root = (i + 5000ull) << 12;
        tt_pagings_add(s, &p);
    }
    g_assert_false(tt_pagings_are_known(s));            /* too many */
    bytes = tt_pagings_encode(s, &len);
    back = tt_pagings_decode(bytes, len);
    g_assert_false(tt_pagings_are_known(back));
    tt_pagings_free(back);
    g_free(bytes);
    tt_pagings_begin(s, 99);
    tt_pagings_add(s, &p);
    g_assert_true(tt_pagings_are_known(s));
    tt_pagings_free(s);
}

/* Each byte changed, each length: refused, or what is there is within the bytes. */
static void test_damaged(void)
{
    TtPagings *s = tt_pagings_new();
    g_autofree uint8_t *bytes = NULL;
    uint32_t len;

    tt_pagings_begin(s, 5);
    for (unsigned i = 0; i < 3; i++) {
        tt_pagings_add(s, &(TtPaging) { .root = i, .mode = i });
    }
    bytes = tt_pagings_encode(s, &len);
    tt_pagings_free(s);
    for (uint32_t cut = 0; cut < len; cut++) {
        g_autofree uint8_t *copy = g_memdup2(bytes, cut);

        g_assert_null(tt_pagings_decode(copy, cut));
    }
    for (uint32_t i = 0; i < len * 8; i++) {
        g_autofree uint8_t *copy = g_memdup2(bytes, len);
        size_t n;

        copy[i / 8] ^= 1 << i % 8;
        s = tt_pagings_decode(copy, len);
        if (s && tt_pagings_are_known(s)) {
            tt_pagings_list(s, &n);
            g_assert_cmpuint(n, ==, 3);
        }
        tt_pagings_free(s);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/paging/long-mode", test_long_mode);
    g_test_add_func("/paging/five-levels", test_five_levels);
    g_test_add_func("/paging/narrow-modes", test_narrow_modes);
    g_test_add_func("/paging/set", test_set);
    g_test_add_func("/paging/damaged", test_damaged);
    return g_test_run();
}
