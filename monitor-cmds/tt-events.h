/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events for QMP clients; for rooms that do not use session/tt-events.h yet.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_MONITOR_EVENTS_H
#define TT_MONITOR_EVENTS_H

void tt_event_stopped(uint64_t pos, int reason);
void tt_event_diverged(uint64_t pos, const char *text);
void tt_event_progress(uint64_t done, uint64_t total);
void tt_monitor_refuse_input(bool on);  /* a replay takes none */

#endif
