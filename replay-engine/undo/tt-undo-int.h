/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the two halves of undo. Main thread, BQL held. */
#ifndef TT_UNDO_INT_H
#define TT_UNDO_INT_H

#include "timeline/tt-undolist.h"

/* ---- tt-undo.c ---- */
TtUndoList *tt_undo_list(void);
TtUndoPoint tt_undo_point(uint32_t id);     /* a checkpoint of the present run */
bool tt_undo_is_at_work(void);          /* what is typed now comes after it */

/* ---- tt-typed.c ---- */
void tt_typed_begin(int64_t pause_ms);
void tt_typed_anew(void);               /* what comes next begins an input */
bool tt_typed_is_any(void);             /* an input waits for its checkpoint */

#endif
