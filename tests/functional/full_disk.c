/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For the program that this is preloaded into, there is no space for what it writes to a
 * file whose name ends with $TT_NO_SPACE_IN (.tt), while the file $TT_NO_SPACE is there, but
 * at most $TT_NO_SPACE_TIMES (no limit) times. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_full(int fd)
{
    const char *flag = getenv("TT_NO_SPACE"), *end = getenv("TT_NO_SPACE_IN");
    const char *times = getenv("TT_NO_SPACE_TIMES");
    static atomic_int n_refused;
    char link[32], path[4096];
    ssize_t n, len;

    end = end ? end : ".tt";
    len = strlen(end);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path));
    return flag && n >= len && !memcmp(path + n - len, end, len) && !access(flag, F_OK) &&
        (!times || atomic_fetch_add(&n_refused, 1) < atoi(times));
}

ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t offset)
{
    if (is_full(fd)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, buf, len, offset);
}

ssize_t write(int fd, const void *buf, size_t len)
{
    if (is_full(fd)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_write, fd, buf, len);
}
