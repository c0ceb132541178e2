/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bisection: it finds the first position, whatever it is, wherever checkpoints are and
 * whatever positions cannot be stood at, with few looks and little between checkpoints. */
#include "timeline/tt-bisect.h"

#include <glib.h>

typedef struct World {
    uint64_t low, high;
    uint64_t truth;             /* true from here on */
    bool holes[300];            /* nobody can stand there */
    uint64_t points[16];
    size_t n_points;
} World;

static uint64_t stand(const World *w, uint64_t pos)
{
    while (pos < w->high && w->holes[pos]) {
        pos++;
    }
    return pos;
}

static unsigned search(const World *w, uint64_t *answer)
{
    unsigned n = 0;
    uint64_t wanted;
    TtBisect b;

    tt_bisect_begin(&b, w->low, w->high, w->points, w->n_points);
    while (tt_bisect_next(&b, &wanted)) {
        uint64_t pos = stand(w, wanted);

        g_assert_cmpuint(wanted, >, w->low);
        g_assert_cmpuint(wanted, <, w->high);
        tt_bisect_take(&b, wanted, pos, pos >= w->truth);
        g_assert_cmpuint(++n, <, 64);
    }
    *answer = b.high;
    return n;
}

static void test_random(void)
{
    for (unsigned round = 0; round < 20000; round++) {
        World w = { .low = g_test_rand_int_range(0, 100) };
        uint64_t answer;

        w.high = g_test_rand_int_range(w.low + 1, 300);
        w.truth = g_test_rand_int_range(w.low + 1, w.high + 1);
        for (uint64_t p = w.low + 1; p < w.high; p++) {
            w.holes[p] = g_test_rand_int_range(0, 4) == 0;
        }
        for (uint64_t p = 0; p < 300 && w.n_points < G_N_ELEMENTS(w.points); p++) {
            if (!w.holes[p] && g_test_rand_int_range(0, 20) == 0) {
                w.points[w.n_points++] = p;
            }
        }
        search(&w, &answer);
        g_assert_cmpuint(answer, ==, stand(&w, w.truth));
    }
}

static void test_checkpoints_first(void)
{
    static const uint64_t points[] = { 100, 200, 300, 400, 500, 600, 700, 800 };
    uint64_t pos;
    TtBisect b;

    tt_bisect_begin(&b, 0, 1000, points, G_N_ELEMENTS(points));
    for (unsigned looks = 0; looks < 4 && tt_bisect_next(&b, &pos); looks++) {
        if (pos % 100) {
            break;
        }
        tt_bisect_take(&b, pos, pos, pos >= 433);
    }
    g_assert_cmpuint(b.low, ==, 400);
    g_assert_cmpuint(b.high, ==, 500);
    g_assert_true(tt_bisect_next(&b, &pos));
    g_assert_cmpuint(pos, ==, 450);
}

static void test_few_looks(void)
{
    World w = { .low = 0, .high = 256, .truth = 77 };
    uint64_t answer;

    g_assert_cmpuint(search(&w, &answer), <=, 8);
    g_assert_cmpuint(answer, ==, 77);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/bisect/finds-the-first", test_random);
    g_test_add_func("/tt/bisect/checkpoints-first", test_checkpoints_first);
    g_test_add_func("/tt/bisect/few-looks", test_few_looks);
    return g_test_run();
}
