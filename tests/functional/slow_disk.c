/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For the program that this is preloaded into, writing to a file RUN/pages (or RUN/NAME,
 * with SLOW_FILE=NAME) takes 0.3 s: its checkpoints come late, as where many compete for
 * the disk. With SLOW_WHILE it takes as long as that file exists, 20 s at most. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t write(int fd, const void *buf, size_t len)
{
    const char *slow = getenv("SLOW_FILE") ? getenv("SLOW_FILE") : "pages", *name;
    char link[32], path[4096];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    name = strrchr(path, '/');
    if (name && !strcmp(name + 1, slow)) {
        const char *hold = getenv("SLOW_WHILE");

        for (int i = 0; hold && i < 2000 && !access(hold, F_OK); i++) {
            usleep(10 * 1000);
        }
        usleep(hold ? 0 : 300 * 1000);
    }
    return syscall(SYS_write, fd, buf, len);
}
