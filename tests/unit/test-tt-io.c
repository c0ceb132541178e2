/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the three kinds of TtIo.
 */
#include "io/tt-io.h"

#include <errno.h>
#include <limits.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <glib.h>
#include <glib/gstdio.h>

static char *scratch_dir(void)
{
    char *dir = g_dir_make_tmp("tt-io-XXXXXX", NULL);

    g_assert_nonnull(dir);
    return dir;
}

static void check_bytes(TtIo *io, const char *want)
{
    char buf[64];
    uint64_t size = 0;
    size_t got = 0;

    g_assert_cmpint(io->ops->size(io, &size, NULL), ==, TT_OK);
    g_assert_cmpuint(size, ==, strlen(want));
    g_assert_cmpint(io->ops->read_at(io, 0, buf, sizeof(buf), &got, NULL),
                    ==, TT_OK);
    g_assert_cmpmem(buf, got, want, strlen(want));
    for (size_t at = 0; at <= strlen(want) + 1; at++) {
        size_t left = at < strlen(want) ? strlen(want) - at : 0;
        g_assert_cmpint(io->ops->read_at(io, at, buf, 3, &got, NULL),
                        ==, TT_OK);
        g_assert_cmpuint(got, ==, MIN(left, 3));
        g_assert_cmpint(memcmp(buf, want + MIN(at, strlen(want)), got), ==, 0);
    }
}

static void test_memory_reads_what_was_appended(void)
{
    TtIo *io = tt_io_mem_new("abc", 3);
    size_t len;

    check_bytes(io, "abc");
    g_assert_cmpint(io->ops->append(io, "defg", 4, NULL), ==, TT_OK);
    g_assert_cmpint(io->ops->append(io, "", 0, NULL), ==, TT_OK);
    g_assert_cmpint(io->ops->sync(io, NULL), ==, TT_OK);
    check_bytes(io, "abcdefg");
    g_assert_cmpmem(tt_io_mem_data(io, &len), len, "abcdefg", 7);
    tt_io_close(io);
    tt_io_close(NULL);
    io = tt_io_mem_new(NULL, 0);
    check_bytes(io, "");
    tt_io_close(io);
}

static void test_a_file_reads_what_was_appended(void)
{
    g_autofree char *dir = scratch_dir();
    g_autofree char *path = g_build_filename(dir, "f", NULL);
    struct stat st;
    TtIo *io, *reader;

    g_assert_cmpint(tt_io_posix_create(path, &io, NULL), ==, TT_OK);
    g_assert_cmpint(io->ops->append(io, "hello ", 6, NULL), ==, TT_OK);
    g_assert_cmpint(io->ops->append(io, "world", 5, NULL), ==, TT_OK);
    g_assert_cmpint(io->ops->sync(io, NULL), ==, TT_OK);
    g_assert_cmpint(tt_io_posix_open(path, &reader, NULL), ==, TT_OK);
    check_bytes(reader, "hello world");
    g_assert_cmpint(io->ops->append(io, "!", 1, NULL), ==, TT_OK);
    check_bytes(reader, "hello world!");
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpint(st.st_mode & 0777 & ~0600, ==, 0);
    tt_io_close(io);
    tt_io_close(reader);
    g_unlink(path);
    g_rmdir(dir);
}

static void test_a_file_is_never_overwritten(void)
{
    g_autofree char *dir = scratch_dir();
    g_autofree char *path = g_build_filename(dir, "f", NULL);
    TtDiag d;
    TtIo *io;

    g_assert_true(g_file_set_contents(path, "keep", -1, NULL));
    g_assert_cmpint(tt_io_posix_create(path, &io, &d), ==, TT_ERR_IO);
    g_assert_null(io);
    g_assert_cmpint(d.os_errno, ==, EEXIST);
    g_assert_nonnull(strstr(d.text, path));
    g_assert_cmpint(tt_io_posix_open(path, &io, NULL), ==, TT_OK);
    check_bytes(io, "keep");
    tt_io_close(io);
    g_unlink(path);
    g_rmdir(dir);
}

static void test_what_is_no_file_is_refused(void)
{
    g_autofree char *dir = scratch_dir();
    g_autofree char *fifo = g_build_filename(dir, "fifo", NULL);
    g_autofree char *none = g_build_filename(dir, "none", NULL);
    TtDiag d;
    TtIo *io;

    g_assert_cmpint(tt_io_posix_open(none, &io, &d), ==, TT_ERR_IO);
    g_assert_cmpint(d.os_errno, ==, ENOENT);
    g_assert_cmpint(tt_io_posix_open(dir, &io, &d), ==, TT_ERR_IO);
    g_assert_nonnull(strstr(d.text, "directory"));
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    g_assert_cmpint(tt_io_posix_open(fifo, &io, &d), ==, TT_ERR_IO);
    g_assert_nonnull(strstr(d.text, "special"));
    g_unlink(fifo);
    g_rmdir(dir);
}

