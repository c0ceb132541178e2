/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of the positions that a search looks at count. */
#include "debug/tt-edge.h"

#include <glib.h>
#include <inttypes.h>

/* @seen: "POSITION:VALUE ..."; x: it cannot be read. Returns the positions that count. */
static char *take(TtEdgeRule rule, bool from_the_start, const char *seen)
{
    g_auto(GStrv) words = g_strsplit(seen, " ", -1);
    TtEdge e = { .rule = rule, .from_the_start = from_the_start };
    GString *s = g_string_new(NULL);

    for (char **w = words; *w; w++) {
        const char *value = strchr(*w, ':') + 1;
        uint64_t pos = g_ascii_strtoull(*w, NULL, 10);

        if (tt_edge_take(&e, pos, *value == 'x' ? TT_ERR_INVALID : TT_OK,
                         g_ascii_strtoull(value, NULL, 10))) {
            g_string_append_printf(s, "%s%" PRIu64, s->len ? " " : "", pos);
        }
    }
    return g_string_free(s, false);
}

static void test_rules(void)
{
    static const struct {
        TtEdgeRule rule;
        bool from_the_start;
        const char *seen, *want;
    } all[] = {
        { TT_EDGE_BECOMES_TRUE, true, "5:1 6:1 7:0 9:3 9:3 10:1", "5 9" },
        { TT_EDGE_BECOMES_TRUE, false, "5:1 6:1 7:0 9:3", "9" },
        { TT_EDGE_BECOMES_TRUE, false, "5:0 7:1", "7" },
        { TT_EDGE_BECOMES_TRUE, true, "5:1 6:x 7:1", "5 7" },
        { TT_EDGE_BECOMES_TRUE, true, "5:x 7:1", "7" },
        { TT_EDGE_TRUE_AT_PLACE, true, "5:1 6:1 7:1 9:1 12:1", "5 9 12" },
        { TT_EDGE_TRUE_AT_PLACE, false, "5:1 6:1 9:1 10:0 11:1", "9 11" },
        { TT_EDGE_EACH_TIME, false, "5:1 6:1 7:0 9:x 10:2", "5 6 10" },
        { TT_EDGE_CHANGES, true, "5:1 6:1 7:2 8:x 9:2 10:x 11:3 12:0 13:0", "7 11 12" },
        { TT_EDGE_CHANGES, true, "5:x 6:4 7:5", "7" },
        { TT_EDGE_BECOMES_TRUE, true, "5:0 5:1 4:1 6:1", "6" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        g_autofree char *got = take(all[i].rule, all[i].from_the_start, all[i].seen);

        g_assert_cmpstr(got, ==, all[i].want);
    }
}

static void test_rule_of_a_condition(void)
{
    static const struct {
        const char *text;
        bool changes;
        TtEdgeRule rule;
    } all[] = {
        { "*(u8 *)1", false, TT_EDGE_BECOMES_TRUE },
        { "*(u8 *)1", true, TT_EDGE_CHANGES },
        { "$rip == 1", false, TT_EDGE_TRUE_AT_PLACE },
        { "$rax at 1", false, TT_EDGE_EACH_TIME },
        { "$rax at 1", true, TT_EDGE_CHANGES },
        { "$rax == 1", false, TT_EDGE_BECOMES_TRUE },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        TtCond *c;

        g_assert_cmpint(tt_cond_parse(all[i].text, &c, NULL), ==, TT_OK);
        g_assert_cmpint(tt_edge_rule(c, all[i].changes), ==, all[i].rule);
        tt_cond_free(c);
    }
}

/* What finds nothing when it is taken, and need not be. */
static void test_still(void)
{
    TtEdge true_now = { .rule = TT_EDGE_BECOMES_TRUE }, seven = { .rule = TT_EDGE_CHANGES },
        each = { .rule = TT_EDGE_EACH_TIME };

    tt_edge_take(&true_now, 1, TT_OK, 1);
    g_assert_true(tt_edge_is_still(&true_now, TT_OK, 2));
    g_assert_false(tt_edge_is_still(&true_now, TT_OK, 0));  /* then it may become true */
    g_assert_false(tt_edge_is_still(&true_now, TT_ERR_INVALID, 0));
    tt_edge_take(&true_now, 2, TT_OK, 0);
    g_assert_true(tt_edge_is_still(&true_now, TT_OK, 0));
    g_assert_true(tt_edge_is_still(&true_now, TT_ERR_INVALID, 0));
    g_assert_false(tt_edge_is_still(&true_now, TT_OK, 1));

    tt_edge_take(&seven, 1, TT_ERR_INVALID, 0);
    g_assert_true(tt_edge_is_still(&seven, TT_ERR_INVALID, 0));
    g_assert_false(tt_edge_is_still(&seven, TT_OK, 7));     /* it would be the first */
    tt_edge_take(&seven, 2, TT_OK, 7);
    g_assert_true(tt_edge_is_still(&seven, TT_OK, 7));
    g_assert_true(tt_edge_is_still(&seven, TT_ERR_INVALID, 0));
    g_assert_false(tt_edge_is_still(&seven, TT_OK, 8));

    tt_edge_take(&each, 1, TT_OK, 0);
    g_assert_false(tt_edge_is_still(&each, TT_OK, 0));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/edge/rules", test_rules);
    g_test_add_func("/tt/edge/rule-of-a-condition", test_rule_of_a_condition);
    g_test_add_func("/tt/edge/still", test_still);
    return g_test_run();
}
