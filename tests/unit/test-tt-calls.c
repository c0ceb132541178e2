/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls from the lines of the plugin. */
#include "trace/tt-calls.h"

#include <glib.h>
#include <string.h>

static void take(TtCalls *c, const char *const *lines)
{
    for (; *lines; lines++) {
        g_assert_true(tt_calls_line(c, *lines));
    }
    tt_calls_end(c);
}

static char *text_of(const TtCalls *c, uint32_t i)
{
    return tt_call_text(tt_calls_at(c, i), "call");
}

static void check_text(const TtCalls *c, uint32_t i, const char *wanted)
{
    g_autofree char *text = text_of(c, i);

    g_assert_cmpstr(text, ==, wanted);
}

/* Which process a call belongs to, threads that wait, and the order. */
static void test_processes(void)
{
    static const char *const lines[] = {
        "call 5 1000 aa 39 p\n",                        /* nobody knows whose */
        "exec 10 2000 402000 /bin/one\n", "exec 11 2000 402000 /bin/one\n",
        "call 20 2000 b0 1 v v1 b\"a\\040\\012\\001\" v1\n",
        "call 21 2000 c0 0 v v3 p7f000000 v40\n",       /* another thread */
        "back 30 2000 b0 1\n",
        "exec 35 3000 403000 /usr/bin/one\n", "call 36 3000 b0 60 v v0\n",
        "back 40 2000 c0 fffffffffffffff5\n",
        "call 50 2000 b0 231 v v0\n",
        "call 60 2000 b0 39 p\n",                       /* a new process, there */
        "call 34 2000 d0 2 v s\"x\" v0 v0\n",           /* shown late */
        "back 70 9999 b0 0\n", NULL,
    };
    TtCalls *c = tt_calls_new();
    uint32_t n;

    take(c, lines);
    g_assert_cmpuint(tt_calls_count(c), ==, 7);
    g_assert_cmpuint(tt_calls_n_processes(c), ==, 2);
    g_assert_cmpuint(tt_calls_at(c, 0)->process, ==, TT_CALLS_NO_PROCESS);
    g_assert_cmpuint(tt_calls_at(c, 1)->process, ==, 0);
    g_assert_cmpuint(tt_calls_at(c, 3)->pos, ==, 34);
    g_assert_cmpuint(tt_calls_at(c, 4)->process, ==, 1);
    g_assert_cmpuint(tt_calls_at(c, 6)->process, ==, TT_CALLS_NO_PROCESS);
    check_text(c, 1, "call(1, \"a \\n\\001\", 1) = 1");
    check_text(c, 2, "call(3, 0x7f000000, 64) = -11 (Resource temporarily unavailable)");
    check_text(c, 5, "call(0)");
    g_assert_cmpuint(tt_calls_find(c, "one", 1, &n), ==, 0);
    g_assert_cmpuint(n, ==, 2);
    g_assert_cmpuint(tt_calls_find(c, "one", 2, &n), ==, 1);
    g_assert_cmpuint(tt_calls_find(c, "/bin/one", 1, &n), ==, 0);
    g_assert_cmpuint(tt_calls_find(c, "ne", 1, &n), ==, TT_CALLS_NO_PROCESS);
    g_assert_cmpuint(n, ==, 0);
    tt_calls_free(c);
}

/* A child has the name of who forked it, also where page tables are used again. */
static void test_children(void)
{
    static const char *const lines[] = {
        "exec 10 1000 401000 /bin/sh\n", "call 20 1000 a0 57 p\n", "back 25 2000 a0 0\n",
        "call 26 2000 a0 39 p\n", "back 27 1000 a0 7\n", "back 28 2000 a0 8\n",
        "call 30 2000 a0 231 v v0\n",
        "exec 40 3000 403000 /bin/dies\n", "call 41 3000 c0 39 p\n",
        "call 50 1000 a0 57 p\n", "back 55 3000 a0 0\n", "call 56 3000 a0 39 p\n",
        "back 57 4000 b0 0\n", "call 58 4000 b0 39 p\n", NULL,
    };
    TtCalls *c = tt_calls_new();
    uint32_t n;

    take(c, lines);
    g_assert_cmpuint(tt_calls_n_processes(c), ==, 4);
    g_assert_cmpuint(tt_calls_at(c, 1)->process, ==, 1);
    g_assert_true(tt_calls_process(c, 1)->is_child);
    g_assert_cmpstr(tt_calls_process(c, 1)->name, ==, "/bin/sh");
    g_assert_cmpuint(tt_calls_at(c, 1)->result, ==, 8);
    g_assert_cmpuint(tt_calls_at(c, 3)->process, ==, 2);
    g_assert_cmpstr(tt_calls_process(c, tt_calls_at(c, 5)->process)->name, ==, "/bin/sh");
    g_assert_cmpuint(tt_calls_at(c, 6)->process, ==, TT_CALLS_NO_PROCESS);
    g_assert_cmpuint(tt_calls_find(c, "sh", 1, &n), ==, 0);
    g_assert_cmpuint(n, ==, 1);
    tt_calls_free(c);
}

