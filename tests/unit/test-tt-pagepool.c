/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the page pool, with a hash so weak that different pages
 * collide all the time: only the comparison of bytes may decide.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

static XXH128_hash_t weak_hash(const void *bytes, size_t len)
{
    XXH128_hash_t h = { .low64 = ((const unsigned char *)bytes)[len - 1] % 16 };

    return h;
}

#undef XXH3_128bits
#define XXH3_128bits weak_hash
#include "tt-pagepool.c"

/* Page number @n: differs from the others in one byte or two. */
static const uint8_t *page(unsigned n)
{
    static uint8_t p[TT_PAGE_BYTES];

    memset(p, 0x5a, sizeof(p));
    p[0] = n;
    p[TT_PAGE_BYTES - 1] = n >> 8;
    return p;
}

static void test_collisions_are_told_apart(void)
{
    enum { N = 2000 };
    TtPageMem mem = { 0 };
    TtPagePool *pool = tt_pagepool_new(&mem);
    TtVersion v[N], again;

    for (unsigned i = 0; i < N; i++) {
        g_assert_true(tt_pagepool_intern(pool, page(i), &v[i]));
    }
    g_assert_cmpuint(tt_pagepool_count(pool), ==, N);
    tt_pagepool_check(pool);
    for (unsigned i = 0; i < N; i++) {
        g_assert_true(tt_pagepool_intern(pool, page(i), &again));
        g_assert_cmpuint(again, ==, v[i]);
        g_assert_cmpuint(tt_pagepool_refs(pool, again), ==, 2);
        g_assert(!memcmp(tt_pagepool_bytes(pool, v[i]), page(i),
                         TT_PAGE_BYTES));
        tt_pagepool_unref(pool, again);
    }
    for (unsigned i = 0; i < N; i += 2) {
        tt_pagepool_unref(pool, v[i]);
    }
    tt_pagepool_check(pool);
    for (unsigned i = 1; i < N; i += 2) {
        g_assert(!memcmp(tt_pagepool_bytes(pool, v[i]), page(i),
                         TT_PAGE_BYTES));
        tt_pagepool_ref(pool, v[i]);
        tt_pagepool_unref(pool, v[i]);
        tt_pagepool_unref(pool, v[i]);
    }
    g_assert_cmpuint(tt_pagepool_count(pool), ==, 0);
    tt_pagepool_free(pool);
    g_assert_cmpuint(mem.held_bytes, ==, 0);
}

static void test_zero_page_is_version_zero(void)
{
    uint8_t *zero = g_malloc0(TT_PAGE_BYTES + 1);
    TtPageMem mem = { 0 };
    TtPagePool *pool = tt_pagepool_new(&mem);
    TtVersion v = 99;

    g_assert_true(tt_pagepool_intern(pool, zero, &v));
    g_assert_cmpuint(v, ==, TT_VERSION_ZERO);
    g_assert_null(tt_pagepool_bytes(pool, v));
    tt_pagepool_ref(pool, v);
    tt_pagepool_unref(pool, v);
    for (unsigned i = 0; i < TT_PAGE_BYTES; i++) {
        zero[i] = 1;
        g_assert_true(tt_pagepool_intern(pool, zero, &v));
        g_assert_cmpuint(v, !=, TT_VERSION_ZERO);
        tt_pagepool_unref(pool, v);
        zero[i] = 0;
    }
    /* A page need not be aligned. */
    g_assert_true(tt_pagepool_intern(pool, zero + 1, &v));
    g_assert_cmpuint(v, ==, TT_VERSION_ZERO);
    zero[17] = 1;
    g_assert_true(tt_pagepool_intern(pool, zero + 1, &v));
    g_assert(!memcmp(tt_pagepool_bytes(pool, v), zero + 1, TT_PAGE_BYTES));
    tt_pagepool_free(pool);
    g_assert_cmpuint(mem.held_bytes, ==, 0);
    g_free(zero);
}

