/* SPDX-License-Identifier: GPL-2.0-or-later */
/* query-tt-time and `tt time`: what time it was at a position of a replay. */
#include "qemu/osdep.h"
#include "accel-tt/tt-position.h"
#include "log/tt-timeat.h"
#include "monitor-cmds/tt-hmp-task-int.h"
#include "monitor-cmds/tt-monitor.h"
#include "replay/tt-replay-log.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-tt.h"
#include "qemu/cutils.h"

static bool find(uint64_t pos, TtTimeAt *at, Error **errp)
{
    TtDiag diag;

    if (!tt_replaying()) {
        error_setg(errp, "no run is replayed: use this with -tt replay, or 'tt time RUN "
                   "POSITION' in a shell");
        return false;
    }
    if (pos < tt_replay_first() || pos > tt_replay_end()) {
        error_setg(errp, "position %" PRIu64 " is outside the run, which has %" PRIu64
                   " to %" PRIu64, pos, tt_replay_first(), tt_replay_end());
        return false;
    }
    if (tt_time_at(tt_replay_reader(), pos, !(tt_session.manifest.rules & TT_RULE_KVM),
                   at, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    return true;
}

static TtTimeInLog *moment_to_qapi(const TtMoment *m)
{
    TtTimeInLog *q;

    if (!m->is_there) {
        return NULL;
    }
    q = g_new0(TtTimeInLog, 1);
    q->position = m->pos;
    q->host_ns = m->host_ns;
    q->has_tsc = m->has_tsc;
    q->tsc = m->tsc;
    return q;
}

TtTime *qmp_query_tt_time(bool has_position, uint64_t position, Error **errp)
{
    TtTimeAt at;
    TtTime *t;

    tt_monitor_wait();
    if (!find(has_position ? position : tt_position(), &at, errp)) {
        return NULL;
    }
    t = g_new0(TtTime, 1);
    t->position = at.pos;
    t->host_ns = at.host_ns;
    t->has_tsc = at.has_tsc;
    t->tsc = at.tsc;
    t->has_read_position = t->has_read_tsc = at.has_read;
    t->read_position = at.read_at;
    t->read_tsc = at.read_tsc;
    t->has_ns_per_instruction = at.ns_per_instruction >= 0;
    t->ns_per_instruction = at.ns_per_instruction;
    t->earlier = moment_to_qapi(&at.earlier);
    t->later = moment_to_qapi(&at.later);
    return t;
}

void tt_hmp_time(Monitor *mon, const char *arg, Error **errp)
{
    uint64_t pos = 0;
    TtTime *t;

    if (arg && *arg && qemu_strtou64(arg, NULL, 10, &pos)) {
        error_setg(errp, "'%s' is not a position: tt time [POSITION]", arg);
        return;
    }
    t = qmp_query_tt_time(arg && *arg, pos, errp);
    if (!t) {
        return;
    }
    monitor_printf(mon, "position %" PRIu64 ": host %.6f s", t->position,
                   t->host_ns / 1e9);
    if (t->has_tsc) {
        monitor_printf(mon, ", TSC %" PRIu64, t->tsc);
    }
    if (t->has_ns_per_instruction) {
        monitor_printf(mon, ", %.2f ns an instruction", t->ns_per_instruction);
    }
    monitor_printf(mon, "\n");
    qapi_free_TtTime(t);
}
