/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lock of a recorder on its run directory: taken with flock() on the directory
 * itself, so it ends with the process that holds it. That of its decisions is one of the
 * kind that others can ask about without taking it: nobody ever makes a recorder wait.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE                 /* F_OFD_SETLK */
#endif
#include "run/tt-runlock.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_directory(const char *dir)
{
    return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

TtStatus tt_runlock_take(const char *dir, int *fd, TtDiag *diag)
{
    *fd = open_directory(dir);
    if (*fd < 0) {
        return tt_fail(diag, TT_ERR_IO, "cannot open the directory '%s': %s: make it "
                       "readable, or give another directory", dir, g_strerror(errno));
    }
    if (flock(*fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        tt_runlock_drop(*fd);
        *fd = -1;
        return tt_fail(diag, TT_ERR_INVALID, "another process is recording into '%s': "
                       "give another directory", dir);
    }
    return TT_OK;
}

void tt_runlock_release(int fd)
{
    if (fd >= 0) {
        (void)flock(fd, LOCK_UN);
    }
}

void tt_runlock_drop(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

bool tt_runlock_is_at(int fd, const char *dir)
{
    struct stat ours, there;

    return fd < 0 || fstat(fd, &ours) < 0 ||
        (stat(dir, &there) == 0 && there.st_dev == ours.st_dev &&
         there.st_ino == ours.st_ino);
}

bool tt_runlock_is_held(const char *dir)
{
    int fd = open_directory(dir);
    bool is_held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 &&
        errno == EWOULDBLOCK;

    tt_runlock_drop(fd);
    return is_held;
}

static int open_points(const char *dir, int how)
{
    g_autofree char *path = g_build_filename(dir, "checkpoints", NULL);

    return open(path, how | O_CLOEXEC);
}

int tt_runlock_decide(const char *dir)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    int fd = open_points(dir, O_RDWR);

    if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &whole) < 0) {
        tt_runlock_drop(fd);
        fd = -1;
    }
    return fd;
}

bool tt_runlock_is_deciding(const char *dir)
{
    struct flock whole = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
    int fd = open_points(dir, O_RDONLY);
    bool is = fd >= 0 && fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;

    tt_runlock_drop(fd);
    return is;
}
