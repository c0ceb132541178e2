/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the shared base: diagnostics and byte access.
 */
#include "io/tt-base.h"

#include <glib.h>

static void test_fail_fills_the_diagnostic(void)
{
    TtDiag d;

    memset(&d, 0xff, sizeof(d));
    g_assert_cmpint(tt_fail(&d, TT_ERR_LIMIT, "%d is %s", 7, "too many"),
                    ==, TT_ERR_LIMIT);
    g_assert_cmpint(d.status, ==, TT_ERR_LIMIT);
    g_assert_cmpstr(d.text, ==, "7 is too many");
    g_assert_cmpint(d.os_errno, ==, 0);
    g_assert_cmpuint(d.offset, ==, 0);
    g_assert_cmpuint(d.position, ==, 0);
}

static void test_fail_takes_no_diagnostic(void)
{
    g_assert_cmpint(tt_fail(NULL, TT_ERR_IO, "x"), ==, TT_ERR_IO);
}

static void test_fail_keeps_one_line_and_its_bounds(void)
{
    TtDiag d;
    g_autofree char *big = g_strnfill(4 * TT_DIAG_TEXT_MAX, 'a');

    tt_fail(&d, TT_ERR_FORMAT, "a\nb\r\n%s", big);
    g_assert_cmpuint(strlen(d.text), ==, TT_DIAG_TEXT_MAX - 1);
    g_assert_null(strpbrk(d.text, "\r\n"));
}

static void test_fail_may_quote_itself(void)
{
    TtDiag d;

    tt_fail(&d, TT_ERR_IO, "inner");
    tt_fail(&d, TT_ERR_FORMAT, "outer: %s", d.text);
    g_assert_cmpstr(d.text, ==, "outer: inner");
}

static void test_every_status_has_a_name(void)
{
    for (int s = TT_ERR_INVALID; s <= TT_END_TORN; s++) {
        const char *name = tt_status_name(s);
        g_assert_nonnull(name);
        g_assert_cmpstr(name, !=, "unknown status");
        for (int t = TT_ERR_INVALID; t < s; t++) {
            g_assert_cmpstr(name, !=, tt_status_name(t));
        }
    }
    g_assert_cmpstr(tt_status_name(99), ==, "unknown status");
}

static void test_bytes_are_little_endian(void)
{
    uint8_t b[9] = { 0 };

    tt_put_le64(b + 1, 0x1122334455667788ull);
    g_assert_cmphex(b[1], ==, 0x88);
    g_assert_cmphex(b[8], ==, 0x11);
    g_assert_cmphex(tt_get_le64(b + 1), ==, 0x1122334455667788ull);
    g_assert_cmphex(tt_get_le32(b + 1), ==, 0x55667788u);
    g_assert_cmphex(tt_get_le16(b + 1), ==, 0x7788u);
    tt_put_le64(b, UINT64_MAX);
    g_assert_cmphex(tt_get_le64(b), ==, UINT64_MAX);
    g_assert_cmphex(tt_get_le32(b), ==, UINT32_MAX);
    g_assert_cmphex(tt_get_le16(b), ==, UINT16_MAX);
}

static void test_controls_are_replaced(void)
{
    char text[] = "a\x1b[m\x7f\xc2\x80\xc2\x9f\xc2\xa0\xc3\x9f\xc2\xc2\x85\n";

    g_assert_cmpuint(tt_control_bytes(""), ==, 0);
    g_assert_cmpuint(tt_control_bytes("\xc2"), ==, 0);
    g_assert_cmpuint(tt_control_bytes("\n"), ==, 1);
    g_assert_cmpuint(tt_control_bytes("\xc2\x9b"), ==, 2);
    g_assert_true(tt_has_control(text) && tt_has_control("a\xc2\x85") &&
                  tt_has_control("\x7f"));
    g_assert_false(tt_has_control("") || tt_has_control("\xc2\xa0 a") ||
                   tt_has_control("\xc3\xa4"));
    g_assert_cmpstr(tt_replace_controls(text, '?'), ==,
                    "a?[m?????\xc2\xa0\xc3\x9f\xc2???");
}

/* Bytes of no UTF-8, as in the name of a file, and characters that have such bytes. */
static void test_single_bytes_are_controls_too(void)
{
    char text[] = "\x9b" "2J\xff\x9b\xe2\x82\xac\xe2\x82\x9bz\xc4\x80\xf0\x9f\x90\x8d\xe9\x80";

    g_assert_cmpstr(tt_replace_controls(text, '?'), ==,
                    "?2J\xff?\xe2\x82\xac\xe2\x82\x9bz\xc4\x80\xf0\x9f\x90\x8d\xe9?");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/base/fail-fills-the-diagnostic",
                    test_fail_fills_the_diagnostic);
    g_test_add_func("/tt/base/fail-takes-no-diagnostic",
                    test_fail_takes_no_diagnostic);
    g_test_add_func("/tt/base/fail-keeps-one-line-and-its-bounds",
                    test_fail_keeps_one_line_and_its_bounds);
    g_test_add_func("/tt/base/single-bytes-are-controls-too",
                    test_single_bytes_are_controls_too);
    g_test_add_func("/tt/base/fail-may-quote-itself",
                    test_fail_may_quote_itself);
    g_test_add_func("/tt/base/every-status-has-a-name",
                    test_every_status_has_a_name);
    g_test_add_func("/tt/base/bytes-are-little-endian",
                    test_bytes_are_little_endian);
    g_test_add_func("/tt/base/controls-are-replaced", test_controls_are_replaced);
    return g_test_run();
}
