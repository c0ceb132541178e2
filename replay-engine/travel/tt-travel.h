/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Movements through history. The vCPU thread carries them out.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_TRAVEL_H
#define TT_TRAVEL_H

#include "hw/core/cpu.h"

typedef void TtTravelDone(void *opaque, uint64_t pos, int reason);

void tt_travel_init(void);                      /* before the options */
void tt_travel_close(void);                     /* no movement is under way */
bool tt_travel_active(void);
/* A step backwards compares the bytes of watchpoints up to this size, for gdb. */
#define TT_WATCH_COMPARED 4096
/*
 * Post a movement; the vCPU thread carries it out. @done is called there. A trap
 * comes together with its instruction: a movement to the position between the
 * two ends after them; one back from @from, by 1 to @from positions, ends before
 * them. (@from is where the user stands: a past that is entered begins at 0.)
 */
bool tt_travel_goto(uint64_t target, TtTravelDone *done, void *opaque,
                    Error **errp);
bool tt_travel_back(uint64_t from, uint64_t count, TtTravelDone *done,
                    void *opaque, Error **errp);
/* Run forward to @target and skip nothing, so that every digest is compared. */
bool tt_travel_run(uint64_t target, TtTravelDone *done, void *opaque,
                   Error **errp);
/* The first checkpoint after this position, if there is one. */
bool tt_travel_next_point(uint64_t *at);
/* Back to the last stop, or, with @stepper, by a step: to before the last position of that
 * vCPU, unless another one met a stop since. */
bool tt_travel_reverse(CPUState *stepper, TtTravelDone *done, void *opaque, Error **errp);
/*
 * Scan @from..@to for stops, oldest first, and come back. @hit is called for each
 * of gdb's breakpoints met there, in the vCPU thread; it says false when it has
 * enough.
 */
typedef bool TtTravelHit(void *opaque, uint64_t pos, uint64_t pc);
bool tt_travel_survey(uint64_t from, uint64_t to, TtTravelHit *hit,
                      TtTravelDone *done, void *opaque, Error **errp);
/*
 * Run forward to @target with gdb's kinds of stops armed, and stay there. @visit is
 * called, in the vCPU thread, at the start, at the end, wherever a breakpoint or
 * watchpoint fires (after the access), and before and after each event that changes the
 * VM between or in instructions, so that code that watches memory hears of what devices
 * write; with @each at every position that can be stood at. @is_hit: a stop fired, so the
 * instruction here is the next that is executed. It says false when it has enough: then
 * the movement ends with TT_STOP_TARGET, here, or after the instruction or event that is
 * under way. It may change stops.
 */
typedef bool TtTravelVisit(void *opaque, uint64_t pos, bool is_hit);
bool tt_travel_scan(uint64_t target, bool each, TtTravelVisit *visit,
                    TtTravelDone *done, void *opaque, Error **errp);
bool tt_travel_scans(void);             /* is such a movement under way? */
/* Within @visit: the watchpoint that fired, one if several did, or NULL. */
const CPUWatchpoint *tt_travel_watch_hit(void);
void tt_travel_interrupt(void);         /* any thread */
void tt_travel_abort(void);             /* the vCPU does not run */
void tt_travel_end(void);               /* nor will it ever again */
/* Of the movement under way, in positions; 0 of 0: there is none. */
void tt_travel_progress(uint64_t *done, uint64_t *total);

/*
 * The task of a replay that no user moves: verification, a trace. It begins as soon as
 * the replay can be moved, and ends the process. Functions that a task does not need
 * are NULL.
 */
typedef struct TtTravelTask {
    void (*begin)(void);
    /* See TtReplayDriver. */
    bool (*goes_on)(const char *why);
    bool (*is_restoring)(void);
} TtTravelTask;

void tt_travel_set_task(const TtTravelTask *task);  /* main thread, before it */

/* Is there anything to travel in? */
bool tt_travel_is_possible(Error **errp);
/* Post the making of one for the present position; tt_travel_pinned says its id
 * when that is done (0: it could not be made). */
bool tt_travel_pin(TtTravelDone *done, void *opaque, Error **errp);
uint32_t tt_travel_pinned(void);
bool tt_travel_delete(uint64_t id, Error **errp);

#endif
