/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bisection of a part of history: the first position at which something is true that
 * stays true from then on. It says which position to look at next; checkpoints first,
 * since a restore is all that these cost. Then each half begins where the last look
 * was, or at the last position at which it was false; so all that is executed is about
 * one interval between checkpoints, if the caller leaves a checkpoint where it looks.
 *
 * Invariant: false at low (or low is before the start), true at high, and no position
 * in [top, high) can be stood at.
 *
 * Context: any thread. Internal API.
 */
#ifndef TT_BISECT_H
#define TT_BISECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TtBisect {
    uint64_t low, top, high;
    const uint64_t *points;     /* positions of checkpoints, ascending */
    size_t n_points;
} TtBisect;

/* False at @low, true at @high > @low. @points stay the caller's. */
void tt_bisect_begin(TtBisect *b, uint64_t low, uint64_t high, const uint64_t *points,
                     size_t n_points);
/* The position to look at; false: @b->high is the answer. */
bool tt_bisect_next(const TtBisect *b, uint64_t *pos);
/* The caller wanted to look at @wanted and stood at @pos, the first possible position
 * from there on. */
void tt_bisect_take(TtBisect *b, uint64_t wanted, uint64_t pos, bool is_true);

#endif
