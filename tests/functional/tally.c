/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For long-tools: two threads count without a lock. tally COUNT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned int total;
static pthread_barrier_t both;

static void *count_up(void *count)
{
    pthread_barrier_wait(&both);
    for (int i = 0; i < *(int *)count; i++) {
        total = total + 1;                      /* the bug: another thread does the same */
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1000;
    pthread_t a, b;

    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&a, NULL, count_up, &count);
    pthread_create(&b, NULL, count_up, &count);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%u instead of %d\n", total, 2 * count);
    return 0;
}
