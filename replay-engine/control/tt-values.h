/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of options that the command line and the monitor share.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_VALUES_H
#define TT_VALUES_H

/* False: no such interval, and nothing is said; see tt_interval_help. */
bool tt_interval_parse(double seconds, uint64_t *ms);
extern const char tt_interval_help[];
/* Time with a unit, as of last=; false: it is none, *errp. */
bool tt_window_parse(const char *text, uint64_t *ns, Error **errp);
bool tt_window_fits(uint64_t ns, uint64_t interval_ms, Error **errp);
extern const char tt_save_on_panic_help[];

#endif
