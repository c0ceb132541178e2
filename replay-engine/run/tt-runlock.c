/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lock of a recorder on its run directory: taken with flock() on the directory
 * itself, so it ends with the process that holds it.
 */
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
