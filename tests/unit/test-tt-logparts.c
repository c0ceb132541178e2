/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the files of a log: parts look like one file, from the oldest that
 * follows without a gap up to the newest.
 */
#include "log/tt-logparts.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <unistd.h>

static char *dir;

static void put(uint32_t number, const char *text)
{
    g_autofree char *path = tt_logparts_path(dir, number);

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void drop(uint32_t number)
{
    g_autofree char *path = tt_logparts_path(dir, number);

    unlink(path);
}

/* Reads it all in pieces of each length. */
static void check_whole(const char *want)
{
    size_t len = strlen(want);
    uint64_t bytes;
    TtDiag d;
    TtIo *io;

    g_assert_cmpint(tt_logparts_open(dir, &io, &d), ==, TT_OK);
    g_assert_cmpint(io->ops->size(io, &bytes, &d), ==, TT_OK);
    g_assert_cmpuint(bytes, ==, len);
    for (size_t step = 1; step <= len + 1; step++) {
        for (size_t at = 0; at <= len + 1; at++) {
            char buf[64];
            size_t got, have = at < len ? MIN(step, len - at) : 0;

            g_assert_cmpint(io->ops->read_at(io, at, buf, step, &got, &d), ==,
                            TT_OK);
            g_assert_cmpuint(got, ==, have);
            g_assert_cmpmem(buf, got, want + MIN(at, len), have);
        }
    }
    g_assert_cmpint(io->ops->append(io, "x", 1, &d), <, 0);
    tt_io_close(io);
}

static void check_list(const char *want)
{
    g_autoptr(GString) seen = g_string_new(NULL);
    unsigned n;
    g_autofree uint32_t *number = tt_logparts_list(dir, &n);

    for (unsigned i = 0; i < n; i++) {
        g_string_append_printf(seen, "%u ", number[i]);
    }
    g_assert_cmpstr(seen->str, ==, want);
}

static void test_parts_look_like_one_file(void)
{
    uint64_t bytes;
    TtDiag d;
    TtIo *io;
    char buf[8];
    size_t got;

    uint32_t oldest, before, behind;

    check_list("");
    g_assert_false(tt_logparts_gap(dir, &oldest, &before, &behind));
    g_assert_cmpint(tt_logparts_open(dir, &io, &d), ==, TT_ERR_IO);
    g_assert_nonnull(strstr(d.text, "/log'"));
    put(7, "seven");
    put(8, "eight");
    put(9, "nine");
    put(999999, "later");
    put(1000000, "still later");
    check_list("999999 1000000 ");
    g_assert_true(tt_logparts_gap(dir, &oldest, &before, &behind));
    g_assert_cmpuint(oldest, ==, 7);
    g_assert_cmpuint(before, ==, 9);
    g_assert_cmpuint(behind, ==, 999999);
    check_whole("laterstill later");
    drop(999999);
    check_list("1000000 ");
    drop(1000000);
    check_list("7 8 9 ");
    g_assert_false(tt_logparts_gap(dir, &oldest, &before, &behind));
    check_whole("seveneightnine");
    put(8, "");                         /* others follow */
    g_assert_cmpint(tt_logparts_open(dir, &io, &d), ==, TT_ERR_FORMAT);
    g_assert_nonnull(strstr(d.text, "empty"));
    drop(8);
    put(8, "8");
    put(10, "");                        /* as new as can be */
    check_whole("seven8nine");
    drop(10);
    /* open, it stays what it was */
    g_assert_cmpint(tt_logparts_open(dir, &io, &d), ==, TT_OK);
    drop(7);
    put(10, "ten");
    g_assert_cmpint(io->ops->read_at(io, 3, buf, 4, &got, &d), ==, TT_OK);
    g_assert_cmpmem(buf, got, "en8n", 4);
    g_assert_cmpint(io->ops->size(io, &bytes, &d), ==, TT_OK);
    g_assert_cmpuint(bytes, ==, 10);
    tt_io_close(io);
    check_whole("8nineten");
    put(0, "one file");                 /* and parts: which is it? */
    g_assert_cmpint(tt_logparts_open(dir, &io, &d), ==, TT_ERR_FORMAT);
    g_assert_nonnull(strstr(d.text, "log.000008"));
    drop(0);
    for (uint32_t i = 8; i < 11; i++) {
        drop(i);
    }
}

/* Names that are none, and what is no file. */
static void test_other_files_are_none(void)
{
    static const char *const names[] = {
        "log.", "log.12345", "log.0000001", "log.00001x", "log.-00001",
        "log.000000", "log.4294967296", "log.99999999999", "xlog.000001",
        "log.000002.new",
    };
    g_autofree char *third = tt_logparts_path(dir, 3);
    TtDiag d;
    TtIo *io;

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(dir, names[i], NULL);

        g_assert_true(g_file_set_contents(path, "?", -1, NULL));
    }
    put(2, "two");
    check_list("2 ");
    check_whole("two");
    g_assert_cmpint(g_mkdir(third, 0700), ==, 0);
    check_list("2 3 ");
    g_assert_cmpint(tt_logparts_open(dir, &io, &d), ==, TT_ERR_IO);
    g_assert_nonnull(strstr(d.text, "directory"));
    g_assert_null(io);
    put(4, "four");                     /* after it: no quiet end either */
    g_assert_cmpint(tt_logparts_open(dir, &io, &d), ==, TT_ERR_IO);
    drop(4);
    rmdir(third);
    drop(2);
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(dir, names[i], NULL);

        unlink(path);
    }
}

static void test_too_many_are_refused(void)
{
    TtDiag d;
    TtIo *io;

    for (uint32_t i = 1; i <= TT_LOGPARTS_MAX + 1; i++) {
        put(i, "");
    }
    g_assert_cmpint(tt_logparts_open(dir, &io, &d), ==, TT_ERR_LIMIT);
    for (uint32_t i = 1; i <= TT_LOGPARTS_MAX + 1; i++) {
        drop(i);
    }
}

int main(int argc, char **argv)
{
    int result;

    g_test_init(&argc, &argv, NULL);
    dir = g_dir_make_tmp("tt-logparts-XXXXXX", NULL);
    g_assert_nonnull(dir);
    g_test_add_func("/tt/logparts/parts-look-like-one-file",
                    test_parts_look_like_one_file);
    g_test_add_func("/tt/logparts/other-files-are-none",
                    test_other_files_are_none);
    g_test_add_func("/tt/logparts/too-many-are-refused",
                    test_too_many_are_refused);
    result = g_test_run();
    rmdir(dir);
    g_free(dir);
    return result;
}
