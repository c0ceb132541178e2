/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What QMP and HMP share: events, the target of a movement, checkpoints as they are
 * shown.
 */
#include "qemu/osdep.h"
#include "monitor-cmds/tt-monitor.h"
#include "net-tt/glue/tt-net-epoch.h"
#include "accel-tt/tt-position.h"
#include "checkpoint/tt-checkpointer.h"
#include "control/tt-mark.h"
#include "control/tt-values.h"
#include "monitor-cmds/tt-refuse.h"
#include "monitor-cmds/tt-wait.h"
#include "record/tt-flight.h"
#include "replay/tt-replay-log.h"
#include "session/tt-checkpoint.h"
#include "session/tt-events.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-cptable.h"
#include "travel/tt-past.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/timer.h"
#include "qapi/qapi-events-tt.h"
#include "qapi/qapi-events-tt-record.h"
#include "system/runstate.h"
#include "system/cpus.h"

TtReason tt_monitor_reason(int reason)
{
    static const TtReason map[] = {
        [TT_STOP_NONE] = TT_REASON_NONE,
        [TT_STOP_TARGET] = TT_REASON_TARGET,
        [TT_STOP_HIT] = TT_REASON_BREAKPOINT,
        [TT_STOP_START] = TT_REASON_START,
        [TT_STOP_END] = TT_REASON_END,
        [TT_STOP_DIVERGED] = TT_REASON_DIVERGED,
        [TT_STOP_INTERRUPTED] = TT_REASON_INTERRUPTED,
        [TT_STOP_DAMAGED] = TT_REASON_DAMAGED,
    };

    return map[reason];
}

static void stopped(uint64_t pos, int reason)
{
    qapi_event_send_tt_stopped(pos, tt_monitor_reason(reason));
}

static void diverged(uint64_t pos, const char *text)
{
    const char *cut = strstr(text, "; ");   /* "recorded: ...; replayed: ..." */
    g_autofree char *expected = cut ? g_strndup(text, cut - text) :
        g_strdup("the recorded run");

    qapi_event_send_tt_diverged(pos, expected, cut ? cut + 2 : text);
}

static void saved(const char *dir)
{
    qapi_event_send_tt_saved(dir);
}

static void crashed(uint64_t pos, const char *mark, const char *what)
{
    qapi_event_send_tt_guest_panic(pos, mark, what);
}

static void incident(uint64_t pos, const char *mark, const char *what)
{
    qapi_event_send_tt_incident(pos, mark, what);
}

static void progress(uint64_t done, uint64_t total)
{
    qapi_event_send_tt_progress(done, total);
}

void tt_monitor_init(void)
{
    static const TtEventListener listener = {
        .stopped = stopped, .diverged = diverged, .progress = progress,
        .saved = saved, .crashed = crashed,
        .incident = incident,
        .refuse_input = tt_monitor_refuse_input,
    };

    tt_listen(&listener);
    tt_wait_init();
}

/* ---- movements ---- */

/* Of a recording's past, the window may have no more than that. */
uint64_t tt_monitor_start_of_run(void)
{
    return tt_replaying() ? tt_replay_first() : tt_flight_start();
}

/* Of a recording, the present is the end. */
static uint64_t end_of_run(void)
{
    return tt_replaying() ? tt_replay_end() : tt_position();
}

static bool add_delta(int64_t delta, uint64_t *target, Error **errp)
{
    uint64_t now = tt_position();

    *target = delta > 0 && (uint64_t)delta > UINT64_MAX - now ? UINT64_MAX : now + delta;
    return delta >= 0 ||
        tt_place_may_be_back(-(uint64_t)delta, now, tt_monitor_start_of_run(), errp);
}

bool tt_monitor_target(const TtGoto *g, uint64_t *target, Error **errp)
{
    int given = g->has_position + g->has_delta + g->has_where + !!g->mark;
    uint64_t end = end_of_run();

    if (!tt_is_live(errp)) {
        return false;
    }
    if (given != 1) {
        error_setg(errp, "give exactly one of position, delta, where and mark");
        return false;
    }
    if (g->has_position) {
        *target = g->position;
    } else if (g->has_where) {
        *target = g->where == TT_WHERE_START ? tt_monitor_start_of_run() : end;
    } else if (g->mark ? !tt_mark_find(g->mark, target, errp) :
               !add_delta(g->delta, target, errp)) {
        return false;
    }
    return tt_place_is_inside(*target, tt_monitor_start_of_run(), end, errp);
}

