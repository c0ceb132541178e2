/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt origin: what it is asked for and what came of it. tt-tool-origin.c has QEMU look,
 * tt-tool-originsay.c says what was found, tt-tool-line.c knows lines of source code.
 */
#ifndef TT_TOOL_ORIGIN_H
#define TT_TOOL_ORIGIN_H

#include "tt-tool-verify.h"

typedef struct ToolLines ToolLines;
/* NULL: @path has none. */
ToolLines *tool_lines_open(const char *path);
void tool_lines_free(ToolLines *l);             /* NULL is fine */
/* "FILE:LINE", g_free; NULL: not known. */
char *tool_lines_find(const ToolLines *l, uint64_t addr);

typedef struct ToolOrigin {
    const ToolArgs *args;
    const char *run, *place;    /* as it was typed */
    char *asked, *how;          /* for QEMU */
    uint64_t pos, depth, nodes, within, offset;
    ToolReplays replays;        /* one part */
    ToolSearch search;
    ToolSymbols *symbols;
    ToolLines *lines;
    char **disks;               /* the manifest's */
    unsigned n_disks;
    bool is_json, shows_progress, is_interrupted;
} ToolOrigin;

/* Returns an exit status. */
int tool_origin_say(const ToolOrigin *o);

#endif
