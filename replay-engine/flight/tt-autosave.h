/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Saving the window of a flight recorder by itself, after something went wrong.
 *
 * Context: the BQL is held.
 */
#ifndef TT_AUTOSAVE_H
#define TT_AUTOSAVE_H

/* Once, at start. */
void tt_autosave_init(void);
/* @mark was just made where something went wrong: the window is saved under its name a
 * moment later, if there is one and its turn has come. False: a window is left out, which was
 * said. */
bool tt_autosave_plan(const char *mark);

#endif
