/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marks of a recording: they go into its log, and are remembered, so that nobody has
 * to read that while it is written.
 *
 * Context: the BQL is held.
 */
#ifndef TT_MARK_LOG_H
#define TT_MARK_LOG_H

#include "run/tt-marks.h"

bool tt_mark_check(const char *name, Error **errp);     /* may it be a name? */
/* The position where the recording stands gets the name; it is *@pos. */
bool tt_mark_record(const char *name, uint64_t *pos, Error **errp);
/* Those that this process recorded into the run, and that its window still has. */
void tt_mark_each_recorded(TtMarkFound *found, void *opaque);

#endif
