/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where to cut a run, so that its parts cost shares of the whole: at checkpoints, whose
 * intervals are weighed by how long they took when they were recorded.
 *
 * That time is a hint. A guest that waits takes time when it is recorded and none when it is
 * executed again, and other processes take some, too. So a position of an interval counts
 * TT_CUT_MOST times as much as usual at most, and as little as 1 / TT_CUT_MOST; and as
 * usual, if no time was noted. (The intervals of a boot took 1 to 137 ns a position when it
 * was recorded, and 1.4 to 15 in a replay. With 2 the guesses of their shares were wrong by
 * 32 % in sum, with 4 by 34 %, by positions alone by 45 %.)
 *
 * Context: any thread; pure.
 */
#ifndef TT_CUT_H
#define TT_CUT_H

#include "io/tt-base.h"

#define TT_CUT_MOST 2

typedef struct TtCutPoint {     /* a checkpoint */
    uint64_t pos, host_ns;      /* host_ns: when it was taken; 0: not noted */
    double cost;                /* of what is before it, in positions of the usual cost */
} TtCutPoint;

/* Fills in the costs of @points, ascending by position. O(n log n). */
void tt_cut_weigh(TtCutPoint *points, size_t n);
/* Of what is before @pos. O(log n). */
double tt_cut_cost(const TtCutPoint *points, size_t n, uint64_t pos);
/* Chooses points between @from and @to, exclusive: those nearest to @shares of the cost,
 * ascending, each once. Their indices go to @out, at most @n_shares; returns how many.
 * O(n_shares log n). */
size_t tt_cut_choose(const TtCutPoint *points, size_t n, uint64_t from, uint64_t to,
                     const double *shares, size_t n_shares, size_t *out);

#endif