static void test_emptied_slabs_go_but_for_a_reserve(void)
{
    enum { SLABS = 10, N = SLABS * TT_SLAB_ITEMS };
    TtPageMem mem = { 0 };
    TtPagePool *pool = tt_pagepool_new(&mem);
    TtVersion *v = g_new(TtVersion, N), extra;
    uint64_t full;

    for (unsigned i = 0; i < N; i++) {
        g_assert_true(tt_pagepool_intern(pool, page(i), &v[i]));
    }
    full = mem.held_bytes;
    g_assert_cmpuint(pool->frames.n_live, ==, SLABS);
    for (unsigned i = 0; i < N; i++) {
        tt_pagepool_unref(pool, v[i]);
    }
    tt_pagepool_check(pool);
    g_assert_cmpuint(pool->frames.n_live, <=, SLABS / TT_SLAB_RESERVE_SHARE + 1);
    g_assert_cmpuint(mem.held_bytes, <, full / 4);
    /* Numbers of slabs that went are used again. */
    for (unsigned i = 0; i < N; i++) {
        g_assert_true(tt_pagepool_intern(pool, page(i), &v[i]));
    }
    g_assert_cmpuint(pool->frames.n_slabs, <=, pool->frames.cap_slabs);
    g_assert_cmpuint(pool->frames.n_live, ==, SLABS);
    /* The next slab needs memory, and there is none. */
    mem.fail_in = 1;
    g_assert_false(tt_pagepool_intern(pool, page(N), &extra));
    tt_pagepool_check(pool);
    g_assert_cmpuint(tt_pagepool_count(pool), ==, N);
    tt_pagepool_free(pool);
    g_assert_cmpuint(mem.held_bytes, ==, 0);
    g_free(v);
}

/* Packed pages are found by content, read, dropped and packed again. */
static void test_pack(void)
{
    enum { N = 3000 };
    TtPageMem mem = { 0 };
    TtPagePool *pool = tt_pagepool_new(&mem);
    TtVersion v[N], again, dense;
    uint8_t noise[TT_PAGE_BYTES];
    const void *bytes;

    for (unsigned i = 0; i < N; i++) {
        g_assert_true(tt_pagepool_intern(pool, page(i), &v[i]));
    }
    for (unsigned i = 0, x = 1; i < sizeof(noise); i++) {
        x = x * 1103515245 + 12345;
        noise[i] = x >> 16;
    }
    g_assert_true(tt_pagepool_intern(pool, noise, &dense));
    tt_pagepool_pack(pool, N / 2 * TT_PAGE_BYTES, UINT64_MAX);
    tt_pagepool_check(pool);
    g_assert_cmpuint(tt_pagepool_stats(pool).pending_bytes, ==,
                     N / 2 * TT_PAGE_BYTES);
    g_assert_cmpuint(tt_pagepool_stats(pool).cached_bytes, ==,
                     (N + 1) * TT_PAGE_BYTES);
    tt_pagepool_pack(pool, 0, 0);
    tt_pagepool_check(pool);
    g_assert_cmpuint(tt_pagepool_stats(pool).cached_bytes, ==, TT_PAGE_BYTES);
    g_assert_cmpuint(tt_pagepool_stats(pool).packed_bytes, <, N * 64);
    g_assert_nonnull(tt_pagepool_bytes(pool, dense));
    g_assert_cmpuint(mem.held_bytes, <, N * TT_PAGE_BYTES / 2);
    for (unsigned i = 0; i < N; i += 3) {
        g_assert_true(tt_pagepool_intern(pool, page(i), &again));
        g_assert_cmpuint(again, ==, v[i]);
        tt_pagepool_unref(pool, again);
        g_assert_cmpint(tt_pagepool_read(pool, v[i], &bytes), ==, TT_OK);
        g_assert(!memcmp(bytes, page(i), TT_PAGE_BYTES));
    }
    tt_pagepool_check(pool);
    g_assert_cmpuint(tt_pagepool_stats(pool).pending_bytes, ==, TT_PAGE_BYTES);
    tt_pagepool_pack(pool, 0, 0);
    for (unsigned i = 0; i < N; i += 2) {
        tt_pagepool_unref(pool, v[i]);
    }
    tt_pagepool_check(pool);
    mem.fail_in = 1;                /* no memory: nothing is lost */
    tt_pagepool_pack(pool, 0, 0);
    mem.fail_in = 0;
    for (unsigned i = 1; i < N; i += 2) {
        g_assert_cmpint(tt_pagepool_read(pool, v[i], &bytes), ==, TT_OK);
        g_assert(!memcmp(bytes, page(i), TT_PAGE_BYTES));
    }
    tt_pagepool_check(pool);
    tt_pagepool_free(pool);         /* with packs in it */
    g_assert_cmpuint(mem.held_bytes, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/pagepool/collisions-are-told-apart",
                    test_collisions_are_told_apart);
    g_test_add_func("/tt/pagepool/zero-page-is-version-zero",
                    test_zero_page_is_version_zero);
    g_test_add_func("/tt/pagepool/emptied-slabs-go-but-for-a-reserve",
                    test_emptied_slabs_go_but_for_a_reserve);
    g_test_add_func("/tt/pagepool/pack", test_pack);
    return g_test_run();
}
