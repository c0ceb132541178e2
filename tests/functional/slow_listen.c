/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For the program that this is preloaded into, a socket refuses connections for a second
 * after its file has appeared. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

int listen(int fd, int backlog)
{
    int (*next)(int, int) = dlsym(RTLD_NEXT, "listen");

    usleep(1000 * 1000);
    return next(fd, backlog);
}
