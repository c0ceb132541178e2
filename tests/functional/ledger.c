/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For long-tools: a service with a bug. It reads from a file how much may be paid at once,
 * and keeps that in too small a number; long after, it refuses what it should pay. With
 * -DNEW: mended. ledger FILE COUNT MICROSECONDS: answers so many requests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef NEW
unsigned int limit;
#else
unsigned short limit;
#endif
unsigned int served, refused;

static void parse(const char *line)
{
    if (!strncmp(line, "limit ", 6)) {
        limit = strtoul(line + 6, NULL, 10);    /* the bug: 70000 has no room */
    }
}

static int read_settings(const char *path)
{
    char line[80];
    FILE *in = fopen(path, "r");

    if (!in) {
        return 1;
    }
    while (fgets(line, sizeof(line), in)) {
        parse(line);
    }
    return fclose(in);
}

static void refuse(unsigned int sum)
{
    printf("refused %u\n", sum);
    fflush(stdout);
    refused++;
}

static void serve(unsigned int sum)
{
    served++;
    if (sum > limit) {
        refuse(sum);                            /* the bug shows here */
    }
}

int main(int argc, char **argv)
{
    if (argc < 4 || read_settings(argv[1])) {
        return 2;
    }
    for (int i = 0, n = atoi(argv[2]); i < n; i++) {
        serve(i % 1000 == 999 ? 5000 : i % 100);
        usleep(atoi(argv[3]));
    }
    printf("%u served, %u refused\n", served, refused);
    return 0;
}
