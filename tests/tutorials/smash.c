/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bug of docs/tutorials/smashed-stack.rst: times are read into an array
 * that is too small for them, and the program crashes long after.
 */
#include <stdio.h>

/* Reads all times of a file; says how many. */
static int collect(FILE *in, unsigned long *times)
{
    unsigned long t;
    int n = 0;

    while (fscanf(in, "%lu", &t) == 1) {
        times[n++] = t;         /* the bug: who says that there is room? */
    }
    return n;
}

/* Some work, so that the crash is not next to the bug. */
static unsigned long mix(unsigned long value, int rounds)
{
    while (rounds--) {
        value = value * 6364136223846793005ul + 1442695040888963407ul;
    }
    return value;
}

static int report(const char *path)
{
    unsigned long times[8] = { 0 };
    FILE *in = fopen(path, "r");

    if (!in) {
        return 1;
    }
    printf("%d times\n", collect(in, times));
    printf("key %016lx\n", mix(times[0], 3000000));
    return 0;
}

int main(int argc, char **argv)
{
    int status = argc > 1 ? report(argv[1]) : 2;

    puts(status ? "no report" : "done");
    return status;
}
