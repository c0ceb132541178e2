/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marks: names of positions.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_MARK_H
#define TT_MARK_H

#include "run/tt-marks.h"

/* Marks of the log and of RUN/marks: all; the last of a name counts. Names of a damaged
 * run may be any text. Reads the whole log. */
void tt_mark_each(TtMarkFound *found, void *opaque);
bool tt_mark_find(const char *name, uint64_t *pos, Error **errp);
/* Of the position where the VM stands; it is *@pos. */
bool tt_mark_add(const char *name, uint64_t *pos, Error **errp);

#endif
