/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timeline: decides how to get from one position to another, and how to search
 * backwards (TTVM 4.1, URDB 3.2). It knows the checkpoints by position only and
 * sees no VM: it hands out one step at a time, the caller carries the step out
 * and reports how it ended. So a toy VM can drive it through every case.
 *
 * Reverse search is two passes over one interval, newest interval first:
 * pass 1 restores the checkpoint before, runs forward with the stops armed and
 * remembers the last hit before the limit; if there was none, the interval
 * before it is searched, down to the start. Pass 2 goes to the hit.
 *
 * Checkpoints may come and go during a movement: the plan stays valid and uses
 * what is there at each turn. In particular the caller should add some while it
 * scans a long interval, for pass 2 and for the next search.
 *
 * Context: one thread at a time; no I/O, no clock. Cost per call: O(log n) for
 * n checkpoints, unless it says otherwise.
 */
#ifndef TT_TIMELINE_H
#define TT_TIMELINE_H

#include "io/tt-base.h"

typedef struct TtTimeline TtTimeline;
typedef uint32_t TtCheckpointId;        /* never reused; 0 is "none" */

TtTimeline *tt_timeline_new(void);
void tt_timeline_free(TtTimeline *t);

/* ---- checkpoints ---- */
/* @id is chosen by the caller (not 0, unique); @pos unique. @pinned ones are
 * never proposed for thinning. Returns TT_ERR_INVALID otherwise, unchanged.
 * Allowed during a movement. O(n) small moves. */
TtStatus tt_timeline_add(TtTimeline *t, TtCheckpointId id, uint64_t pos,
                         bool pinned);
/* @id must exist. Allowed during a movement, also for the checkpoint that the
 * present step wants to restore: ask tt_timeline_step again, it names another.
 * O(n) small moves. */
void tt_timeline_remove(TtTimeline *t, TtCheckpointId id);
/* A restore failed half-way, and the VM's state is none of history: the next step of
 * this movement is a restore, however near the target was. Before that checkpoint is
 * removed. */
void tt_timeline_lost(TtTimeline *t);
size_t tt_timeline_count(const TtTimeline *t);
/* Nearest checkpoint at or before @pos; 0 if none. */
TtCheckpointId tt_timeline_find(const TtTimeline *t, uint64_t pos,
                                uint64_t *at);
/* Nearest checkpoint strictly after @pos; 0 if none. */
TtCheckpointId tt_timeline_find_after(const TtTimeline *t, uint64_t pos,
                                      uint64_t *at);
/*
 * tt_timeline_thin: which checkpoint to delete when space is short
 * Keeps the first one and pinned ones; of the others, takes the one whose loss
 * hurts least relative to its distance from @now plus @slack: with 0 dense near
 * @now and sparse far away (exponential thinning); with the length of history
 * nearly the same everywhere. 0 when nothing may go. O(n).
 */
TtCheckpointId tt_timeline_thin(const TtTimeline *t, uint64_t now,
                                uint64_t slack);

/* ---- movements ---- */
typedef enum TtStopReason {
    TT_STOP_NONE = 0,
    TT_STOP_TARGET,         /* the wanted position is reached */
    TT_STOP_HIT,            /* a breakpoint or watchpoint, in pass 2 at it */
    TT_STOP_START,          /* history, or what can be restored, begins here */
    TT_STOP_END,            /* history ends here */
    TT_STOP_DIVERGED,
    TT_STOP_INTERRUPTED,    /* the user asked, at a clean position */
    TT_STOP_DAMAGED,        /* the log cannot be read on; a plan knows only that
                               it cannot go on, and calls it diverged */
} TtStopReason;

typedef enum TtStepKind {
    TT_STEP_RESTORE,        /* restore checkpoint @checkpoint, at @pos */
    TT_STEP_RUN,            /* run forward to @pos; stops unarmed */
    TT_STEP_SCAN,           /* run forward to @pos with stops armed: report each
                               hit with tt_timeline_hit and go on. A stop that
                               fires where the run begins, and one that fires
                               on arriving at @pos, are hits like others */
    TT_STEP_DONE,           /* stand still; @reason, and @pos is where */
} TtStepKind;