static void test_a_full_disk_is_told_apart(void)
{
    g_autofree char *dir = scratch_dir();
    g_autofree char *path = g_build_filename(dir, "f", NULL);
    struct rlimit old, low;
    char block[4096] = { 1 };
    TtStatus status = TT_OK;
    TtDiag d;
    TtIo *io;

    /* A file size limit stands in for a full disk: EFBIG, no SIGXFSZ. */
    signal(SIGXFSZ, SIG_IGN);
    g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &old), ==, 0);
    low = old;
    low.rlim_cur = 10000;
    g_assert_cmpint(tt_io_posix_create(path, &io, &d), ==, TT_OK);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &low), ==, 0);
    for (int i = 0; i < 4 && !status; i++) {
        status = io->ops->append(io, block, sizeof(block), &d);
    }
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &old), ==, 0);
    g_assert_cmpint(status, ==, TT_ERR_NOSPACE);
    g_assert_cmpint(d.os_errno, ==, EFBIG);
    tt_io_close(io);
    g_unlink(path);
    g_rmdir(dir);
}

static void test_the_nth_operation_fails_once(void)
{
    for (uint64_t nth = 0; nth <= 4; nth++) {
        TtIo *mem = tt_io_mem_new("0123", 4);
        TtIo *io = tt_io_fault_new(mem, nth, TT_ERR_NOSPACE);
        uint64_t size;
        size_t got, len;
        char c;
        TtDiag d;
        TtStatus want;

        want = nth == 1 ? TT_ERR_NOSPACE : TT_OK;
        g_assert_cmpint(io->ops->size(io, &size, &d), ==, want);
        want = nth == 2 ? TT_ERR_NOSPACE : TT_OK;
        g_assert_cmpint(io->ops->read_at(io, 0, &c, 1, &got, &d), ==, want);
        want = nth == 3 ? TT_ERR_NOSPACE : TT_OK;
        g_assert_cmpint(io->ops->append(io, "abcd", 4, &d), ==, want);
        tt_io_mem_data(mem, &len);
        g_assert_cmpuint(len, ==, nth == 3 ? 6 : 8);
        want = nth == 4 ? TT_ERR_NOSPACE : TT_OK;
        g_assert_cmpint(io->ops->sync(io, &d), ==, want);
        g_assert_cmpuint(tt_io_fault_count(io), ==, 4);
        tt_io_close(io);
    }
}

/* What the optional operations do is the same for memory and for files. */
static void check_optional(TtIo *io)
{
    TtIo *fresh = NULL;
    TtStatus st;

    g_assert_cmpint(io->ops->append(io, "abcdefgh", 8, NULL), ==, TT_OK);
    g_assert_cmpint(io->ops->truncate(io, 6, NULL), ==, TT_OK);
    check_bytes(io, "abcdef");
    g_assert_cmpint(io->ops->append(io, "xy", 2, NULL), ==, TT_OK);
    check_bytes(io, "abcdefxy");
    st = io->ops->punch(io, 2, 3, NULL);
    if (st == TT_OK) {
        char buf[9] = "";
        size_t got;

        g_assert_cmpint(io->ops->read_at(io, 0, buf, 9, &got, NULL), ==,
                        TT_OK);
        g_assert_cmpmem(buf, got, "ab\0\0\0fxy", 8);
    } else {
        g_assert_cmpint(st, ==, TT_ERR_INVALID);    /* this file system */
    }
    /* Given up: nothing changed. */
    g_assert_cmpint(io->ops->replace_begin(io, &fresh, NULL), ==, TT_OK);
    g_assert_cmpint(fresh->ops->append(fresh, "nothing", 7, NULL), ==, TT_OK);
    tt_io_close(fresh);
    g_assert_cmpint(io->ops->append(io, "z", 1, NULL), ==, TT_OK);
    g_assert_cmpint(io->ops->replace_begin(io, &fresh, NULL), ==, TT_OK);
    g_assert_cmpint(fresh->ops->append(fresh, "new", 3, NULL), ==, TT_OK);
    g_assert_cmpint(io->ops->replace_commit(io, fresh, NULL), ==, TT_OK);
    check_bytes(io, "new");
    g_assert_cmpint(io->ops->append(io, "er", 2, NULL), ==, TT_OK);
    check_bytes(io, "newer");
}

