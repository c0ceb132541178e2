/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For the QEMU that this is preloaded into, a vCPU that is told to leave guest code hears
 * it 2 ms late while the file /tmp/late is there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

int pthread_kill(pthread_t thread, int number)
{
    int (*next)(pthread_t, int) = (int (*)(pthread_t, int))dlsym(RTLD_NEXT, "pthread_kill");
    struct timespec pause = { .tv_nsec = 2000000 };

    if (!access("/tmp/late", F_OK)) {
        nanosleep(&pause, NULL);
    }
    return next(thread, number);
}
