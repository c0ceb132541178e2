/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For the program that this is preloaded into, copying a file NAME.saving/pages takes
 * 3 s: a window that is saved to a slow disk. With SLOW_WHILE it takes as long as that file
 * exists, 100 s at most. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t copy_file_range(int in, off64_t *at, int out, off64_t *to, size_t len,
                        unsigned flags)
{
    static const char slow[] = ".saving/pages";
    char link[32], path[4096] = "";

    snprintf(link, sizeof(link), "/proc/self/fd/%d", out);
    if (readlink(link, path, sizeof(path) - 1) >= 0 && strstr(path, slow)) {
        const char *hold = getenv("SLOW_WHILE");
        static int is_late;

        for (int i = 0; hold && i < 10000 && !access(hold, F_OK); i++) {
            usleep(10 * 1000);
        }
        if (!hold && !is_late++) {
            sleep(3);
        }
    }
    return syscall(SYS_copy_file_range, in, at, out, to, len, flags);
}
