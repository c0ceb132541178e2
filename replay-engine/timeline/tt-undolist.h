/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Undo and redo: which states there are to go back to, and where in the typed text an
 * input begins.
 *
 *   points   [0] .. [at - 1]   before each input, oldest first: to undo
 *            [at]              where the VM went on, if it was undone to there
 *            [at + 1] ..       to redo; the last one is the state that the first undo left
 *
 * An input at [at] takes the place of all states that could be redone.
 *
 * Context: any thread, one at a time; pure.
 */
#ifndef TT_UNDOLIST_H
#define TT_UNDOLIST_H

#include "io/tt-base.h"

/* Inputs that can be undone; older ones are forgotten. */
#define TT_UNDO_MAX 100000

/* In place of an id: there is no checkpoint before that input. */
#define TT_UNDO_NO_POINT 0

typedef struct TtUndoPoint {
    const char *run;                /* its directory; stays valid */
    uint32_t id;                    /* of a full checkpoint of that */
    unsigned depth;                 /* so many runs are its parents */
} TtUndoPoint;

typedef struct TtUndoList TtUndoList;

TtUndoList *tt_undolist_new(void);
void tt_undolist_free(TtUndoList *u);

/* An input comes, and the state before it is @p. */
void tt_undolist_add(TtUndoList *u, const TtUndoPoint *p);
size_t tt_undolist_undos(const TtUndoList *u);
size_t tt_undolist_redos(const TtUndoList *u);
/* Nothing can be redone: what is to be left by an undo is @p. */
void tt_undolist_leave(TtUndoList *u, const TtUndoPoint *p);
/* @n inputs back (< 0) or forward from here; NULL: there are not so many. */
const TtUndoPoint *tt_undolist_at(const TtUndoList *u, int64_t n);
/* The VM is there now. */
void tt_undolist_go(TtUndoList *u, int64_t n);

/*
 * Input typed on one terminal. An input ends after a line's end or ^C or ^D, and it
 * begins anew after a pause.
 */
typedef struct TtTyping {
    bool has_any, is_at_end;
    uint8_t last;
    int64_t last_ms;
} TtTyping;

/* Is @byte, typed at @now_ms, the first of an input? Call it for each, in order. */
bool tt_typing_begins(TtTyping *t, uint8_t byte, int64_t now_ms, int64_t pause_ms);

#endif
