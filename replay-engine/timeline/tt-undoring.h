/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Undo log of single steps (Koju et al., VEE 2005): the old values of what the last steps
 * changed, in a ring. Going back inside it puts them back and executes nothing.
 *
 *   oldest                                                     newest
 *   | step from 100 | step from 101 | step from 103 | open: from 104 |
 *       a note: what it is of, its place, the old bytes; last comes its head, so
 *       that the notes can be read backwards
 *
 *   I1  Steps follow each other without a gap: each begins where the one before it ended.
 *   I2  The notes of a step, put back newest first, lead from its end to its beginning.
 *   I3  What does not fit pushes the oldest steps out. A step larger than the ring leaves
 *       nothing of it, so the ring then holds no position before the end of that step.
 *
 * Context: any thread, one at a time; pure. Memory: see tt_undoring_new; no allocation
 * after that.
 */
#ifndef TT_UNDORING_H
#define TT_UNDORING_H

#include "io/tt-base.h"

/* Of one note; more bytes make several. */
#define TT_UNDORING_NOTE_MAX 4096
/* A step takes at least so many bytes of the ring. */
#define TT_UNDORING_STEP_MIN 64

typedef struct TtUndoRing TtUndoRing;

/* Takes 5/4 of @bytes, which is at least 16 KiB, rounded down to a power of two. NULL: there
 * is not enough memory. */
TtUndoRing *tt_undoring_new(size_t bytes);
void tt_undoring_free(TtUndoRing *r);

/* The step from @pos begins. Where the one before ended elsewhere, that and all others are
 * forgotten first. No step is open. */
void tt_undoring_begin(TtUndoRing *r, uint64_t pos);
/* In an open step: @len bytes, 1 or more, at @place, of the caller's kind @kind, are about
 * to change, or may be; @old is what they are. O(len). */
void tt_undoring_note(TtUndoRing *r, uint32_t kind, uint64_t place, const void *old,
                      size_t len);
/* The bytes @now, at @place, were @before when this was last called: notes what has changed,
 * by words, and makes @before the same. @len: a multiple of 8; both are aligned. Tens of GB
 * a second where nothing has. */
void tt_undoring_note_changes(TtUndoRing *r, uint32_t kind, uint64_t place, void *before,
                              const void *now, size_t len);
/* The step ends at @pos, which is after where it began. */
void tt_undoring_end(TtUndoRing *r, uint64_t pos);
bool tt_undoring_is_open(const TtUndoRing *r);
/* Forgets everything, the open step, too. */
void tt_undoring_clear(TtUndoRing *r);

/* Does a step that ended begin at @pos? O(log steps). */
bool tt_undoring_holds(const TtUndoRing *r, uint64_t pos);
/* Steps that ended and are held, and the bytes that they take. */
size_t tt_undoring_steps(const TtUndoRing *r);
size_t tt_undoring_bytes(const TtUndoRing *r);

/*
 * Goes back to @pos, which is held: @put is called for each note, newest first, and the
 * steps from @pos on are forgotten, the open one, too. @old is valid in the call only.
 */
typedef void TtUndoRingPut(void *opaque, uint32_t kind, uint64_t place, const void *old,
                           size_t len);
void tt_undoring_back(TtUndoRing *r, uint64_t pos, TtUndoRingPut *put, void *opaque);

#endif
