/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Aligns two sequences: the shortest script of deletions and insertions (Myers 1986, as in
 * diff). For two runs of a program, whose calls are the elements.
 *
 * Context: any thread. No state.
 */
#ifndef TT_ALIGN_H
#define TT_ALIGN_H

#include <stdint.h>

/* Elements that only one side has; between two of these, both are the same. */
typedef struct TtHunk {
    uint32_t a, n_a;            /* in the first: index, how many */
    uint32_t b, n_b;
} TtHunk;

/*
 * How many hunks there are, in *@hunks, ascending, for the caller to g_free; 0: both are
 * the same. If it takes more than @max
 * elements that only one side has, all from the first difference on to the last is one
 * hunk. Cost: O((n + m) * d) time, O(min(d, @max)^2) memory, where d is how many these
 * are; @max of 4000 takes 64 MB at most.
 */
uint32_t tt_align(const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m,
                  uint32_t max, TtHunk **hunks);

#endif