/* A child that runs in its parent's tables, and then fails to begin a program. */
static void test_vfork(void)
{
    static const char *const lines[] = {
        "exec 10 1000 401000 /bin/my\\040shell\n",
        "call 20 1000 a0 58 v\n", "back 21 1000 a0 0\n",              /* the child */
        "call 22 1000 90 59 v s\"/none\" p7f000000 p7f000000\n",
        "back 23 1000 90 fffffffffffffffe\n", "call 24 1000 98 231 v v7f\n",
        "back 25 1000 a0 64\n", "call 26 1000 a0 8 v v3 vfffff000 v0\n",
        "back 27 1000 a0 fffff000\n",
        "call 30 1000 a0 435 v p7f000000 v58\n", "call 31 1000 700 231 v v7f\n",
        "back 32 1000 a0 65\n", "call 40 1000 a0 231 v v0\n",
        "call 50 1000 a0 39 p\n", NULL,
    };
    TtCalls *c = tt_calls_new();
    uint32_t n;

    take(c, lines);
    g_assert_cmpuint(tt_calls_count(c), ==, 8);
    for (uint32_t i = 0; i < 7; i++) {
        g_assert_cmpuint(tt_calls_at(c, i)->process, ==, 0);
    }
    g_assert_cmpuint(tt_calls_at(c, 0)->result, ==, 0x64);
    g_assert_cmpuint(tt_calls_at(c, 7)->process, ==, TT_CALLS_NO_PROCESS);
    check_text(c, 3, "call(3, -4096, 0) = 0xfffff000");
    g_assert_cmpuint(tt_calls_find(c, "my shell", 1, &n), ==, 0);
    tt_calls_free(c);
}

static char *key_of(const char *call, const char *back)
{
    const char *const lines[] = { call, back, NULL };
    TtCalls *c = tt_calls_new();
    char *key;

    take(c, lines);
    key = tt_call_key(tt_calls_at(c, 0));
    tt_calls_free(c);
    return key;
}

static void check_keys(const char *call, const char *back, const char *other,
                       const char *other_back, bool same)
{
    g_autofree char *a = key_of(call, back), *b = key_of(other, other_back);

    g_assert_cmpint(strcmp(a, b) == 0, ==, same);
}

/* What counts for a call, and what does not. */
static void test_keys(void)
{
    check_keys("call 1 1 1 0 v v3 p70000 v4", "back 2 1 1 4",
               "call 9 8 7 0 v v3 p90000 v4", "back 10 8 7 4", true);
    check_keys("call 1 1 1 0 v v3 p70000 v4", "back 2 1 1 4",
               "call 1 1 1 0 v v3 p70000 v4", "back 2 1 1 3", false);
    check_keys("call 1 1 1 0 v v3 p70000 v4", "back 2 1 1 4",
               "call 1 1 1 0 v v4 p70000 v4", "back 2 1 1 4", false);
    check_keys("call 1 1 1 1 v b\"a\"", "back 2 1 1 4", "call 1 1 1 1 v b\"c\"",
               "back 2 1 1 4", false);
    check_keys("call 1 1 1 9 p v3", "back 2 1 1 7000000", "call 1 1 1 9 p v3",
               "back 2 1 1 8000000", true);
    check_keys("call 1 1 1 9 p v3", "back 2 1 1 7000000", "call 1 1 1 9 p v3",
               "back 2 1 1 fffffffffffffff4", false);
    check_keys("call 1 1 1 999 v g10000", "back 2 1 1 0", "call 1 1 1 999 v gf0000000",
               "back 2 1 1 0", true);
    check_keys("call 1 1 1 999 v g1", "back 2 1 1 0", "call 1 1 1 999 v g2", "back 2 1 1 0",
               false);
}

static void test_refuses(void)
{
    static const char *const bad[] = {
        "", "call", "call x", "call 1 2 3", "exec 1", "exec 1 2 ", "back 1 2 3",
        "CALL 1 2 3 4 v",
        "tt-merge: end",
    };
    TtCalls *c = tt_calls_new();

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(tt_calls_line(c, bad[i]));
    }
    tt_calls_end(c);
    g_assert_cmpuint(tt_calls_count(c) + tt_calls_n_processes(c), ==, 0);
    tt_calls_free(c);
}

/* Whatever the lines are made of, nothing breaks. */
static void test_random(void)
{
    static const char *const words[] = {
        "call", "back", "exec", "1", "2", "7fff", "ffffffffffffffff", "-1", "v", "p", "s\"x",
        "b?", "v12", "g99999", "", "231", "/x/y", "%s",
    };

    for (unsigned i = 0; i < 20000; i++) {
        TtCalls *c = tt_calls_new();

        for (unsigned k = 0; k < 8; k++) {
            g_autoptr(GString) line = g_string_new(NULL);

            for (unsigned w = g_test_rand_int_range(0, 9); w; w--) {
                g_string_append_printf(line, "%s ", words[g_test_rand_int_range(
                    0, G_N_ELEMENTS(words))]);
            }
            tt_calls_line(c, line->str);
        }
        tt_calls_end(c);
        for (uint32_t k = 0; k < tt_calls_count(c); k++) {
            g_autofree char *text = text_of(c, k), *key = tt_call_key(tt_calls_at(c, k));
        }
        tt_calls_free(c);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/calls/processes", test_processes);
    g_test_add_func("/tt/calls/children", test_children);
    g_test_add_func("/tt/calls/vfork", test_vfork);
    g_test_add_func("/tt/calls/keys", test_keys);
    g_test_add_func("/tt/calls/refuses", test_refuses);
    g_test_add_func("/tt/calls/random-lines", test_random);
    return g_test_run();
}
