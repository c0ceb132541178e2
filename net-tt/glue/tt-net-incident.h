/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Incidents of a group: something went wrong in one VM, and all others are told, so that
 * each marks where it stands and keeps its window. Together the marked positions are a
 * consistent cut: a message about an incident is in order with the frames on each link,
 * goes round by all of them, and nothing that comes behind it is delivered before the
 * position is marked (Chandy and Lamport's snapshot, without channels).
 *
 * Context: main thread, the BQL is held.
 */
#ifndef TT_NET_INCIDENT_H
#define TT_NET_INCIDENT_H

#include "net-tt/tt-frame.h"

/*
 * Once, at start. @heard is called when another VM has found an incident and this one is
 * recorded. No frame is delivered until tt_net_incident_is_done has been called as often.
 */
void tt_net_incident_init(void (*heard)(const TtIncident *i));
/* What was heard is dealt with. Not NULL: the recording is at the position that belongs to
 * it, with nothing else at it so far. */
void tt_net_incident_is_done(const TtIncident *i);
/* This VM has found one, and its recording is at a position of its own for it: fills in
 * run and number, notes it and tells all others. */
void tt_net_incident_tell(TtIncident *i);

#endif
