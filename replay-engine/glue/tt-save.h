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
void tt_save_carry_out(void);
/* BQL. The recording has ended, and the shelf's thread, too: what was saved just
 * before is reported. */
void tt_save_settle(void);

#endif
