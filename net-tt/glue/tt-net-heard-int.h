/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Incidents that other VMs report: which is new, which is not dealt with yet.
 *
 * Context: the BQL is held.
 */
#ifndef TT_NET_HEARD_INT_H
#define TT_NET_HEARD_INT_H

#include "net-tt/tt-link.h"

typedef enum TtNetHeard {
    TT_NET_HEARD_NEW,           /* once for each, whatever way it came */
    TT_NET_HEARD_BEFORE,
    TT_NET_HEARD_TOO_MUCH,      /* it is dropped */
} TtNetHeard;

/* One of another VM came by a link, as @f: *@i. */
TtNetHeard tt_net_incident_came(const TtFrame *f, TtIncident *i);
/* One is not marked yet: nothing may be delivered. */
bool tt_net_incident_is_pending(void);
void tt_net_incident_begins(void);
bool tt_net_incident_ends(void);        /* and none is pending any more */

#endif
