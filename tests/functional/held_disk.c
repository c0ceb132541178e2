/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For the program that this is preloaded into, writing to RUN/pages and to
 * RUN/checkpoints waits as long as there is a file $TT_HOLD. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ends_with(const char *path, ssize_t n, const char *end)
{
    ssize_t len = strlen(end);

    return n >= len && !memcmp(path + n - len, end, len);
}

ssize_t write(int fd, const void *buf, size_t len)
{
    const char *hold = getenv("TT_HOLD");
    char link[32], path[4096];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = hold ? readlink(link, path, sizeof(path)) : 0;
    if (ends_with(path, n, "/pages") || ends_with(path, n, "/checkpoints")) {
        while (access(hold, F_OK) == 0) {
            usleep(1000);
        }
    }
    return syscall(SYS_write, fd, buf, len);
}