/* To the end of a recording's past, or to where it stands: that is the present. */
static bool leads_to_present(const TtGoto *g, uint64_t target)
{
    return (tt_past && g->has_where && g->where == TT_WHERE_END) ||
        (tt_recording() && target == tt_position());
}

/* The VM stands still. */
static bool go(const TtGoto *g, TtTravelDone *done, void *opaque, Error **errp)
{
    uint64_t target, from = tt_position();

    if (!tt_monitor_target(g, &target, errp)) {
        return false;
    }
    if (tt_travel_active()) {
        error_setg(errp, "another movement is under way: " TT_WAIT_OR_INTERRUPT);
        return false;
    }
    if (leads_to_present(g, target)) {
        if (tt_past) {
            tt_past_leave();
        }
        stopped(tt_position(), TT_STOP_END);
        done(opaque, tt_position(), TT_STOP_END);
        return true;
    }
    if (tt_recording() && !tt_past_enter(errp)) {
        return false;
    }
    return g->has_delta && g->delta < 0 ?
        tt_travel_back(from, from - target, done, opaque, errp) :
        tt_travel_goto(target, done, opaque, errp);
}

bool tt_monitor_go(const TtGoto *g, TtTravelDone *done, void *opaque,
                   Error **errp)
{
    bool was_running = runstate_is_running();

    if (!tt_on() && !tt_is_live(errp)) {
        return false;
    }
    vm_stop(RUN_STATE_PAUSED);
    if (go(g, done, opaque, errp)) {
        return true;
    }
    if (was_running && !tt_past && !tt_travel_active()) {
        vm_start();                     /* it was refused: nothing has changed */
    }
    return false;
}

static bool has_begun(void *opaque)
{
    return !tt_replaying() || tt_session.live;
}

void tt_monitor_wait(void)
{
    if (!has_begun(NULL)) {
        tt_wait(has_begun, NULL);
    }
}

/* ---- checkpoints ---- */

GArray *tt_monitor_checkpoints(void)
{
    return tt_recording() ? tt_checkpointer_list() : tt_checkpoints_list();
}

TtCheckpoint *tt_monitor_checkpoint_to_qapi(const TtCheckpointDesc *c)
{
    TtCheckpoint *q = g_new0(TtCheckpoint, 1);

    q->id = c->id;
    q->position = c->pos;
    q->pages = c->pages;
    q->pinned = c->pinned;
    q->stored = q->has_time_ms = q->has_bytes = c->stored;
    q->time_ms = c->host_ns / SCALE_MS;
    q->bytes = c->bytes;
    q->full = c->full;
    return q;
}

TtCheckpoint *tt_monitor_checkpoint(uint32_t id, Error **errp)
{
    g_autoptr(GArray) all = tt_monitor_checkpoints();

    for (unsigned i = 0; i < all->len; i++) {
        TtCheckpointDesc *c = &g_array_index(all, TtCheckpointDesc, i);

        if (c->id == id) {
            return tt_monitor_checkpoint_to_qapi(c);
        }
    }
    error_setg(errp, "no checkpoint could be made for position %" PRIu64,
               tt_position());
    return NULL;
}

bool tt_monitor_may_be_of_group(const char *name, Error **errp)
{
    if (name) {
        error_setg(errp, "a checkpoint of the group is named by its number: leave out "
                         "the name '%s'", name);
    } else if (!tt_net_is_there()) {
        error_setg(errp, "this VM is not in a group: it has no -netdev tt and "
                         "no filter-tt");
    } else if (tt_net_epoch() >= TT_EPOCH_MAX) {
        error_setg(errp, "the group has reached its limit of checkpoints");
    } else {
        return true;
    }
    return false;
}

bool tt_monitor_may_be_full(const GString *full, Error **errp)
{
    if (full && !tt_recording() && !tt_replaying()) {
        error_setg(errp, "this VM is not recorded: a full checkpoint is part of a "
                         "recording");
        return false;
    }
    if (full && tt_past) {
        error_setg(errp, "the past of the recording is shown: " TT_RETURN_FIRST);
        return false;
    }
    if (full && !tt_recording()) {
        error_setg(errp, "a full checkpoint needs the devices, which a replay does not "
                         "have: take it while recording");
        return false;
    }
    return true;
}
