/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the benches of the page store share: a RAM, and an order for times. */
#ifndef BENCH_RAM_H
#define BENCH_RAM_H

#include "pages/tt-pagestore.h"

static uint8_t *ram;

static const void *fetch(void *opaque, uint64_t page)
{
    return ram + page * TT_PAGE_BYTES;
}

static void put(void *opaque, uint64_t page, const void *bytes)
{
    if (bytes) {
        memcpy(ram + page * TT_PAGE_BYTES, bytes, TT_PAGE_BYTES);
    } else {
        memset(ram + page * TT_PAGE_BYTES, 0, TT_PAGE_BYTES);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

#endif
