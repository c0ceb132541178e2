/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Touched pages: "no" is said only where it is true, and is said at all. */
#include "timeline/tt-touched.h"

#include <glib.h>

#define LEN TT_TOUCHED_LENGTH

static bool may(TtTouched *t, uint64_t from, uint64_t to, uint64_t page,
                bool written)
{
    return tt_touched_may(t, from, to, page, page, written);
}

static void test_nothing_known(void)
{
    TtTouched *t = tt_touched_new(8);

    g_assert_true(may(t, 0, 10, 5, false));
    tt_touched_add(t, 5, true);             /* before begin: not kept */
    tt_touched_note(t, 10);
    g_assert_true(may(t, 0, 10, 6, false));
    tt_touched_begin(t, 0);
    tt_touched_note(t, 9);
    g_assert_true(may(t, 0, 10, 6, false)); /* one position is missing */
    tt_touched_note(t, 10);
    g_assert_false(may(t, 0, 10, 6, false));
    g_assert_false(may(t, 3, 7, 6, false));
    tt_touched_free(t);
}

static void test_used_and_written(void)
{
    TtTouched *t = tt_touched_new(8);

    tt_touched_begin(t, 100);
    tt_touched_add(t, 5, false);
    tt_touched_add(t, 6, true);
    tt_touched_note(t, 200);
    g_assert_true(may(t, 100, 200, 5, false));
    g_assert_false(may(t, 100, 200, 5, true));
    g_assert_true(may(t, 100, 200, 6, false));
    g_assert_true(may(t, 100, 200, 6, true));
    g_assert_true(tt_touched_may(t, 100, 200, 1, 5, false));
    g_assert_false(tt_touched_may(t, 100, 200, 1, 4, false));
    g_assert_true(tt_touched_may(t, 100, 200, 1, 2000, false));    /* many */
    tt_touched_add(t, 5, true);             /* later, in the same stretch */
    tt_touched_note(t, 201);
    g_assert_true(may(t, 100, 201, 5, true));
    tt_touched_free(t);
}

/* What follows a movement is a stretch of its own. */
static void test_movements(void)
{
    TtTouched *t = tt_touched_new(8);

    tt_touched_begin(t, 0);
    tt_touched_add(t, 1, true);
    tt_touched_note(t, 100);
    tt_touched_end(t);
    tt_touched_add(t, 9, true);
    tt_touched_note(t, 300);
    g_assert_true(may(t, 0, 300, 5, true));         /* 100..300: unknown */
    tt_touched_begin(t, 50);
    tt_touched_add(t, 2, true);
    tt_touched_note(t, 150);
    g_assert_false(may(t, 0, 150, 5, true));
    g_assert_true(may(t, 0, 150, 1, true));
    g_assert_true(may(t, 0, 150, 2, true));
    g_assert_false(may(t, 110, 150, 1, true));
    g_assert_false(may(t, 0, 40, 2, true));
    tt_touched_begin(t, 150);                       /* forgets nothing noted */
    g_assert_true(may(t, 100, 150, 2, true));
    g_assert_true(may(t, 100, 151, 7, true));
    tt_touched_free(t);
}

static void test_fences(void)
{
    TtTouched *t = tt_touched_new(100);

    tt_touched_sync_point(t, 0);                         /* begins */
    tt_touched_add(t, 1, true);
    tt_touched_sync_point(t, LEN / 2);                   /* the same one goes on */
    tt_touched_add(t, 2, true);
    tt_touched_sync_point(t, LEN);                       /* the next one */
    tt_touched_add(t, 3, true);
    tt_touched_sync_point(t, 2 * LEN);
    g_assert_true(may(t, 0, LEN, 1, true));
    g_assert_true(may(t, 0, LEN / 2, 2, true));
    g_assert_false(may(t, 0, LEN, 3, true));
    g_assert_false(may(t, LEN, 2 * LEN, 1, true));
    g_assert_true(may(t, LEN, 2 * LEN, 3, true));
    tt_touched_free(t);
}

/* Against a plain list of what was touched when: random runs and movements, more
 * stretches than may be kept. */
static void test_random(void)
{
    enum { PAGES = 50, SLOTS = 400 };
    static bool used[SLOTS][PAGES], written[SLOTS][PAGES];
    TtTouched *t = tt_touched_new(16);
    unsigned noes = 0;
    uint64_t pos = 0;

    memset(used, 0, sizeof(used));
    memset(written, 0, sizeof(written));
    for (unsigned i = 0; i < SLOTS; i++) {      /* the run: always the same */
        for (unsigned n = 0; n < 3; n++) {
            unsigned page = g_test_rand_int_range(0, PAGES);

            used[i][page] = true;
            written[i][page] |= g_test_rand_bit();
        }
    }
    for (unsigned round = 0; round < 3000; round++) {
        uint64_t end = pos + g_test_rand_int_range(1, 40);

        if (round % 3 == 0 || end > SLOTS) {
            tt_touched_end(t);
            pos = g_test_rand_int_range(0, SLOTS - 40);
            tt_touched_begin(t, pos * (LEN / 4));
            end = pos + g_test_rand_int_range(1, 40);
        }
        for (; pos < end; pos++) {
            for (unsigned page = 0; page < PAGES; page++) {
                if (used[pos][page]) {
                    tt_touched_add(t, page * 977, written[pos][page]);
                }
            }
            tt_touched_sync_point(t, (pos + 1) * (LEN / 4));
        }
        tt_touched_note(t, pos * (LEN / 4));
        for (unsigned q = 0; q < 20; q++) {
            unsigned a = g_test_rand_int_range(0, SLOTS - 1);
            unsigned b = a + g_test_rand_int_range(1, 20);
            unsigned page = g_test_rand_int_range(0, PAGES);
            bool w = g_test_rand_bit(), was = false;

            b = MIN(b, SLOTS);
            for (unsigned i = a; i < b; i++) {
                was |= w ? written[i][page] : used[i][page];
            }
            if (!may(t, a * (LEN / 4), b * (LEN / 4), page * 977, w)) {
                g_assert_false(was);
                noes++;
            }
        }
    }
    g_assert_cmpuint(noes, >, 1000);
    tt_touched_free(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/touched/unknown-means-yes", test_nothing_known);
    g_test_add_func("/tt/touched/used-and-written", test_used_and_written);
    g_test_add_func("/tt/touched/movements", test_movements);
    g_test_add_func("/tt/touched/fences", test_fences);
    g_test_add_func("/tt/touched/never-a-wrong-no", test_random);
    return g_test_run();
}
