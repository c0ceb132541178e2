/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Aligned sequences, against the longest common subsequence by brute force. */
#include "trace/tt-align.h"

#include <glib.h>
#include <string.h>

#define N_MAX 40

/* Elements that only one side has, at least. */
static unsigned least(const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m)
{
    static unsigned t[N_MAX + 1][N_MAX + 1];

    for (uint32_t i = 0; i <= n; i++) {
        for (uint32_t j = 0; j <= m; j++) {
            t[i][j] = !i ? j : !j ? i : a[i - 1] == b[j - 1] ? t[i - 1][j - 1] :
                1 + MIN(t[i - 1][j], t[i][j - 1]);
        }
    }
    return t[n][m];
}

/* Between the hunks both are the same, and each hunk has something. Returns how many
 * elements are in them. */
static unsigned check_hunks(const TtHunk *hunks, uint32_t n_hunks, const uint32_t *a,
                            uint32_t n, const uint32_t *b, uint32_t m)
{
    uint32_t x = 0, y = 0;
    unsigned sum = 0;

    for (uint32_t i = 0; i <= n_hunks; i++) {
        TtHunk h = { n, 0, m, 0 };

        if (i < n_hunks) {
            h = hunks[i];
            g_assert_cmpuint(h.n_a + h.n_b, >, 0);
            g_assert_true(!i || h.a > x);
        }
        g_assert_cmpuint(h.a, >=, x);
        g_assert_cmpuint(h.a - x, ==, h.b - y);
        for (; x < h.a; x++, y++) {
            g_assert_cmpuint(a[x], ==, b[y]);
        }
        x += h.n_a;
        y += h.n_b;
        sum += h.n_a + h.n_b;
    }
    g_assert_cmpuint(x, ==, n);
    g_assert_cmpuint(y, ==, m);
    return sum;
}

static void fill(uint32_t *to, uint32_t n, unsigned letters)
{
    for (uint32_t i = 0; i < n; i++) {
        to[i] = g_test_rand_int_range(0, letters);
    }
}

static void test_random(void)
{
    for (unsigned i = 0; i < 20000; i++) {
        uint32_t a[N_MAX], b[N_MAX];
        uint32_t n = g_test_rand_int_range(0, N_MAX + 1);
        uint32_t m = g_test_rand_int_range(0, N_MAX + 1);
        unsigned letters = g_test_rand_int_range(1, 8);
        TtHunk *hunks;
        uint32_t n_hunks;

        fill(a, n, letters);
        fill(b, m, letters);
        n_hunks = tt_align(a, n, b, m, 2 * N_MAX, &hunks);
        g_assert_cmpuint(check_hunks(hunks, n_hunks, a, n, b, m), ==, least(a, n, b, m));
        g_free(hunks);
    }
}

static void test_too_many(void)
{
    static const uint32_t a[] = { 1, 2, 3, 4, 5, 9 }, b[] = { 1, 6, 7, 8, 9 };
    TtHunk *hunks;

    g_assert_cmpuint(tt_align(a, 6, b, 5, 3, &hunks), ==, 1);
    g_assert_cmpuint(check_hunks(hunks, 1, a, 6, b, 5), ==, 7);
    g_free(hunks);
}

static void test_long(void)
{
    enum { N = 1000000 };
    g_autofree uint32_t *a = g_new(uint32_t, N), *b = g_new(uint32_t, N);
    uint32_t n_hunks;
    TtHunk *hunks;

    fill(a, N, 1000);
    memcpy(b, a, N * sizeof(*a));
    for (unsigned i = 0; i < 100; i++) {
        b[10000 * i + 5] = 5000 + i;
    }
    n_hunks = tt_align(a, N, b, N, 4000, &hunks);
    g_assert_cmpuint(check_hunks(hunks, n_hunks, a, N, b, N), ==, 200);
    g_free(hunks);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/align/like-brute-force", test_random);
    g_test_add_func("/tt/align/too-many-differences", test_too_many);
    g_test_add_func("/tt/align/long", test_long);
    return g_test_run();
}