typedef struct TtStep {
    TtStepKind kind;
    TtCheckpointId checkpoint;
    uint64_t pos;
    TtStopReason reason;
} TtStep;

/*
 * Start a movement; one at a time. @now: position the VM stands at. Going
 * forward restores nothing unless a checkpoint lies between @now and @target.
 * A @target before the first checkpoint ends at that one, with TT_STOP_START
 * (without any checkpoint before @now, at @now); a @target beyond the end ends
 * where the caller reports TT_STOP_END.
 */
void tt_timeline_goto(TtTimeline *t, uint64_t now, uint64_t target);
/* The same from a state that is none of history's: it begins with a restore. */
void tt_timeline_goto_lost(TtTimeline *t, uint64_t target);
/*
 * Search backwards from @now for the last hit at a position < @now.
 * @start: where history begins. On no hit the movement ends at @start with
 * TT_STOP_START (or at the first checkpoint, if that is later). A hit at
 * position p means: the VM would stop at p. A hit at a checkpoint's position
 * counts whether the run that begins there reports it (a breakpoint on the
 * instruction that comes next) or the run that ends there (a watchpoint on what
 * the instruction before it wrote).
 */
void tt_timeline_reverse_continue(TtTimeline *t, uint64_t now, uint64_t start);
/*
 * Scan all of @from..@to that may hold a hit, oldest first, and go back to @now,
 * to end there with TT_STOP_TARGET. The caller keeps the hits itself
 * (tt_timeline_hit is not needed), and leaves out those before @from and those
 * that it has: each scan begins at a checkpoint, which may have to be an earlier
 * one than planned. When it has enough of them it reports TT_STOP_END where it
 * stands.
 */
void tt_timeline_survey(TtTimeline *t, uint64_t now, uint64_t from,
                        uint64_t to);
/*
 * tt_timeline_set_filter: lets a search skip intervals
 * @may_hit (NULL: none) answers: can a stop fire at a position in @from..@to,
 * both included? It must say true when it is not sure. Asked before the
 * interval's checkpoint is restored; must not call the timeline.
 */
typedef bool (*TtMayHit)(void *opaque, uint64_t from, uint64_t to);
void tt_timeline_set_filter(TtTimeline *t, TtMayHit may_hit, void *opaque);
/* The next thing to do. Repeats the same answer until an outcome is reported
 * (or until the checkpoint it names is removed). */
TtStep tt_timeline_step(TtTimeline *t);
/* During TT_STEP_SCAN: a stop fired at @pos (ascending, may repeat). Hits where
 * the search began, or before @start, or outside a scan, are left out here:
 * report them freely. */
void tt_timeline_hit(TtTimeline *t, uint64_t pos);
/* Is the next step a restore on the way to @*target, and nothing else? */
bool tt_timeline_goes_back_to(const TtTimeline *t, uint64_t *target);
/* Then the VM stands there, brought by other means. */
void tt_timeline_is_there(TtTimeline *t);
/*
 * tt_timeline_done: the step was carried out; the VM stands at @pos
 * @why: TT_STOP_NONE or TT_STOP_TARGET when @pos is what the step wanted, or
 * the next position after it where a VM can stand; TT_STOP_END when the run
 * ended before that; TT_STOP_DIVERGED or TT_STOP_INTERRUPTED at any position,
 * in any step (also instead of carrying it out): these two end the movement
 * where the VM stands. Without a movement the report changes nothing (it was
 * interrupted just when it ended).
 */
void tt_timeline_done(TtTimeline *t, uint64_t pos, TtStopReason why);
/* From the start of a movement until its TT_STEP_DONE is due. */
bool tt_timeline_is_moving(const TtTimeline *t);
/* Progress of the movement so far, for people: done/total in positions. Counts
 * steps carried out; the caller adds what the present step has done. @done
 * never shrinks, and stays at or below @total: an estimate, which may change. */
void tt_timeline_progress(const TtTimeline *t, uint64_t *done,
                          uint64_t *total);

#endif
