/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The window of a flight recorder: which checkpoints and which parts of the log a
 * recording still needs, when it is to keep its last minutes only.
 *
 * Model: the log is a row of parts, each so many bytes, that begin at segments.
 * Points are stored checkpoints; each has a place in the log from which a replay
 * goes on that begins with it. The window begins at the oldest point: parts that
 * end before its place are spent. A point is surplus when the one after it is old
 * enough to begin the window instead, or when the log is too long from it on; but
 * only when the segment in which that one goes on is in the log. The newest point is
 * never surplus.
 *
 * Time is what the caller says it is, and never goes back. Nothing here is
 * deleted: the caller asks what may go, deletes it, and reports that.
 *
 * Context: one thread at a time; no I/O. Cost: O(points + parts) a call at most.
 */
#ifndef TT_WINDOW_H
#define TT_WINDOW_H

#include "io/tt-base.h"

typedef struct TtWindow TtWindow;

typedef struct TtWindowLimits {
    uint64_t ns;                /* length of the window, in time */
    uint64_t log_bytes;         /* of all parts together; 0: no limit */
} TtWindowLimits;

TtWindow *tt_window_new(const TtWindowLimits *limits);
void tt_window_free(TtWindow *w);
void tt_window_set_limits(TtWindow *w, const TtWindowLimits *limits);

/* ---- the log ---- */
/* Part @number (not 0, one more than the last) begins with segment @seq. */
void tt_window_begin_part(TtWindow *w, uint32_t number, uint64_t seq);
/* The newest part is so much longer; segments before @end_seq are in the log. */
void tt_window_grow(TtWindow *w, uint64_t bytes, uint64_t end_seq);
/* Is the newest part long enough, compared with the window, to begin another? */
bool tt_window_wants_part(const TtWindow *w);
/* Of all parts that are there. */
uint64_t tt_window_log_bytes(const TtWindow *w);
unsigned tt_window_n_parts(const TtWindow *w);
uint32_t tt_window_oldest_part(const TtWindow *w);      /* 0: there is none */
/* The oldest part, if no point needs it: delete it, and say so with drop. 0: none
 * is spent. */
uint32_t tt_window_spent_part(const TtWindow *w);
void tt_window_drop_part(TtWindow *w);

/* ---- points ---- */
typedef struct TtWindowPoint {
    uint32_t id;                /* not 0 */
    uint64_t pos;
    uint64_t ns;                /* when it was taken */
    uint64_t seq;               /* the log goes on from it in this segment */
} TtWindowPoint;

/* Points come by position; the log's parts are reported before. */
void tt_window_add(TtWindow *w, const TtWindowPoint *p);
/* It was deleted, for whatever reason. Fine when it is not there. */
void tt_window_remove(TtWindow *w, uint32_t id);
size_t tt_window_n_points(const TtWindow *w);
/* Where the window begins; false: there is no point. */
bool tt_window_first(const TtWindow *w, TtWindowPoint *p);
/* The one after it, with which the window could begin; 0: there is none. */
uint32_t tt_window_second(const TtWindow *w);
/* The oldest point, if it is surplus at @now_ns: delete it, say so with remove, and
 * ask again. 0: none is. */
uint32_t tt_window_surplus(const TtWindow *w, uint64_t now_ns);
/* Is the log so long since the newest point that another should be taken before its
 * time? */
bool tt_window_wants_point(const TtWindow *w);

#endif