static void test_cuts_frees_and_replaces(void)
{
    g_autofree char *dir = scratch_dir();
    g_autofree char *path = g_build_filename(dir, "file", NULL);
    g_autofree char *other = g_build_filename(dir, "file.new", NULL);
    TtIo *io = tt_io_mem_new(NULL, 0), *fresh;

    check_optional(io);
    tt_io_close(io);
    io = tt_io_fault_new(tt_io_mem_new(NULL, 0), 0, TT_ERR_IO);
    check_optional(io);
    tt_io_close(io);
    g_assert_cmpint(tt_io_posix_create(path, &io, NULL), ==, TT_OK);
    check_optional(io);
    g_assert_cmpint(io->ops->replace_begin(io, &fresh, NULL), ==, TT_OK);
    g_assert_true(g_file_test(other, G_FILE_TEST_EXISTS));
    tt_io_close(fresh);
    tt_io_close(io);
    g_assert_false(g_file_test(other, G_FILE_TEST_EXISTS));
    g_assert_cmpint(tt_io_posix_open_append(path, &io, NULL), ==, TT_OK);
    check_bytes(io, "newer");
    g_assert_cmpint(io->ops->append(io, "!", 1, NULL), ==, TT_OK);
    check_bytes(io, "newer!");
    tt_io_close(io);
    g_unlink(path);
    g_rmdir(dir);
}

static void test_a_failed_replacement_changes_nothing(void)
{
    for (uint64_t nth = 1; nth <= 3; nth++) {
        TtIo *io = tt_io_fault_new(tt_io_mem_new("old", 3), nth, TT_ERR_IO);
        TtIo *fresh = NULL;
        TtStatus st = io->ops->replace_begin(io, &fresh, NULL);

        if (st == TT_OK) {
            st = fresh->ops->append(fresh, "new", 3, NULL);
            if (st == TT_OK) {
                st = io->ops->replace_commit(io, fresh, NULL);
            } else {
                tt_io_close(fresh);
            }
        }
        g_assert_cmpint(st, ==, TT_ERR_IO);
        if (nth != 2) {
            check_bytes(io, "old");
        }
        tt_io_close(io);
    }
}

typedef struct Room {
    unsigned asked, gives;
} Room;

static bool make_room(void *opaque, const TtDiag *why)
{
    Room *room = opaque;

    g_assert_true(why->status < 0 && why->text[0]);

    return room->asked++ < room->gives;
}

/* A base that has no space the first time, in the middle of the write. */
static void test_a_patient_one_asks_for_room(void)
{
    for (unsigned gives = 0; gives <= 1; gives++) {
        Room room = { .gives = gives };
        TtIo *mem = tt_io_mem_new("0123", 4);
        TtIo *io = tt_io_patient_new(tt_io_fault_new(mem, 4, TT_ERR_NOSPACE),
                                     make_room, &room);
        size_t len;

        g_assert_cmpint(io->ops->append(io, "4567", 4, NULL), ==, TT_OK);
        g_assert_cmpuint(room.asked, ==, 0);
        g_assert_cmpint(io->ops->append(io, "89ab", 4, NULL), ==,
                        gives ? TT_OK : TT_ERR_NOSPACE);
        g_assert_cmpuint(room.asked, ==, 1);
        tt_io_mem_data(mem, &len);
        g_assert_cmpuint(len, ==, gives ? 12 : 10);
        if (gives) {
            check_bytes(io, "0123456789ab");
        }
        tt_io_close(io);
    }
}

/* Whatever it was: who is asked decides by the reason. */
static void test_a_patient_one_tells_why(void)
{
    Room room = { .gives = 0 };
    TtIo *io = tt_io_patient_new(tt_io_fault_new(tt_io_mem_new(NULL, 0), 2,
                                                 TT_ERR_IO), make_room, &room);
    TtDiag diag = { 0 };

    g_assert_cmpint(io->ops->append(io, "x", 1, &diag), ==, TT_ERR_IO);
    g_assert_cmpuint(room.asked, ==, 1);
    g_assert_nonnull(strstr(diag.text, "a test asked"));
    tt_io_close(io);
}

static bool is_empty(const char *dir)
{
    GDir *d = g_dir_open(dir, 0, NULL);
    bool is_empty = !g_dir_read_name(d);

    g_dir_close(d);
    return is_empty;
}

