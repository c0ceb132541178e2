/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kinds of sentences: each has its own time, and many kinds share one place. */
#include "net-tt/tt-said.h"

#include <glib.h>

static const char names[2 * TT_SAID_KINDS][2];

/* While others like it come the pause doubles; after a quiet one it is the first again. */
static void test_pauses(void)
{
    TtSaid kinds[TT_SAID_KINDS] = { 0 }, *s = tt_said_of(kinds, names[0]);

    g_assert_true(tt_said_is_due(s, -7));
    g_assert_cmpuint(tt_said_now(s, 100, 10, 25), ==, 0);
    g_assert_false(tt_said_is_due(s, 109));
    s->n_unsaid += 3;
    g_assert_true(tt_said_is_due(s, 110));
    g_assert_cmpuint(tt_said_now(s, 110, 10, 25), ==, 3);
    g_assert_false(tt_said_is_due(s, 129));
    s->n_unsaid++;
    g_assert_cmpuint(tt_said_now(s, 130, 10, 25), ==, 1);
    g_assert_false(tt_said_is_due(s, 154));
    g_assert_true(tt_said_is_due(s, 155));
    /* One at a time, each a little after the pause: it goes on. */
    g_assert_cmpuint(tt_said_now(s, 157, 10, 25), ==, 0);
    g_assert_false(tt_said_is_due(s, 181));
    g_assert_true(tt_said_is_due(s, 182));
    g_assert_cmpuint(tt_said_now(s, 207, 10, 25), ==, 0);
    g_assert_true(tt_said_is_due(s, 217));
    /* Another kind has not waited. */
    g_assert_true(tt_said_is_due(tt_said_of(kinds, names[1]), 156));
    g_assert_true(tt_said_of(kinds, names[0]) == s);
}

/* The last place is for all that are too many; those before keep theirs. */
static void test_many_kinds(void)
{
    TtSaid kinds[TT_SAID_KINDS] = { 0 };

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        TtSaid *s = tt_said_of(kinds, names[i]);

        g_assert_true(s == &kinds[MIN(i, TT_SAID_KINDS - 1)]);
        g_assert_true(tt_said_is_due(s, 1));
        tt_said_now(s, 1, 10, 10);
    }
    g_assert_false(tt_said_is_due(tt_said_of(kinds, names[0]), 5));
    g_assert_false(tt_said_is_due(tt_said_of(kinds, names[G_N_ELEMENTS(names) - 1]), 5));
    g_assert_true(tt_said_is_due(tt_said_of(kinds, names[TT_SAID_KINDS]), 5));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/said/pauses", test_pauses);
    g_test_add_func("/tt/said/many-kinds", test_many_kinds);
    return g_test_run();
}
