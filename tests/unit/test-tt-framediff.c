/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two lists of frames, against a count of each content one by one. */
#include "net-tt/tt-framediff.h"

#include <glib.h>

#define FRAMES_MAX 60

static bool is_equal(TtFrameSeen a, TtFrameSeen b)
{
    return a.hash == b.hash && a.len == b.len;
}

/* How many of the first @n are @f. */
static uint32_t count(const TtFrameSeen *list, uint32_t n, TtFrameSeen f)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < n; i++) {
        found += is_equal(list[i], f);
    }
    return found;
}

/* Of each content the first ones are the same, as many as the other list has. */
static bool is_left(const TtFrameSeen *list, uint32_t i, const TtFrameSeen *other,
                    uint32_t n_other)
{
    return count(list, i, list[i]) >= count(other, n_other, list[i]);
}

static void fill(GRand *rand, TtFrameSeen *list, uint32_t *n, uint32_t kinds)
{
    *n = g_rand_int_range(rand, 0, FRAMES_MAX + 1);
    for (uint32_t i = 0; i < *n; i++) {
        list[i].hash = g_rand_int_range(rand, 0, kinds);
        list[i].len = g_rand_int_range(rand, 60, 62);
    }
}

static void check_pairs(const TtFrameDiff *d, const TtFrameSeen *was, uint32_t n_was,
                        const TtFrameSeen *is, uint32_t n_is)
{
    uint32_t i = 0, k = 0, p;

    for (p = 0; p < d->n_pairs; p++) {
        while (i < n_was && !is_left(was, i, is, n_is)) {
            i++;
        }
        while (k < n_is && !is_left(is, k, was, n_was)) {
            k++;
        }
        g_assert_cmpuint(d->pairs[p].was, ==, i < n_was ? i++ : TT_FRAMEDIFF_NONE);
        g_assert_cmpuint(d->pairs[p].is, ==, k < n_is ? k++ : TT_FRAMEDIFF_NONE);
    }
    g_assert_cmpuint(d->same + d->changed + d->missing, ==, n_was);
    g_assert_cmpuint(d->same + d->changed + d->more, ==, n_is);
    g_assert_cmpuint(d->changed + d->missing + d->more, ==, d->n_pairs);
    g_assert_true(!d->missing || !d->more);
}

static void test_random(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(20);
    TtFrameSeen was[FRAMES_MAX], is[FRAMES_MAX];

    for (unsigned round = 0; round < 20000; round++) {
        uint32_t n_was, n_is, same = 0, kinds = 1 + round % 50;
        TtFrameDiff d;

        fill(rand, was, &n_was, kinds);
        fill(rand, is, &n_is, kinds);
        for (uint32_t i = 0; i < n_was; i++) {
            same += !is_left(was, i, is, n_is);
        }
        tt_framediff(&d, was, n_was, is, n_is);
        g_assert_cmpuint(d.same, ==, same);
        check_pairs(&d, was, n_was, is, n_is);
        tt_framediff_cleanup(&d);
    }
}

static void test_order(void)
{
    static const TtFrameSeen was[] = { { 1, 60 }, { 2, 60 }, { 3, 60 }, { 4, 60 } };
    static const TtFrameSeen is[] = { { 2, 60 }, { 1, 60 }, { 9, 60 }, { 4, 60 }, { 5, 60 } };
    TtFrameDiff d;

    tt_framediff(&d, was, 4, is, 5);
    g_assert_cmpuint(d.same, ==, 3);
    g_assert_cmpuint(d.n_pairs, ==, 2);
    g_assert_cmpuint(d.pairs[0].was, ==, 2);
    g_assert_cmpuint(d.pairs[0].is, ==, 2);
    g_assert_cmpuint(d.pairs[1].was, ==, TT_FRAMEDIFF_NONE);
    g_assert_cmpuint(d.pairs[1].is, ==, 4);
    g_assert_cmpuint(d.more, ==, 1);
    tt_framediff_cleanup(&d);
    tt_framediff(&d, NULL, 0, NULL, 0);
    g_assert_cmpuint(d.n_pairs, ==, 0);
    tt_framediff_cleanup(&d);
}

static void test_byte(void)
{
    static const uint8_t a[] = "frame one", b[] = "frame two";

    g_assert_cmpuint(tt_framediff_byte(a, 9, b, 9), ==, 6);
    g_assert_cmpuint(tt_framediff_byte(a, 9, a, 7), ==, 7);
    g_assert_cmpuint(tt_framediff_byte(a, 9, a, 9), ==, 9);
    g_assert_cmpuint(tt_framediff_byte(a, 0, b, 9), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/framediff/random", test_random);
    g_test_add_func("/framediff/order", test_order);
    g_test_add_func("/framediff/byte", test_byte);
    return g_test_run();
}