static void test_unnamed_is_there_when_it_is_named(void)
{
    g_autofree char *dir = scratch_dir();
    g_autofree char *path = g_build_filename(dir, "file", NULL);
    g_autofree char *name = g_strnfill(NAME_MAX + 1, 'x');
    g_autofree char *long_path = g_build_filename(dir, name, NULL);
    TtDiag diag;
    TtIo *io, *again;

    g_assert_cmpint(tt_io_posix_create_unnamed(path, &io, &diag), ==, TT_OK);
    g_assert_cmpint(io->ops->append(io, "half", 4, NULL), ==, TT_OK);
    g_assert_true(is_empty(dir));
    g_assert_cmpint(tt_io_posix_dup(io, &again, &diag), ==, TT_OK);
    tt_io_close(io);
    check_bytes(again, "half");
    tt_io_close(again);
    g_assert_true(is_empty(dir));

    g_assert_cmpint(tt_io_posix_create_unnamed(path, &io, &diag), ==, TT_OK);
    g_assert_cmpint(io->ops->append(io, "whole", 5, NULL), ==, TT_OK);
    g_assert_cmpint(tt_io_posix_name(io, &diag), ==, TT_OK);
    check_bytes(io, "whole");
    tt_io_close(io);
    g_assert_cmpint(tt_io_posix_open(path, &io, &diag), ==, TT_OK);
    check_bytes(io, "whole");
    tt_io_close(io);

    /* What is there is never overwritten, whenever it came. */
    g_assert_cmpint(tt_io_posix_create_unnamed(path, &io, &diag), ==, TT_ERR_IO);
    g_assert_cmpint(diag.os_errno, ==, EEXIST);
    g_assert_null(io);
    g_unlink(path);
    g_assert_cmpint(tt_io_posix_create_unnamed(path, &io, &diag), ==, TT_OK);
    g_assert_cmpint(tt_io_posix_create(path, &again, &diag), ==, TT_OK);
    g_assert_cmpint(again->ops->append(again, "other", 5, NULL), ==, TT_OK);
    g_assert_cmpint(tt_io_posix_name(io, &diag), ==, TT_ERR_IO);
    g_assert_cmpint(diag.os_errno, ==, EEXIST);
    tt_io_close(io);
    check_bytes(again, "other");
    tt_io_close(again);
    g_assert_true(g_file_test(path, G_FILE_TEST_EXISTS));

    /* Nor is anything written for a name that it cannot have. */
    g_assert_cmpint(tt_io_posix_create_unnamed(long_path, &io, &diag), ==, TT_ERR_IO);
    g_assert_cmpint(diag.os_errno, ==, ENAMETOOLONG);
    g_assert_null(io);
    g_unlink(path);
    g_rmdir(dir);
}

/* ---- where a path leads ---- */

static void check_leads(const char *path, const char *dir, const char *name)
{
    g_autofree char *want = *name ? g_build_filename(dir, name, NULL) : g_strdup(dir);
    g_autofree char *got = tt_io_posix_absolute(path);

    g_assert_cmpstr(got, ==, want);
}

/* In DIR/at, with DIR/link -> DIR/far/sub. */
static void check_relative(const char *dir)
{
    static const char *const leads[][2] = {
        { ".", "at" }, { "./", "at" }, { "..", "" }, { "../", "" }, { "../.", "" },
        { ".//.././", "" }, { "new", "at/new" }, { "./new/", "at/new" },
        { "new//", "at/new" }, { "new/.", "at/new" }, { "new/deep/", "at/new/deep" },
        { "s..x", "at/s..x" }, { "./s..x/", "at/s..x" }, { "..x/", "at/..x" },
        { "x../", "at/x.." }, { "...", "at/..." }, { "../...", "..." },
        { "../new", "new" }, { "../new/", "new" }, { "../new//", "new" },
        { "../new/.", "new" }, { "../new/deep//", "new/deep" }, { "..//new", "new" },
        { "../at/../new/", "new" }, { "../s..x/", "s..x" },
        { "../link", "link" }, { "../link/new/", "link/new" },
        { "../link/..", "far" }, { "../link/../", "far" },
        { "../link/../new/", "far/new" }, { "../link/../sub/../new", "far/new" },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(leads); i++) {
        g_autofree char *whole = g_build_filename(dir, "at", leads[i][0], NULL);

        check_leads(leads[i][0], dir, leads[i][1]);
        check_leads(whole, dir, leads[i][1]);
    }
}

