/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program that this is preloaded into is killed before the TT_KILL_AT-th call that
 * changes a file system: each of its half-way states can be looked at, one after the
 * other.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void count(void)
{
    static long n;
    const char *at = getenv("TT_KILL_AT");

    if (at && ++n == atol(at)) {
        raise(SIGKILL);
    }
}

ssize_t write(int fd, const void *buf, size_t len)
{
    ssize_t (*next)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");

    count();
    return next(fd, buf, len);
}

int fdatasync(int fd)
{
    int (*next)(int) = dlsym(RTLD_NEXT, "fdatasync");

    count();
    return next(fd);
}

int mkdir(const char *path, mode_t mode)
{
    int (*next)(const char *, mode_t) = dlsym(RTLD_NEXT, "mkdir");

    count();
    return next(path, mode);
}

int rename(const char *from, const char *to)
{
    int (*next)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");

    count();
    return next(from, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to,
              unsigned flags)
{
    int (*next)(int, const char *, int, const char *, unsigned) =
        dlsym(RTLD_NEXT, "renameat2");

    count();
    return next(from_dir, from, to_dir, to, flags);
}
