/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Incidents that other VMs report: which of them is new, and how many are taken, since each
 * costs a pause, a mark and perhaps a window on disk. Owns what was heard.
 */
#include "qemu/osdep.h"
#include "tt-net-heard-int.h"
#include "qemu/timer.h"

static struct {
    TtHeard told;
    unsigned n_pending;
    TtBurst burst;
} in;

TtNetHeard tt_net_incident_came(const TtFrame *f, TtIncident *i)
{
    if (!tt_heard_is_new(&in.told, f) || tt_incident_get(i, f, NULL)) {
        return TT_NET_HEARD_BEFORE;
    }
    return tt_burst_is_over(&in.burst, TT_BURST_MAX,
                            qemu_clock_get_ms(QEMU_CLOCK_REALTIME)) ?
        TT_NET_HEARD_TOO_MUCH : TT_NET_HEARD_NEW;
}

bool tt_net_incident_is_pending(void)
{
    return in.n_pending;
}

void tt_net_incident_begins(void)
{
    in.n_pending++;
}

bool tt_net_incident_ends(void)
{
    assert(in.n_pending);
    return !--in.n_pending;
}
