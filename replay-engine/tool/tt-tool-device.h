/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt log --device: the dialogue of a driver and its device.
 */
#ifndef TT_TOOL_DEVICE_H
#define TT_TOOL_DEVICE_H

#include "tt-tool.h"

typedef struct ToolDialogue ToolDialogue;

/* By --device, --registers, --timeline, --json. NULL: said why. */
ToolDialogue *tool_dialogue_new(const ToolArgs *a);
void tool_dialogue_free(ToolDialogue *d);
/* What the segment has of it, from position @from to @to. False: enough. */
bool tool_dialogue_add(ToolDialogue *d, const TtSegment *seg, uint64_t from,
                       uint64_t to, uint64_t *limit);
/* After the last. False: the run knows no such device, which was said. */
bool tool_dialogue_end(ToolDialogue *d);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(ToolDialogue, tool_dialogue_free)

/* ---- the plot ---- */
enum { PLOT_WRITE, PLOT_READ, PLOT_DMA, PLOT_INTERRUPT, PLOT_KINDS };

typedef struct ToolPlot {
    GArray *places;             /* of ToolPlace */
} ToolPlot;

typedef struct ToolPlace {
    uint64_t pos;
    unsigned kind;
} ToolPlace;

void tool_plot_add(ToolPlot *p, uint64_t pos, unsigned kind);
void tool_plot_print(const ToolPlot *p);

#endif
