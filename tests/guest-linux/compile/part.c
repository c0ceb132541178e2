/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One part of the program; NUMBER is replaced. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

uint32_t partNUMBER(void)
{
    uint32_t values[2000], seed = NUMBER * 2654435761u, sum = 0;
    char text[32];

    for (int i = 0; i < 2000; i++) {
        seed = seed * 1103515245 + 12345;
        values[i] = seed >> 8;
    }
    qsort(values, 2000, sizeof(values[0]), compare);
    for (int i = 0; i < 2000; i++) {
        snprintf(text, sizeof(text), "%u", values[i]);
        sum = sum * 31 + (uint32_t)strlen(text) + values[i] % 97;
    }
    return sum;
}
