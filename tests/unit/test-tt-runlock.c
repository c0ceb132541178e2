/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of the lock on a run directory: who can take it, and when it ends.
 */
#include "run/tt-runlock.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static char *dir;

static void test_one_holder(void)
{
    int fd, other;
    TtDiag diag;

    g_assert_false(tt_runlock_is_held(dir));
    g_assert_cmpint(tt_runlock_take(dir, &fd, &diag), ==, TT_OK);
    g_assert_cmpint(fd, >=, 0);
    g_assert_true(tt_runlock_is_held(dir));
    g_assert_true(tt_runlock_is_held(dir));             /* looking takes nothing */
    g_assert_cmpint(tt_runlock_take(dir, &other, &diag), ==, TT_ERR_INVALID);
    g_assert_nonnull(strstr(diag.text, dir));
    g_assert_cmpint(other, ==, -1);
    tt_runlock_drop(fd);
    g_assert_false(tt_runlock_is_held(dir));
    g_assert_cmpint(tt_runlock_take(dir, &fd, &diag), ==, TT_OK);
    tt_runlock_drop(fd);
}

static void test_goes_with_the_process(void)
{
    int ready[2], status, fd;
    char byte;
    pid_t pid;

    g_assert_cmpint(pipe(ready), ==, 0);
    pid = fork();
    if (pid == 0) {
        if (tt_runlock_take(dir, &fd, NULL) != TT_OK || fd < 0 ||
            write(ready[1], "", 1) != 1) {
            _exit(1);
        }
        sleep(60);
        _exit(1);
    }
    g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);
    g_assert_true(tt_runlock_is_held(dir));
    kill(pid, SIGKILL);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_false(tt_runlock_is_held(dir));
    close(ready[0]);
    close(ready[1]);
}

static void test_another_in_its_place(void)
{
    g_autofree char *path = g_build_filename(dir, "run", NULL);
    g_autofree char *moved = g_build_filename(dir, "moved", NULL);
    TtDiag diag;
    int fd;

    g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
    g_assert_cmpint(tt_runlock_take(path, &fd, &diag), ==, TT_OK);
    g_assert_true(tt_runlock_is_at(fd, path));
    g_assert_cmpint(g_rename(path, moved), ==, 0);
    g_assert_false(tt_runlock_is_at(fd, path));
    g_assert_true(tt_runlock_is_at(fd, moved));
    g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
    g_assert_false(tt_runlock_is_at(fd, path));
    tt_runlock_release(fd);
    g_assert_false(tt_runlock_is_held(moved));
    g_assert_true(tt_runlock_is_at(fd, moved));
    tt_runlock_drop(fd);
    g_assert_true(tt_runlock_is_at(-1, path));
    g_rmdir(path);
    g_rmdir(moved);
}

/* Whoever asks takes nothing; a file that was written anew is another one. */
static void test_decisions(void)
{
    g_autofree char *points = g_build_filename(dir, "checkpoints", NULL);
    int fd, again;

    g_assert_cmpint(tt_runlock_decide(dir), ==, -1);    /* no file */
    g_assert_false(tt_runlock_is_deciding(dir));
    g_assert_true(g_file_set_contents(points, "", 0, NULL));
    g_assert_false(tt_runlock_is_deciding(dir));
    fd = tt_runlock_decide(dir);
    g_assert_cmpint(fd, >=, 0);
    g_assert_true(tt_runlock_is_deciding(dir));
    g_assert_true(tt_runlock_is_deciding(dir));
    g_assert_true(tt_runlock_is_at(fd, points));
    g_assert_true(g_file_set_contents(points, "x", 1, NULL));   /* renames */
    g_assert_false(tt_runlock_is_at(fd, points));
    again = tt_runlock_decide(dir);
    tt_runlock_drop(fd);
    g_assert_true(tt_runlock_is_deciding(dir));
    tt_runlock_drop(again);
    g_assert_false(tt_runlock_is_deciding(dir));
    g_unlink(points);
}

static void test_nothing_there(void)
{
    g_autofree char *none = g_build_filename(dir, "none", NULL);
    TtDiag diag;
    int fd;

    g_assert_false(tt_runlock_is_held(none));
    g_assert_cmpint(tt_runlock_take(none, &fd, &diag), ==, TT_ERR_IO);
    g_assert_nonnull(strstr(diag.text, none));
    g_assert_cmpint(fd, ==, -1);
    tt_runlock_drop(fd);
}

int main(int argc, char **argv)
{
    int failed;

    g_test_init(&argc, &argv, NULL);
    dir = g_dir_make_tmp("tt-runlock-XXXXXX", NULL);
    g_assert_nonnull(dir);
    g_test_add_func("/tt/runlock/one-holder", test_one_holder);
    g_test_add_func("/tt/runlock/goes-with-the-process", test_goes_with_the_process);
    g_test_add_func("/tt/runlock/another-in-its-place", test_another_in_its_place);
    g_test_add_func("/tt/runlock/decisions", test_decisions);
    g_test_add_func("/tt/runlock/nothing-there", test_nothing_there);
    failed = g_test_run();
    g_rmdir(dir);
    g_free(dir);
    return failed;
}
