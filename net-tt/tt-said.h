/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sentences about what others send: which kinds were said, and when each may be said again.
 *
 * Context: any thread, one at a time. No allocation, no errors. Times are of any clock that
 * does not go back, in any unit.
 */
#ifndef TT_SAID_H
#define TT_SAID_H

#include <stdbool.h>
#include <stdint.h>

#define TT_SAID_KINDS   16

/* Of one kind, which its format names. Zeros to begin with. */
typedef struct TtSaid {
    const char *fmt;
    int64_t next, wait;         /* when it may be said again; how long that was */
    uint64_t n_unsaid;          /* the caller counts */
} TtSaid;

/* That of @fmt, by its address. A new kind has the place that was used last, if all are. */
TtSaid *tt_said_of(TtSaid kinds[TT_SAID_KINDS], const char *fmt);
bool tt_said_is_due(const TtSaid *s, int64_t now);
/* It is said now, and then not for @first; while it goes on, each time for twice as long, @max
 * at most; it has ended when none comes for as long again. How many like it were not said. */
uint64_t tt_said_now(TtSaid *s, int64_t now, int64_t first, int64_t max);

#endif
