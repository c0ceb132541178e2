/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Saving the window of a flight recorder as a run of its own. Private to
 * replay-engine/glue; what others may ask for is in tt/engine.h.
 */
#ifndef TT_SAVE_H
#define TT_SAVE_H

#include "tt/engine.h"

/* Shelf's thread, between two jobs: the store's files are as the last flush left
 * them. */
bool tt_save_carry_out(void);           /* false: it failed, and all of it is gone */
/* BQL. One was begun, and has not been reported. */
bool tt_save_is_busy(void);
/* BQL. The recording has ended, and the shelf's thread, too: what was saved just
 * before is reported. */
void tt_save_settle(void);

#endif
