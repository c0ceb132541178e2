/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For the program that this is preloaded into, there is no space for what it writes to a
 * file *.tt, while the file $TT_NO_SPACE is there. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t offset)
{
    const char *flag = getenv("TT_NO_SPACE");
    char link[32], path[4096];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path));
    if (flag && n >= 3 && !memcmp(path + n - 3, ".tt", 3) && !access(flag, F_OK)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, buf, len, offset);
}
