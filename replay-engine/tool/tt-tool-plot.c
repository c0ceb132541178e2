/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt log --device --timeline: how often driver and device spoke, over positions.
 */
#include "tt-tool-device.h"

#include <inttypes.h>
#include <stdio.h>

enum { ROWS = 32, WIDTH = 12 };

void tool_plot_add(ToolPlot *p, uint64_t pos, unsigned kind)
{
    ToolPlace at = { pos, kind };

    if (!p->places) {
        p->places = g_array_new(false, false, sizeof(ToolPlace));
    }
    g_array_append_val(p->places, at);
}

static void print_bar(uint64_t n, uint64_t most)
{
    unsigned marks = n ? 1 + n * (WIDTH - 1) / most : 0;

    if (marks > WIDTH) {
        marks = WIDTH;
    }
    printf("  %8" PRIu64 " %-*.*s", n, WIDTH, (int)marks, "############");
}

void tool_plot_print(const ToolPlot *p)
{
    uint64_t count[ROWS][PLOT_KINDS] = { { 0 } }, most[PLOT_KINDS] = { 0 };
    uint64_t first, last, step;

    if (!p->places || !p->places->len) {
        return;
    }
    first = g_array_index(p->places, ToolPlace, 0).pos;
    last = g_array_index(p->places, ToolPlace, p->places->len - 1).pos;
    step = last < first ? 1 : (last - first) / ROWS + 1;
    for (unsigned i = 0; i < p->places->len; i++) {
        const ToolPlace *at = &g_array_index(p->places, ToolPlace, i);
        uint64_t row = at->pos < first ? 0 : (at->pos - first) / step;
        uint64_t *n = &count[row < ROWS ? row : ROWS - 1][at->kind];

        ++*n;
        if (*n > most[at->kind]) {
            most[at->kind] = *n;
        }
    }
    printf("%14s  %-21s  %-21s  %-21s  %-21s\n", "from position", "  writes",
           "   reads", "     DMA", "interrupts");
    for (unsigned row = 0; row < ROWS; row++) {
        printf("%14" PRIu64, first + row * step);
        for (unsigned k = 0; k < PLOT_KINDS; k++) {
            print_bar(count[row][k], most[k]);
        }
        putchar('\n');
    }
}
