/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Near checkpoints: walks backwards execute little, and leave few behind. */
#include "timeline/tt-near.h"

#include <glib.h>

typedef struct Walk {
    GArray *at;                 /* checkpoints, ascending; the first is a sync point's */
    uint64_t executed, taken;
} Walk;

static uint64_t last_of(const Walk *w)
{
    return g_array_index(w->at, uint64_t, w->at->len - 1);
}

/* Restores the checkpoint before @target and goes there, as glue does. */
static uint64_t go(Walk *w, uint64_t target)
{
    uint64_t pos, next;

    while (last_of(w) > target) {
        g_array_set_size(w->at, w->at->len - 1);
    }
    pos = last_of(w);
    w->executed += target - pos;
    while ((next = tt_near_next(pos, target))) {
        g_assert_true(next > pos && next < target);
        g_assert_cmpuint(target - next, >=, TT_NEAR_LAST);
        g_assert_cmpuint(target - next, <=, TT_NEAR_FIRST);
        g_array_append_val(w->at, next);
        w->taken++;
        pos = next;
    }
    return target - pos;
}

static void walk(uint64_t start, uint64_t from, uint64_t step, unsigned steps)
{
    Walk w = { .at = g_array_new(false, false, sizeof(uint64_t)) };

    g_array_append_val(w.at, start);
    go(&w, from);
    w.executed = 0;
    for (unsigned i = 1; i <= steps; i++) {
        go(&w, from - i * step);
    }
    /* What lies between two of them is executed by those in between. */
    g_assert_cmpuint(w.executed / steps, <,
                     2 * TT_NEAR_LAST * TT_NEAR_FACTOR + 16 * step);
    g_assert_cmpuint(w.taken, <, 8 + 2 * step * steps / TT_NEAR_LAST);
    g_array_unref(w.at);
}

static void test_walks(void)
{
    walk(8388608, 16777000, 1, 100000);
    walk(8388608, 8388608 + 70000, 1, 60000);
    walk(0, 8388607, 37, 100000);
    walk(0, (1ull << 23) - 1, 1000, 8000);     /* all of an interval between sync points */
}

static void test_first(void)
{
    Walk w = { .at = g_array_new(false, false, sizeof(uint64_t)) };
    uint64_t start = 1000;

    g_array_append_val(w.at, start);
    g_assert_cmpuint(go(&w, 1000 + (1ull << 23)), <=, TT_NEAR_FACTOR * TT_NEAR_LAST);
    g_assert_cmpuint(w.taken, ==, 4);
    g_assert_cmpuint(tt_near_next(5, 5), ==, 0);
    g_assert_cmpuint(tt_near_next(6, 5), ==, 0);
    g_assert_cmpuint(tt_near_next(0, TT_NEAR_FACTOR * TT_NEAR_LAST - 1), ==, 0);
    g_assert_cmpuint(tt_near_next(0, UINT64_MAX), ==, UINT64_MAX - TT_NEAR_FIRST);
    g_array_unref(w.at);
}

static void test_worst(void)
{
    const uint64_t at[] = { 900, 100, 500, 1100 };

    g_assert_cmpuint(tt_near_worst(at, 4, 1000), ==, 1);
    g_assert_cmpuint(tt_near_worst(at, 4, 200), ==, 3);
    g_assert_cmpuint(tt_near_worst(at, 1, 0), ==, 0);
    g_assert_cmpuint(tt_near_worst(at, 4, UINT64_MAX), ==, 1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/near/walks", test_walks);
    g_test_add_func("/near/first", test_first);
    g_test_add_func("/near/worst", test_worst);
    return g_test_run();
}