static void test_a_path_leads_where_the_kernel_goes(void)
{
    g_autofree char *made = scratch_dir(), *before = g_get_current_dir();
    g_autofree char *dir = realpath(made, NULL);
    static const char *const folders[] = { "at", "far", "far/sub" };

    g_assert_cmpint(chdir(dir), ==, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_assert_cmpint(g_mkdir(folders[i], 0700), ==, 0);
    }
    g_assert_cmpint(symlink("far/sub", "link"), ==, 0);
    g_assert_cmpint(chdir("at"), ==, 0);
    check_relative(dir);
    check_leads("/", "/", "");
    check_leads("/..", "/", "");
    check_leads("/no//such/", "/no/such", "");
    check_leads("/../no/such/", "/no/such", "");
    errno = 0;
    g_assert_null(tt_io_posix_absolute("no/../new"));
    g_assert_cmpint(errno, ==, ENOENT);
    g_assert_null(tt_io_posix_absolute("../no/.."));

    /* In a directory that is gone only what is whole leads anywhere. */
    g_assert_cmpint(rmdir("../at"), ==, 0);
    g_assert_null(tt_io_posix_absolute("new"));
    g_assert_null(tt_io_posix_absolute("."));
    g_assert_null(tt_io_posix_absolute("../new/"));
    check_leads(dir, dir, "");
    g_assert_cmpint(chdir(before), ==, 0);
    g_assert_cmpint(chdir(dir), ==, 0);
    unlink("link");
    g_rmdir("far/sub");
    g_rmdir("far");
    g_assert_cmpint(chdir(before), ==, 0);
    g_rmdir(dir);
}

static int flush_fails;         /* errno */

int fdatasync(int fd)
{
    if (flush_fails) {
        errno = flush_fails;
        return -1;
    }
    return fsync(fd);
}

/* What Linux could not write counts as written afterwards. */
static void test_a_failed_flush_is_not_forgotten(void)
{
    g_autofree char *dir = scratch_dir(), *path = g_build_filename(dir, "a", NULL);
    TtIo *io, *fresh;
    TtDiag diag;

    g_assert_cmpint(tt_io_posix_create(path, &io, NULL), ==, TT_OK);
    g_assert_cmpint(io->ops->append(io, "abc", 3, NULL), ==, TT_OK);
    g_assert_cmpint(io->ops->sync(io, NULL), ==, TT_OK);
    flush_fails = EIO;
    g_assert_cmpint(io->ops->sync(io, NULL), ==, TT_ERR_IO);
    flush_fails = 0;
    g_assert_cmpint(io->ops->sync(io, &diag), ==, TT_ERR_IO);
    g_assert_cmpint(diag.os_errno, ==, EIO);
    /* All of it is written anew. */
    g_assert_cmpint(io->ops->replace_begin(io, &fresh, NULL), ==, TT_OK);
    g_assert_cmpint(fresh->ops->append(fresh, "abc", 3, NULL), ==, TT_OK);
    g_assert_cmpint(io->ops->replace_commit(io, fresh, NULL), ==, TT_OK);
    g_assert_cmpint(io->ops->sync(io, NULL), ==, TT_OK);
    tt_io_close(io);
    g_remove(path);
    g_rmdir(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/io/memory-reads-what-was-appended",
                    test_memory_reads_what_was_appended);
    g_test_add_func("/tt/io/a-file-reads-what-was-appended",
                    test_a_file_reads_what_was_appended);
    g_test_add_func("/tt/io/a-file-is-never-overwritten",
                    test_a_file_is_never_overwritten);
    g_test_add_func("/tt/io/what-is-no-file-is-refused",
                    test_what_is_no_file_is_refused);
    g_test_add_func("/tt/io/a-full-disk-is-told-apart",
                    test_a_full_disk_is_told_apart);
    g_test_add_func("/tt/io/the-nth-operation-fails-once",
                    test_the_nth_operation_fails_once);
    g_test_add_func("/tt/io/cuts-frees-and-replaces",
                    test_cuts_frees_and_replaces);
    g_test_add_func("/tt/io/a-failed-replacement-changes-nothing",
                    test_a_failed_replacement_changes_nothing);
    g_test_add_func("/tt/io/a-patient-one-asks-for-room",
                    test_a_patient_one_asks_for_room);
    g_test_add_func("/tt/io/a-patient-one-tells-why",
                    test_a_patient_one_tells_why);
    g_test_add_func("/tt/io/an-unnamed-file-is-there-when-named",
                    test_unnamed_is_there_when_it_is_named);
    g_test_add_func("/tt/io/a-failed-flush-is-not-forgotten",
                    test_a_failed_flush_is_not_forgotten);
    g_test_add_func("/tt/io/a-path-leads-where-the-kernel-goes",
                    test_a_path_leads_where_the_kernel_goes);
    return g_test_run();
}
