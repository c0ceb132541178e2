/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Undo and redo against a model: strings of inputs, as somebody would keep them. */
#include "timeline/tt-undolist.h"

#include <glib.h>

static TtUndoPoint point(uint32_t id)
{
    return (TtUndoPoint) { .run = "run", .id = id };
}

static void add(TtUndoList *u, uint32_t id)
{
    TtUndoPoint p = point(id);

    tt_undolist_add(u, &p);
}

static void leave(TtUndoList *u, uint32_t id)
{
    TtUndoPoint p = point(id);

    tt_undolist_leave(u, &p);
}

static uint32_t id_at(TtUndoList *u, int64_t n)
{
    const TtUndoPoint *p = tt_undolist_at(u, n);

    return p ? p->id : 0;
}

static void test_empty(void)
{
    TtUndoList *u = tt_undolist_new();

    g_assert_cmpuint(tt_undolist_undos(u), ==, 0);
    g_assert_cmpuint(tt_undolist_redos(u), ==, 0);
    g_assert_null(tt_undolist_at(u, 0));
    g_assert_null(tt_undolist_at(u, 1));
    g_assert_null(tt_undolist_at(u, -1));
    g_assert_null(tt_undolist_at(u, INT64_MAX));
    g_assert_null(tt_undolist_at(u, INT64_MIN));
    tt_undolist_free(u);
    tt_undolist_free(NULL);
}

static void test_there_and_back(void)
{
    TtUndoList *u = tt_undolist_new();

    add(u, 1);
    add(u, 2);
    add(u, 3);
    g_assert_null(tt_undolist_at(u, 1));
    leave(u, 9);
    g_assert_cmpuint(id_at(u, -2), ==, 2);
    tt_undolist_go(u, -2);
    g_assert_cmpuint(tt_undolist_undos(u), ==, 1);
    g_assert_cmpuint(tt_undolist_redos(u), ==, 2);
    g_assert_cmpuint(id_at(u, 0), ==, 2);
    g_assert_cmpuint(id_at(u, 1), ==, 3);
    g_assert_cmpuint(id_at(u, 2), ==, 9);
    g_assert_null(tt_undolist_at(u, 3));
    tt_undolist_go(u, 2);
    g_assert_cmpuint(tt_undolist_redos(u), ==, 0);
    leave(u, 8);                    /* it went on from there: that is what is left now */
    tt_undolist_go(u, -3);
    g_assert_cmpuint(id_at(u, 3), ==, 8);
    tt_undolist_free(u);
}

static void test_other_answer(void)
{
    TtUndoList *u = tt_undolist_new();

    add(u, 1);
    add(u, 2);
    add(u, 3);
    leave(u, 9);
    tt_undolist_go(u, -2);
    add(u, 4);                      /* 2, 3 and 9 cannot be redone any more */
    g_assert_cmpuint(tt_undolist_undos(u), ==, 2);
    g_assert_cmpuint(tt_undolist_redos(u), ==, 0);
    g_assert_null(tt_undolist_at(u, 0));
    g_assert_cmpuint(id_at(u, -1), ==, 4);
    g_assert_cmpuint(id_at(u, -2), ==, 1);
    tt_undolist_free(u);
}

static void test_bound(void)
{
    TtUndoList *u = tt_undolist_new();

    for (uint32_t i = 1; i <= TT_UNDO_MAX + 1; i++) {
        add(u, i);
    }
    g_assert_cmpuint(tt_undolist_undos(u), ==, TT_UNDO_MAX - TT_UNDO_MAX / 10 + 1);
    g_assert_cmpuint(id_at(u, -1), ==, TT_UNDO_MAX + 1);
    g_assert_cmpuint(id_at(u, -(int64_t)tt_undolist_undos(u)), ==, TT_UNDO_MAX / 10 + 1);
    tt_undolist_free(u);
}

/* The model: an array of ids, an index, and whether the one there is known. */
static void test_random(void)
{
    TtUndoList *u = tt_undolist_new();
    uint32_t ids[4096];
    int at = 0, len = 0, next = 1;

    for (int i = 0; i < 3000; i++) {
        int redos = at < len ? len - at - 1 : 0;
        int n = g_test_rand_int_range(1, 6);

        g_assert_cmpuint(tt_undolist_undos(u), ==, at);
        g_assert_cmpuint(tt_undolist_redos(u), ==, redos);
        switch (g_test_rand_int_range(0, 3)) {
        case 0:
            add(u, next);
            ids[at++] = next++;
            len = at;
            break;
        case 1:
            if (!redos && n <= at) {
                leave(u, next);
                ids[at] = next++;
                len = at + 1;
            }
            g_assert_cmpuint(id_at(u, -n), ==, n <= at ? ids[at - n] : 0);
            if (n <= at) {
                tt_undolist_go(u, -n);
                at -= n;
            }
            break;
        default:
            g_assert_cmpuint(id_at(u, n), ==, n <= redos ? ids[at + n] : 0);
            if (n <= redos) {
                tt_undolist_go(u, n);
                at += n;
            }
        }
    }
    tt_undolist_free(u);
}

/* One digit for each byte: does an input begin there? */
static void check_typing(const char *typed, const char *begins, int64_t step_ms)
{
    TtTyping t = { 0 };

    for (int i = 0; typed[i]; i++) {
        g_assert_cmpint(tt_typing_begins(&t, typed[i], i * step_ms, 1000), ==,
                        begins[i] == '1');
    }
}

static void test_typing(void)
{
    check_typing("ls\rcat\r", "1001000", 10);
    check_typing("ls\r\ncat\n", "10001000", 10);
    check_typing("a\n\nb", "1011", 10);
    check_typing("ab\003cd\004e", "1001001", 10);
    check_typing("abc", "111", 1000);
    check_typing("abc", "100", 999);
    check_typing("\r\n", "11", 2000);
    check_typing("\n\r\n", "110", 10);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/undolist/empty", test_empty);
    g_test_add_func("/undolist/there-and-back", test_there_and_back);
    g_test_add_func("/undolist/other-answer", test_other_answer);
    g_test_add_func("/undolist/bound", test_bound);
    g_test_add_func("/undolist/random", test_random);
    g_test_add_func("/undolist/typing", test_typing);
    return g_test_run();
}
