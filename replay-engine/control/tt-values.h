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

/* step-memory= of a replay, with K, M or G, set while debugging: see
 * tt_travel_ring_resize. */
bool tt_step_memory_set(const char *text, Error **errp);
/* A place that a user names, in a run from @first to @end: is it in the run? */
bool tt_place_is_inside(uint64_t pos, uint64_t first, uint64_t end, Error **errp);
bool tt_place_may_be_back(uint64_t count, uint64_t now, uint64_t first, Error **errp);

#endif
