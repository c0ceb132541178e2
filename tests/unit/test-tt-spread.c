/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Positions that stand for a run. */
#include "timeline/tt-spread.h"

#include <glib.h>

#define MAX 8

static void is(const uint64_t *named, size_t n, uint64_t from, uint64_t to, size_t max,
               const uint64_t *wanted, size_t n_wanted)
{
    uint64_t out[MAX + 1];

    g_assert_cmpuint(max, <=, MAX);
    out[max] = 77;
    g_assert_cmpuint(tt_spread(named, n, from, to, out, max), ==, n_wanted);
    for (size_t i = 0; i < n_wanted; i++) {
        g_assert_cmpuint(out[i], ==, wanted[i]);
    }
    g_assert_cmpuint(out[max], ==, 77);
}

#define IS(named, from, to, max, ...) do { \
        const uint64_t is_wanted[] = { __VA_ARGS__ }; \
        is(named, G_N_ELEMENTS(named), from, to, max, is_wanted, \
           G_N_ELEMENTS(is_wanted)); \
    } while (0)

static void test_evenly(void)
{
    const uint64_t none[] = { 5000 };       /* is not in there */

    IS(none, 0, 800, 1, 800);
    IS(none, 0, 800, 2, 400, 800);
    IS(none, 0, 800, 4, 200, 400, 600, 800);
    IS(none, 100, 900, 4, 300, 500, 700, 900);
    is(NULL, 0, 0, 800, 0, NULL, 0);
    is(NULL, 0, 9, 8, 4, NULL, 0);
}

static void test_named(void)
{
    const uint64_t two[] = { 700, 100, 700, 2000 };

    IS(two, 0, 800, 2, 100, 700);
    IS(two, 0, 800, 3, 100, 700, 800);
    IS(two, 0, 800, 4, 100, 400, 700, 800);
    IS(two, 0, 800, 6, 100, 250, 400, 550, 700, 800);
}

static void test_too_many(void)
{
    const uint64_t many[] = { 90, 80, 70, 60, 50, 40, 30, 20, 10 };

    IS(many, 0, 100, 1, 90);
    IS(many, 0, 100, 2, 10, 90);
    IS(many, 0, 100, 3, 10, 50, 90);
    IS(many, 0, 100, 5, 10, 30, 50, 70, 90);
}

/* A run of three positions has no more pictures than that. */
static void test_short(void)
{
    const uint64_t end[] = { 3 };

    IS(end, 0, 3, 8, 1, 2, 3);
    IS(end, 3, 3, 8, 3);
}

static void test_far(void)
{
    const uint64_t ends[] = { 0, UINT64_MAX };

    IS(ends, 0, UINT64_MAX, 3, 0, UINT64_MAX / 2, UINT64_MAX);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spread/evenly", test_evenly);
    g_test_add_func("/spread/named", test_named);
    g_test_add_func("/spread/too-many", test_too_many);
    g_test_add_func("/spread/short", test_short);
    g_test_add_func("/spread/far", test_far);
    return g_test_run();
}
