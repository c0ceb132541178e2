/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt page: what its files share. tt-tool-page-log.c adds the log up, so that the page has
 * the same size for any run; tt-tool-page-shots.c takes the pictures; tt-tool-page.c writes
 * it.
 */
#ifndef TT_TOOL_PAGE_H
#define TT_TOOL_PAGE_H

#include "tt-tool.h"

enum {
    PAGE_BINS = 2000,           /* at most, over the positions of the run */
    PAGE_TIMES = 2000,
    PAGE_LINES_FIRST = 500,     /* of the console; what is between is left out */
    PAGE_LINES_LAST = 3500,
    PAGE_LINE_BYTES = 300,
    PAGE_LIST = 2000,           /* checkpoints, marks, branches: of each */
    PAGE_SHOTS = 100,           /* pictures */
};

typedef struct PageShot {
    uint64_t pos;
    unsigned same_as;           /* an earlier one, or this */
    unsigned width, height;
    char *png;                  /* in base64; NULL: an earlier one has it */
} PageShot;

typedef struct PageShots {
    GArray *all;                /* of PageShot, by position */
    char *note;                 /* a sentence: why some or all are missing; NULL: none is */
    int result;                 /* TOOL_FINE: for no fault of the run */
} PageShots;

typedef struct PageLine {
    uint64_t pos;
    char *text;
} PageLine;

typedef struct PageTime {
    uint64_t pos, ns;
} PageTime;

typedef struct PageLog {
    uint64_t start, end, width; /* positions; of a bin */
    unsigned n_bins;
    uint64_t *count[TT_EV_KIND_MAX + 1];    /* NULL: there are none of it */
    uint64_t *io, *dma, *log_bytes;
    GArray *times;              /* of PageTime */
    GPtrArray *lines;           /* of PageLine */
    uint64_t n_lines_left_out;
    TtDiag damage;              /* status TT_OK: none */
    uint64_t damaged_at;        /* a position; @end: not before */
} PageLog;

/* Reads all of @r, as far as it can be read. Memory: the size of the page. */
void page_log_read(PageLog *p, TtLogReader *r, uint64_t start, uint64_t end);
void page_log_cleanup(PageLog *p);

void page_shots_init(PageShots *s);
/* Has QEMU replay @run, and takes @n pictures. False: said why not. Cost: as a replay of the
 * run, or, where there are checkpoints shortly before each of them, less. */
bool page_shots_take(PageShots *s, const ToolArgs *a, const char *run, const TtManifest *m,
                     const PageLog *p, unsigned n);
void page_shots_cleanup(PageShots *s);

#endif
