/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A few positions that stand for a whole run: those that somebody named, and others in
 * the widest gaps between them.
 *
 * Context: any thread; pure.
 */
#ifndef TT_SPREAD_H
#define TT_SPREAD_H

#include "io/tt-base.h"

/*
 * At most @max positions of @from..@to, ascending, each once, into @out; returns how many.
 * First come the @n positions @named that are in there, in any order; if they are too many,
 * the first, the last and of the others every so manyth. What room is left goes to @to, and
 * then, one after the other, to the middle of the widest gap. @from itself is only taken
 * if it is named. Cost: O(n log n + max^2).
 */
size_t tt_spread(const uint64_t *named, size_t n, uint64_t from, uint64_t to, uint64_t *out,
                 size_t max);

#endif
