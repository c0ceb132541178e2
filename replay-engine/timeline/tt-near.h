/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Near checkpoints: where a movement leaves some shortly before the position that it
 * goes to, so that the next steps backwards have little to execute again.
 *
 * Their distances to the target shrink by a factor. A walk backwards passes one after
 * the other; after the last of them it restores the next, which is farther, and leaves
 * new ones on the way. So n steps make O(log n) of them, and a step executes on
 * average a few thousand positions.
 *
 * Context: any thread; pure.
 */
#ifndef NEAR_H
#define NEAR_H

#include "io/tt-base.h"

#define TT_NEAR_FACTOR  8
/* No farther than this: sync points and their checkpoints lie that near. */
#define TT_NEAR_FIRST   (1ull << 20)
/* No nearer: some microseconds of guest work. */
#define TT_NEAR_LAST    (1ull << 11)

/* The first place after @pos on the way to @target; 0: there is none. */
uint64_t tt_near_next(uint64_t pos, uint64_t target);
/* Of the @n positions @at, the one to give up when the VM stands at @now: its index.
 * @n > 0. */
size_t tt_near_worst(const uint64_t *at, size_t n, uint64_t now);

#endif
