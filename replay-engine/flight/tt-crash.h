/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A crash of the guest: finds it, marks it, and has the window saved.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_CRASH_H
#define TT_CRASH_H

/* Once, at start: watches the console of every recording. */
void tt_crash_init(void);
extern const char tt_panic_pattern_default[];
/* A regular expression for lines of the console; "": none are looked at. */
bool tt_crash_set_pattern(const char *text, Error **errp);
void tt_crash_settle(void);           /* what was met and is not marked yet */

#endif
