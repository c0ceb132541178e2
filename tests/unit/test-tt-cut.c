/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a run is cut. */
#include "timeline/tt-cut.h"

#include <glib.h>
#include <math.h>

#define N 11

/* Checkpoints every 100 positions, each after so many ns for the interval before it. */
static void make(TtCutPoint *points, const uint64_t ns[N - 1])
{
    uint64_t now = 0;

    for (unsigned i = 0; i < N; i++) {
        now += i ? ns[i - 1] : 0;
        points[i] = (TtCutPoint) { .pos = 100 * i, .host_ns = now };
    }
    tt_cut_weigh(points, N);
}

static void cuts(const TtCutPoint *points, uint64_t from, uint64_t to, unsigned n_parts,
                 const size_t *wanted, size_t n_wanted)
{
    double shares[N];
    size_t out[N];

    g_assert_cmpuint(n_parts, <=, N);
    for (unsigned i = 1; i < n_parts; i++) {
        shares[i - 1] = (double)i / n_parts;
    }
    g_assert_cmpuint(tt_cut_choose(points, N, from, to, shares, n_parts - 1, out), ==,
                     n_wanted);
    for (size_t i = 0; i < n_wanted; i++) {
        g_assert_cmpuint(out[i], ==, wanted[i]);
    }
}

#define CUTS(points, from, to, n_parts, ...) do { \
        const size_t cuts_wanted[] = { __VA_ARGS__ }; \
        cuts(points, from, to, n_parts, cuts_wanted, G_N_ELEMENTS(cuts_wanted)); \
    } while (0)

static void test_alike(void)
{
    const uint64_t ns[N - 1] = { 7, 7, 7, 7, 7, 7, 7, 7, 7, 7 };
    TtCutPoint points[N];

    make(points, ns);
    for (unsigned i = 0; i < N; i++) {
        g_assert_cmpfloat(fabs(points[i].cost - 100.0 * i), <, 1e-6);
    }
    CUTS(points, 0, 1000, 2, 5);
    CUTS(points, 0, 1000, 4, 2, 5, 7);
    CUTS(points, 150, 850, 2, 5);
    CUTS(points, 0, 1000, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    cuts(points, 0, 1000, 1, NULL, 0);
    cuts(points, 401, 499, 4, NULL, 0);
    CUTS(points, 399, 401, 4, 4);
    cuts(points, 400, 500, 2, NULL, 0);
}

/* The last positions take twice as long as the others. */
static void test_by_cost(void)
{
    const uint64_t ns[N - 1] = { 10, 10, 10, 10, 10, 10, 10, 20, 20, 20 };
    TtCutPoint points[N];

    make(points, ns);
    g_assert_cmpfloat(fabs(points[10].cost - 1300), <, 1e-6);
    CUTS(points, 0, 1000, 2, 6);
    CUTS(points, 0, 1000, 4, 3, 6, 8);
    CUTS(points, 300, 1000, 2, 7);
    g_assert_cmpfloat(fabs(tt_cut_cost(points, N, 850) - 1000), <, 1e-6);
    g_assert_cmpfloat(fabs(tt_cut_cost(points, N, 1100) - 1400), <, 1e-6);
}

/* A guest that waited in the middle, for an hour; and a place where it was stopped short. */
static void test_waiting(void)
{
    const uint64_t ns[N - 1] = { 10, 10, 10, 10, 3600000, 10, 10, 1, 10, 10 };
    TtCutPoint points[N];

    make(points, ns);
    g_assert_cmpfloat(fabs(points[5].cost - points[4].cost - 100 * TT_CUT_MOST), <, 1e-6);
    g_assert_cmpfloat(fabs(points[8].cost - points[7].cost - 100.0 / TT_CUT_MOST), <, 1e-6);
    CUTS(points, 0, 1000, 2, 5);
}

/* No times, as in a run of another program; some, and clocks that went back. */
static void test_no_times(void)
{
    const uint64_t ns[N - 1] = { 0 };
    TtCutPoint points[N];

    make(points, ns);
    g_assert_cmpfloat(fabs(points[10].cost - 1000), <, 1e-6);
    CUTS(points, 0, 1000, 4, 2, 5, 7);
    for (unsigned i = 5; i < N; i++) {
        points[i].host_ns = 1000 + 10 * i;
    }
    points[8].host_ns = 5;
    tt_cut_weigh(points, N);
    for (unsigned i = 1; i <= 8; i++) {
        g_assert_cmpfloat(fabs(points[i].cost - 100.0 * i), <, 1e-6);
    }
    g_assert_cmpfloat(fabs(points[9].cost - points[8].cost - 100 * TT_CUT_MOST), <, 1e-6);
    g_assert_cmpfloat(fabs(points[10].cost - points[9].cost - 100), <, 1e-6);
}

static void test_few(void)
{
    TtCutPoint one = { .pos = 500, .host_ns = 3 };
    const double half = 0.5;
    size_t out[1];

    tt_cut_weigh(NULL, 0);
    tt_cut_weigh(&one, 1);
    g_assert_cmpuint(tt_cut_choose(NULL, 0, 0, 1000, &half, 1, out), ==, 0);
    g_assert_cmpuint(tt_cut_choose(&one, 1, 0, 1000, &half, 1, out), ==, 1);
    g_assert_cmpuint(out[0], ==, 0);
    g_assert_cmpuint(tt_cut_choose(&one, 1, 500, 1000, &half, 1, out), ==, 0);
    g_assert_cmpuint(tt_cut_choose(&one, 1, UINT64_MAX, UINT64_MAX, &half, 1, out), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cut/alike", test_alike);
    g_test_add_func("/cut/by-cost", test_by_cost);
    g_test_add_func("/cut/waiting", test_waiting);
    g_test_add_func("/cut/no-times", test_no_times);
    g_test_add_func("/cut/few", test_few);
    return g_test_run();
}
