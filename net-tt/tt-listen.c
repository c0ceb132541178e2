/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unix sockets that listen: see the header. A lock of the directory leaves no file behind.
 * Where there is none (some network file systems, or no right to read the directory), nobody
 * takes the place of a socket that is left.
 */
#include "net-tt/tt-listen.h"
#include "net-tt/tt-alive.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOK_MS 10

/* Of the directory of @path; close frees it. -1: there is none to be had. */
static int lock_directory(const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOCTTY | O_CLOEXEC);

    for (unsigned i = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB); i++) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || i == TT_LISTEN_WAIT_MS / LOOK_MS) {
            close(fd);
            return -1;
        }
        g_usleep(LOOK_MS * 1000);
    }
    return fd;
}

/* With the lock. NULL: the path is free now. */
static const char *make_room(const char *path)
{
    if (!tt_alive_is_left(path)) {
        return "it is in use, somebody listens there already: give another path";
    }
    return unlink(path) && errno != ENOENT ? g_strerror(errno) : NULL;
}

static const char *bind_to(int fd, const char *path, bool is_locked)
{
    struct sockaddr_un where = { .sun_family = AF_UNIX };
    const char *why = NULL;
    struct stat st;

    g_strlcpy(where.sun_path, path, sizeof(where.sun_path));
    /* Who has no lock may be there a second time: then somebody listens. */
    for (unsigned i = 0; i < 2; i++) {
        if (bind(fd, (struct sockaddr *)&where, sizeof(where)) == 0) {
            return NULL;
        }
        if (errno != EADDRINUSE || lstat(path, &st)) {
            return g_strerror(errno);
        }
        if (!S_ISSOCK(st.st_mode)) {
            return "it is not a socket: remove it, or give another path";
        }
        if (!is_locked) {
            return "it is in use, or left by a program that has ended, and its directory "
                   "cannot be locked: give another path, or remove it";
        }
        why = make_room(path);
        if (why) {
            return why;
        }
    }
    return g_strerror(EADDRINUSE);
}

static const char *listen_at(TtListen *l, const char *path, int backlog, bool is_locked)
{
    const char *why = bind_to(l->fd, path, is_locked);
    struct stat st;

    if (why) {
        return why;
    }
    if (lstat(path, &st) || listen(l->fd, backlog)) {
        why = g_strerror(errno);
        unlink(path);
        return why;
    }
    l->dev = st.st_dev;
    l->ino = st.st_ino;
    l->path = g_strdup(path);
    return NULL;
}

const char *tt_listen_unix(TtListen *l, const char *path, int backlog)
{
    const char *why;
    int lock;

    *l = (TtListen) { .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) };
    if (l->fd < 0) {
        return g_strerror(errno);
    }
    lock = lock_directory(path);
    why = listen_at(l, path, backlog, lock >= 0);
    if (why) {
        close(l->fd);
        l->fd = -1;
    }
    if (lock >= 0) {
        close(lock);
    }
    return why;
}

void tt_listen_unix_end(TtListen *l)
{
    struct stat st;
    int lock;

    if (!l->path) {
        return;
    }
    lock = lock_directory(l->path);
    /* The number of the socket stays taken as long as it is open. */
    if (lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino) {
        unlink(l->path);
    }
    if (lock >= 0) {
        close(lock);
    }
    g_clear_pointer(&l->path, g_free);
}
