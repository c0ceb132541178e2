/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unix sockets that listen: of those who begin at one path at one time, one gets it. */
#include "net-tt/tt-listen.h"
#include "net-tt/tt-alive.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char *dir, *path;

/* -1: nobody listens. */
static int connect_to(void)
{
    struct sockaddr_un where = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_strlcpy(where.sun_path, path, sizeof(where.sun_path));
    if (connect(fd, (struct sockaddr *)&where, sizeof(where))) {
        close(fd);
        return -1;
    }
    return fd;
}

static void end(TtListen *l)
{
    tt_listen_unix_end(l);
    close(l->fd);
}

static void leave_a_socket(void)
{
    TtListen l;

    g_assert_null(tt_listen_unix(&l, path, 1));
    close(l.fd);
    g_free(l.path);
    g_assert_true(tt_alive_is_left(path));
}

static void test_comes_and_goes(void)
{
    TtListen a, b;
    int peer;

    g_assert_null(tt_listen_unix(&a, path, 1));
    peer = connect_to();
    g_assert_cmpint(peer, >=, 0);
    g_assert_nonnull(strstr(tt_listen_unix(&b, path, 1), "in use"));
    g_assert_cmpint(b.fd, ==, -1);
    tt_listen_unix_end(&b);                 /* nothing */
    close(peer);
    end(&a);
    g_assert_cmpint(access(path, F_OK), ==, -1);
    leave_a_socket();
    g_assert_null(tt_listen_unix(&b, path, 1));
    end(&b);
}

static void test_keeps_files(void)
{
    g_autofree char *text = NULL;
    TtListen l;

    g_assert_true(g_file_set_contents(path, "precious", -1, NULL));
    g_assert_nonnull(strstr(tt_listen_unix(&l, path, 1), "not a socket"));
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "precious");
    unlink(path);
    g_assert_cmpint(symlink("/nowhere/at/all", path), ==, 0);
    g_assert_nonnull(strstr(tt_listen_unix(&l, path, 1), "not a socket"));
    unlink(path);
    g_assert_nonnull(strstr(tt_listen_unix(&l, "/nowhere/at/all", 1), "No such file"));
}

/* Somebody has removed the socket and listens there himself: his stays. */
static void test_leaves_others(void)
{
    TtListen a, b;
    int peer;

    g_assert_null(tt_listen_unix(&a, path, 1));
    unlink(path);
    g_assert_null(tt_listen_unix(&b, path, 1));
    end(&a);
    peer = connect_to();
    g_assert_cmpint(peer, >=, 0);
    close(peer);
    end(&b);
}

/* While another one is about to begin in this directory nobody takes the place of what
 * refuses connections: that may be his. Nobody waits forever for him. */
static void test_waits_for_the_lock(void)
{
    TtListen l;
    int lock = open(dir, O_RDONLY | O_DIRECTORY);

    g_assert_cmpint(flock(lock, LOCK_EX), ==, 0);
    g_assert_null(tt_listen_unix(&l, path, 1));         /* nothing is there to take */
    end(&l);
    g_assert_cmpint(flock(lock, LOCK_UN), ==, 0);
    leave_a_socket();
    g_assert_cmpint(flock(lock, LOCK_EX), ==, 0);
    g_assert_nonnull(strstr(tt_listen_unix(&l, path, 1), "cannot be locked"));
    g_assert_cmpint(access(path, F_OK), ==, 0);
    close(lock);
    g_assert_null(tt_listen_unix(&l, path, 1));
    end(&l);
}

#define RACERS 8
#define ROUNDS 50

/* In a process of its own: begins with the others, and writes whether it listens. Ends when
 * nobody holds @hold any more. */
static void race(int start, int hold, int out)
{
    TtListen l;
    char byte;

    if (read(start, &byte, 1) == 0) {
        byte = tt_listen_unix(&l, path, 1) ? '-' : '+';
        if (write(out, &byte, 1) == 1 && read(hold, &byte, 1) == 0) {
            _exit(0);
        }
    }
    _exit(1);
}

static void make_pipe(int *ends)
{
    g_assert_cmpint(pipe(ends), ==, 0);
}

static void run_race(void)
{
    int start[2], hold[2], out[2], status, n = 0;
    pid_t pid[RACERS];
    char byte;

    make_pipe(start);
    make_pipe(hold);
    make_pipe(out);
    for (unsigned i = 0; i < RACERS; i++) {
        pid[i] = fork();
        if (!pid[i]) {
            close(start[1]);
            close(hold[1]);
            race(start[0], hold[0], out[1]);
        }
    }
    close(start[1]);
    for (unsigned i = 0; i < RACERS; i++) {
        g_assert_cmpint(read(out[0], &byte, 1), ==, 1);
        n += byte == '+';
    }
    g_assert_cmpint(n, ==, 1);
    g_assert_false(tt_alive_is_left(path));     /* its queue may be full */
    close(hold[1]);
    for (unsigned i = 0; i < RACERS; i++) {
        g_assert_cmpint(waitpid(pid[i], &status, 0), ==, pid[i]);
        g_assert_cmpint(status, ==, 0);
    }
    close(start[0]);
    close(hold[0]);
    close(out[0]);
    close(out[1]);
}

/* Each round leaves a socket for the next. */
static void test_race(void)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        run_race();
    }
    unlink(path);
}

int main(int argc, char **argv)
{
    int result;

    g_test_init(&argc, &argv, NULL);
    dir = g_dir_make_tmp("tt-listen-XXXXXX", NULL);
    g_assert_nonnull(dir);
    path = g_build_filename(dir, "sock", NULL);
    g_test_add_func("/tt/listen/comes-and-goes", test_comes_and_goes);
    g_test_add_func("/tt/listen/keeps-files", test_keeps_files);
    g_test_add_func("/tt/listen/leaves-others", test_leaves_others);
    g_test_add_func("/tt/listen/waits-for-the-lock", test_waits_for_the_lock);
    g_test_add_func("/tt/listen/one-of-many", test_race);
    result = g_test_run();
    g_rmdir(dir);
    g_free(path);
    g_free(dir);
    return result;
}
