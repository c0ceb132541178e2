/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bench of the ring of undo entries: what the core takes of a step that is logged, and of
 * one that is put back. A step compares 6 KiB of registers, of which 8 to 48 bytes have
 * changed in three places, and stores 8 bytes, in two of five steps. Asserts no times.
 */
#include "timeline/tt-undoring.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

#define REGS    6144
#define MEMORY  (1u << 20)
#define ROUNDS  9

static uint64_t before[REGS / 8], now[REGS / 8];
static uint8_t memory[MEMORY];

static void put(void *opaque, uint32_t kind, uint64_t place, const void *old, size_t len)
{
    memcpy(kind ? memory + place : (uint8_t *)now + place, old, len);
    if (!kind) {
        memcpy((uint8_t *)before + place, old, len);
    }
}

static void step(TtUndoRing *r, uint64_t pos)
{
    size_t at = pos * 264 % (MEMORY - 8);

    tt_undoring_begin(r, pos);
    if (pos % 5 < 2) {
        tt_undoring_note(r, 1, at, memory + at, 8);
        memory[at]++;
    }
    now[pos % 16]++;
    now[16]++;
    now[20 + pos % 4] = pos;
    now[REGS / 8 - 1] += pos % 3;
    tt_undoring_note_changes(r, 0, 0, before, now, REGS);
    tt_undoring_end(r, pos + 1);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(void)
{
    for (unsigned n = 1 << 11; n <= 1 << 17; n *= 8) {
        double fill[ROUNDS], back[ROUNDS];
        TtUndoRing *r = tt_undoring_new((size_t)n * 512);
        size_t bytes = 0;

        for (unsigned round = 0; round < ROUNDS; round++) {
            int64_t began = g_get_monotonic_time(), middle;

            for (uint64_t pos = 0; pos < n; pos++) {
                step(r, pos);
            }
            middle = g_get_monotonic_time();
            bytes = tt_undoring_bytes(r);
            tt_undoring_back(r, 0, put, NULL);
            fill[round] = 1000.0 * (middle - began) / n;
            back[round] = 1000.0 * (g_get_monotonic_time() - middle) / n;
        }
        qsort(fill, ROUNDS, sizeof(fill[0]), by_value);
        qsort(back, ROUNDS, sizeof(back[0]), by_value);
        printf("%6u steps, %3.0f bytes each: logged in %6.1f ns (%.1f to %.1f), put back in "
               "%6.1f ns (%.1f to %.1f), median of %d\n", n, (double)bytes / n,
               fill[ROUNDS / 2], fill[0], fill[ROUNDS - 1], back[ROUNDS / 2], back[0],
               back[ROUNDS - 1], ROUNDS);
        tt_undoring_free(r);
    }
    return 0;
}
