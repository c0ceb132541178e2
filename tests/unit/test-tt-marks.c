/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RUN/marks: lines that make sense count, others do no harm; whatever fails while
 * one is added, those before stay, and no half name ever counts.
 */
#include "run/tt-marks.h"

#include <glib.h>
#include <inttypes.h>

static void collect(void *opaque, const char *name, uint64_t pos)
{
    g_string_append_printf(opaque, "%" PRIu64 "=%s;", pos, name);
}

static char *seen(const char *text, size_t len, unsigned *bad)
{
    GString *s = g_string_new(NULL);

    *bad = tt_marks_parse(text, len, collect, s);
    return g_string_free(s, false);
}

static void test_lines(void)
{
    static const struct {
        const char *text, *marks;
        unsigned bad;
    } cases[] = {
        { "", "", 0 },
        { "\n\n", "", 0 },
        { "5 here\n", "5=here;", 0 },
        { "5 here\n17 there\n5 again\n", "5=here;17=there;5=again;", 0 },
        { "5 two words\n", "5=two words;", 0 },
        { "9223372036854775807 last\n", "9223372036854775807=last;", 0 },
        { "9223372036854775808 beyond\n1 a\n", "1=a;", 1 },
        { "99999999999999999999999 far\n", "", 1 },
        { "1 a\nnonsense\n2 b\n", "1=a;2=b;", 2 },
        { "1 a\n2\n", "1=a;", 2 },
        { "1 a\n2 \n", "1=a;", 2 },
        { " 1 a\n", "", 1 },
        { "-1 a\n", "", 1 },
        { "1 a\n2 cut o", "1=a;", 2 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        unsigned bad;
        g_autofree char *s = seen(cases[i].text, strlen(cases[i].text), &bad);

        g_assert_cmpstr(s, ==, cases[i].marks);
        g_assert_cmpuint(bad, ==, cases[i].bad);
    }
    {
        unsigned bad;
        g_autofree char *s = seen("1 a\0b\n2 c\n", 10, &bad);

        g_assert_cmpstr(s, ==, "2=c;");
        g_assert_cmpuint(bad, ==, 1);
    }
}

static const char before[] = "1 one\n2 two\n3 torn";

/* Each operation fails once, with an append cut in its middle. */
static void test_faults(void)
{
    uint64_t nth = 0;
    TtStatus status;

    do {
        TtIo *mem = tt_io_mem_new(before, strlen(before));
        TtIo *io = tt_io_fault_new(mem, ++nth, TT_ERR_NOSPACE);
        TtDiag diag = { 0 };
        const uint8_t *bytes;
        unsigned bad;
        size_t len;

        status = tt_marks_append(io, "four", 4, &diag);
        bytes = tt_io_mem_data(mem, &len);
        {
            g_autofree char *s = seen((const char *)bytes, len, &bad);

            /* When the flush failed it may be there or not. */
            g_assert_true(!strcmp(s, "1=one;2=two;") ||
                          !strcmp(s, "1=one;2=two;4=four;"));
            g_assert_true(status != TT_OK || strstr(s, "four"));
            g_assert_true(status == TT_OK || (diag.text[0] &&
                                              !strstr(s, "four")));
        }
        tt_io_close(io);
    } while (status != TT_OK);
    g_assert_cmpuint(nth, ==, 6);       /* size, read, truncate, append, sync */
}

/* Cut at any byte, as by a power cut: those before are there, none is made up. */
static void test_cuts(void)
{
    static const char text[] = "10 alpha\n20 beta\n30 gamma\n";

    for (size_t cut = 0; cut <= strlen(text); cut++) {
        TtIo *io = tt_io_mem_new(text, cut);
        g_autoptr(GString) s = g_string_new(NULL);
        unsigned bad;

        g_assert_cmpint(tt_marks_append(io, "delta", 40, NULL), ==, TT_OK);
        g_assert_cmpint(tt_marks_load(io, collect, s, &bad, NULL), ==, TT_OK);
        g_assert_cmpuint(bad, ==, 0);
        g_assert_true(g_str_has_suffix(s->str, "40=delta;"));
        g_string_truncate(s, s->len - strlen("40=delta;"));
        g_assert_true(g_str_has_prefix("10=alpha;20=beta;30=gamma;", s->str));
        g_assert_true(!s->len || s->str[s->len - 1] == ';');
        tt_io_close(io);
    }
}

static void test_full(void)
{
    g_autofree char *text = g_strnfill(TT_MARKS_BYTES_MAX - 3, '\n');
    TtIo *io = tt_io_mem_new(text, strlen(text));
    TtDiag diag;

    g_assert_cmpint(tt_marks_append(io, "x", 1, &diag), ==, TT_ERR_LIMIT);
    g_assert_cmpint(io->ops->append(io, "12345", 5, NULL), ==, TT_OK);
    g_assert_cmpint(tt_marks_load(io, collect, NULL, NULL, &diag), ==,
                    TT_ERR_LIMIT);
    tt_io_close(io);
}

static void test_names(void)
{
    static const struct {
        const char *name;
        TtMarkName is;
    } cases[] = {
        { "here", TT_MARK_NAME_FIT }, { "a-b_c.d9", TT_MARK_NAME_FIT },
        { "9lives", TT_MARK_NAME_FIT }, { "0x", TT_MARK_NAME_FIT },
        { "0xfg", TT_MARK_NAME_FIT }, { "08", TT_MARK_NAME_FIT },
        { "starts", TT_MARK_NAME_FIT },
        { "99999999999999999999", TT_MARK_NAME_FIT },   /* no position is */
        { "", TT_MARK_NAME_BAD }, { "-a", TT_MARK_NAME_BAD },
        { "two words", TT_MARK_NAME_BAD }, { "a/b", TT_MARK_NAME_BAD },
        { "a\n", TT_MARK_NAME_BAD }, { "\xc3\xa4", TT_MARK_NAME_BAD },
        { "start", TT_MARK_NAME_TAKEN }, { "end", TT_MARK_NAME_TAKEN },
        { "0", TT_MARK_NAME_TAKEN }, { "17", TT_MARK_NAME_TAKEN },
        { "0x1f", TT_MARK_NAME_TAKEN }, { "010", TT_MARK_NAME_TAKEN },
    };
    g_autofree char *longest = g_strnfill(TT_MARK_NAME_MAX, 'a');
    g_autofree char *too_long = g_strnfill(TT_MARK_NAME_MAX + 1, 'a');

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%s", cases[i].name);
        g_assert_cmpint(tt_mark_name_check(cases[i].name), ==, cases[i].is);
    }
    g_assert_cmpint(tt_mark_name_check(longest), ==, TT_MARK_NAME_FIT);
    g_assert_cmpint(tt_mark_name_check(too_long), ==, TT_MARK_NAME_BAD);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/marks/lines-that-make-sense-count", test_lines);
    g_test_add_func("/tt/marks/names-that-a-mark-may-have", test_names);
    g_test_add_func("/tt/marks/a-failed-append-harms-none", test_faults);
    g_test_add_func("/tt/marks/a-cut-makes-no-name-up", test_cuts);
    g_test_add_func("/tt/marks/a-full-file-is-refused", test_full);
    return g_test_run();
}
