/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fate of frames in a hub: from the seed alone, and as often as asked for. */
#include "net-tt/tt-shape.h"

#include <glib.h>

static void test_seed(void)
{
    g_autofree TtShape *a = g_new0(TtShape, 1), *b = g_new0(TtShape, 1);
    unsigned lost = 0, differs = 0;

    a->o = (TtShapeOptions) { .seed = 1, .loss_ppm = 100000, .delay_ns = 1000,
                              .jitter_ns = 500 };
    b->o = a->o;
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t n = tt_shape_came(a, 3), at = 0, other = 0;
        TtFate f = tt_shape_fate(a, 3, n, 5, 60, 7000, &at);

        g_assert_cmpuint(n, ==, i);
        /* Other ports and other times change nothing. */
        tt_shape_came(b, 4);
        g_assert_cmpint(tt_shape_fate(b, 3, n, 5, 1500, 7000, &other), ==, f);
        g_assert_cmpuint(at, ==, other);
        lost += f == TT_FATE_LOST;
        g_assert_true(f == TT_FATE_LOST || (at >= 8000 && at <= 8500));
        b->o.seed = 2;
        differs += tt_shape_fate(b, 3, n, 5, 60, 7000, &other) != f;
        b->o.seed = 1;
    }
    g_assert_cmpuint(lost, >, 800);
    g_assert_cmpuint(lost, <, 1200);
    g_assert_cmpuint(differs, >, 1000);
    a->o.loss_ppm = TT_SHAPE_PPM;
    g_assert_cmpint(tt_shape_fate(a, 0, 0, 1, 60, 0, &(uint64_t) { 0 }), ==,
                    TT_FATE_LOST);
}

static void test_rate(void)
{
    g_autofree TtShape *s = g_new0(TtShape, 1);
    uint64_t at = 0, n = 0;

    /* 1500 bytes at 12 Mbit/s are a millisecond. */
    s->o = (TtShapeOptions) { .rate_bits = 12000000, .queue_ns = 4500000 };
    for (unsigned i = 1; i <= 5; i++) {
        g_assert_cmpint(tt_shape_fate(s, 0, n++, 1, 1500, 0, &at), ==, TT_FATE_GOES);
        g_assert_cmpuint(at, ==, i * 1000000);
    }
    g_assert_cmpint(tt_shape_fate(s, 0, n++, 1, 1500, 0, &at), ==, TT_FATE_QUEUE_FULL);
    g_assert_cmpint(tt_shape_fate(s, 0, n++, 2, 1500, 0, &at), ==, TT_FATE_GOES);
    g_assert_cmpuint(at, ==, 1000000);
    g_assert_cmpint(tt_shape_fate(s, 0, n++, 1, 1500, 9000000, &at), ==, TT_FATE_GOES);
    g_assert_cmpuint(at, ==, 10000000);
    tt_shape_left(s, 1);                    /* another's port does not wait for that */
    g_assert_cmpint(tt_shape_fate(s, 0, n++, 1, 1500, 0, &at), ==, TT_FATE_GOES);
    g_assert_cmpuint(at, ==, 1000000);
}

static void test_places(void)
{
    g_autofree TtPlaces *p = g_new0(TtPlaces, 1);
    uint8_t ab[14] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 };
    uint8_t ba[14] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2 };
    uint8_t all[14] = { 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1 };

    g_assert_cmpuint(tt_places_pass(p, ab, 7), ==, TT_PORT_ALL);
    g_assert_cmpuint(tt_places_pass(p, ba, 9), ==, 7);
    g_assert_cmpuint(tt_places_pass(p, ab, 7), ==, 9);
    g_assert_cmpuint(tt_places_pass(p, all, 7), ==, TT_PORT_ALL);
    tt_places_forget(p, 9);
    g_assert_cmpuint(tt_places_pass(p, ab, 7), ==, TT_PORT_ALL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/shape/follows-the-seed", test_seed);
    g_test_add_func("/tt/shape/keeps-the-rate", test_rate);
    g_test_add_func("/tt/shape/learns-places", test_places);
    return g_test_run();
}
