/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Undo and redo: the VM runs again from the state before an input, in this process.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_UNDO_H
#define TT_UNDO_H

#include "checkpoint/tt-checkpointer.h"

/* -tt record,undo=console: after all other options. */
void tt_undo_option(uint64_t pause_ms);

#define TT_UNDO_COUNT_MAX UINT32_MAX

typedef struct TtUndoTask {
    int64_t n;                  /* so many inputs back (< 0) or forward */
    bool cancelled;             /* set it at any time: it ends before anything changed */
    Error *err;                 /* it has ended: why nothing was done, or NULL */
    /* private */
    bool has_begun, is_leaving, has_left, told_cancel;
    TtCheckpointerTask leaving;
} TtUndoTask;

/* No coroutine; does not sleep. Call it until it is true: it has ended. */
bool tt_undo_step(TtUndoTask *t);
/* What is typed on a terminal of the guest's waits, until this is off again: it comes after
 * an undo that has been asked for and has not begun. */
void tt_undo_hold_terminals(bool on);
/* How many inputs can be undone, and redone. */
void tt_undo_counts(uint64_t *undos, uint64_t *redos);

#endif
