/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Travel: movements between the positions of a replay. This file posts them, and
 * tells how far they are; tt-travel-step.c carries them out.
 */
#include "qemu/osdep.h"
#include "travel/tt-travel.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpu.h"
#include "accel-tt/tt-vcpus.h"
#include "replay/tt-replay-driver.h"
#include "replay/tt-replay-log.h"
#include "replay/tt-stop.h"
#include "session/tt-events.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-checkpoints.h"
#include "travel/tt-cpnear.h"
#include "travel/tt-cprestore.h"
#include "travel/tt-cptable.h"
#include "travel/tt-search.h"
#include "travel/tt-travel-ring.h"
#include "travel/tt-travel-step.h"
#include "tt-travel-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/main-loop.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "system/runstate.h"
#include "system/system.h"

#define TT_PROGRESS_AFTER_MS 1000   /* one that lasts longer says how far it is, so often */
#define TT_PROGRESS_EVERY_MS 250

static bool is_over;                /* QEMU ends: no vCPU runs any more */

TtTravel tt_travel = NO_TRAVEL;

static const TtTravelTask *task;

bool tt_travel_active(void)
{
    return tt_travel.active;
}

static bool is_blind(void)
{
    return tt_travel.active && tt_travel.blind;
}

static bool steps_over(void)
{
    return tt_travel.active && tt_travel.stepping_over;
}

uint64_t tt_travel_stop_at(void)
{
    /*
     * The same bound for the whole turn: an interrupt or an exception right
     * after the hit must not let the turn go on with the stops off.
     */
    return tt_travel.stepping_over ?
        MIN(tt_travel.stop_at, tt_travel.hit_pos + 1) : tt_travel.stop_at;
}

static void vm_changed(void *opaque, bool running, RunState state)
{
    if (!running) {
        tt_travel_abort();          /* gdb's user lost patience */
    }
}

static int64_t now_ms(void)
{
    return qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
}

static bool may_hit(void *opaque, uint64_t from, uint64_t to)
{
    return tt_travel.by_turn || tt_search_may_hit(opaque, from, to);
}

static void start(CPUState *cpu)
{
    if (!tt_past) {                 /* there tt_past_notify tells us */
        qemu_add_vm_change_state_handler(vm_changed, NULL);
    }
    tt_travel.timeline = tt_checkpoints_init(cpu);
    tt_search_init();
    tt_timeline_set_filter(tt_travel.timeline, may_hit, NULL);
}

void tt_travel_close(void)
{
    assert(!tt_travel.active);
    tt_travel_ring_close();
    tt_checkpoints_close();
    tt_search_close();
    tt_travel = (TtTravel) NO_TRAVEL;
}

static void tell_progress(int64_t now)
{
    uint64_t done, total;

    if (tt_travel.active && now - tt_travel.began_ms >= TT_PROGRESS_AFTER_MS &&
        now - tt_travel.told_ms >= TT_PROGRESS_EVERY_MS) {
        tt_travel.told_ms = now;
        tt_travel_progress(&done, &total);
        tt_tell_progress(done, total);
    }
}

static void pin(TtCheckpointId id)
{
    tt_checkpoints_pin(id);
    tt_travel.pinned_id = id;
    tt_travel.pin_at = 0;
}

/* The last sync point before a place that somebody goes to: steps back from there will
 * begin here, when they are after the near ones. */
static bool is_last_sync_point(void)
{
    return tt_travel.active && tt_travel.heads_for && tt_now.pos < tt_travel.heads_for &&
        tt_next_sync_point(tt_now.pos) > tt_travel.heads_for;
}

static void sync_point(CPUState *cpu)
{
    bool wanted = tt_travel.active && tt_travel.pin_at &&
        tt_now.pos >= tt_travel.pin_at;
    TtCheckpointId id;

    tell_progress(now_ms());
    tt_search_sync_point();
    id = tt_checkpoints_sync_point(cpu, wanted || is_last_sync_point(), wanted);
    if (wanted && id) {
        pin(id);
    }
}

/* ---- movements ---- */

static void begin(TtTravelDone *done, void *opaque)
{
    uint64_t target;

    tt_travel.active = true;
    tt_travel.straight = false;
    tt_travel.blind = true;
    tt_travel.interrupted = tt_travel.fills = false;
    tt_travel.survey = NULL;
    tt_travel.visit = NULL;
    tt_travel.stop_at = tt_travel.heads_for = tt_travel.near_at = 0;
    tt_travel.pending = true;
    tt_travel.ended = TT_STOP_NONE;
    tt_travel.no_way = false;
    tt_travel.stepping_over = false;
    tt_travel.done = done;
    tt_travel.opaque = opaque;
    tt_travel_ring_moves(tt_timeline_goes_back_to(tt_travel.timeline, &target) ?
                         tt_now.pos - target : 0);
    tt_checkpoints_rest();
    tt_travel.began_ms = tt_travel.told_ms = now_ms();
    tt_vcpu_wake();
}

bool tt_travel_is_possible(Error **errp)
{
    if (!tt_replaying()) {
        error_setg(errp, "there is no past to go to: start QEMU with "
                   "-tt replay, or record first");
    } else if (tt_at_end_exit) {
        error_setg(errp, "this replay keeps no checkpoints: start it with "
                   "at-end=stop");
    } else if (!tt_travel.timeline) {
        error_setg(errp, "the replay has not begun yet");
    } else if (qemu_system_dump_in_progress()) {
        error_setg(errp, "the memory at this position is being dumped: wait for the "
                   "dump to end");
    } else {
        return true;
    }
    return false;
}

static bool may_begin(Error **errp)
{
    if (!tt_travel_is_possible(errp)) {
        return false;
    }
    if (tt_travel.active || is_over) {
        error_setg(errp, is_over ? "QEMU is exiting" :
                   "another movement is under way: " TT_WAIT_OR_INTERRUPT);
        return false;
    }
    tt_travel.pin_at = 0;
    tt_travel.pinning = false;
    tt_travel.probing = tt_travel.probed = tt_travel.by_turn = false;
    return true;
}

bool tt_travel_next_point(uint64_t *at)
{
    return tt_travel.timeline &&
        tt_timeline_find_after(tt_travel.timeline, tt_now.pos, at);
}

/* From where the replay went wrong it does not go on; after it there may be a
 * checkpoint. */
static void set_no_way(Error **errp)
{
    g_autofree char *behind = NULL;
    uint64_t at;

    if (tt_travel_next_point(&at)) {
        behind = g_strdup_printf(", and from %" PRIu64 " on,", at);
    }
    error_setg(errp, "the replay %s here: %s%s%s%s", tt_replayer.damaged ?
               "cannot go on from" : "diverged", tt_replayer.divergence,
               tt_now.pos > tt_replay_first() || behind ?
               "; only positions before this one" : "", behind ?: "",
               tt_now.pos > tt_replay_first() || behind ? " can be reached" : "");
}

static bool may_run_to(uint64_t target, Error **errp)
{
    if (!may_begin(errp)) {
        return false;
    }
    if (tt_replayer.diverged && target >= tt_now.pos) {
        set_no_way(errp);
        return false;
    }
    return true;
}

static bool may_go_to(uint64_t target, Error **errp)
{
    uint64_t at;

    return tt_replayer.diverged && tt_travel.timeline &&
        (tt_checkpoints_is_lost() ||
         (tt_timeline_find(tt_travel.timeline, target, &at) && at > tt_now.pos)) ?
        may_begin(errp) : may_run_to(target, errp);
}

bool tt_travel_goto(uint64_t target, TtTravelDone *done, void *opaque,
                    Error **errp)
{
    if (tt_trace_is_on && !tt_past && target > tt_now.pos) {
        return tt_travel_run(target, done, opaque, errp);   /* all of it */
    }
    if (!may_go_to(target, errp)) {
        return false;
    }
    tt_travel.reverse_step = false;
    if (tt_checkpoints_is_lost()) {
        tt_timeline_goto_lost(tt_travel.timeline, target);
    } else {
        tt_timeline_goto(tt_travel.timeline, tt_now.pos, target);
    }
    if (tt_replayer.diverged && target >= tt_now.pos) {
        tt_timeline_lost(tt_travel.timeline);
    }
    begin(done, opaque);
    return true;
}

bool tt_travel_back(uint64_t from, uint64_t count, TtTravelDone *done,
                    void *opaque, Error **errp)
{
    assert(count && count <= from);
    if (!tt_travel_goto(from - count, done, opaque, errp)) {
        return false;
    }
    assert(!tt_travel.straight);
    tt_travel.leaves = true;
    tt_travel.origin = from;
    tt_travel.back = count;
    return true;
}

bool tt_travel_run(uint64_t target, TtTravelDone *done, void *opaque,
                   Error **errp)
{
    if (!may_run_to(target, errp)) {
        return false;
    }
    begin(done, opaque);
    tt_travel.straight = true;
    tt_travel.reverse_step = false;
    tt_travel.run_to = target;
    tt_travel.run_from = tt_now.pos;
    return true;
}

bool tt_travel_scan(uint64_t target, bool each, TtTravelVisit *visit,
                    TtTravelDone *done, void *opaque, Error **errp)
{
    if (!tt_travel_run(target, done, opaque, errp)) {
        return false;
    }
    tt_travel.blind = false;
    tt_travel.each = each;
    tt_travel.has_enough = false;
    tt_travel.visited = UINT64_MAX;
    tt_travel.visit = visit;
    return true;
}

bool tt_travel_reverse(CPUState *stepper, TtTravelDone *done, void *opaque, Error **errp)
{
    if (!may_begin(errp)) {
        return false;
    }
    tt_travel.reverse_step = tt_travel.leaves = stepper != NULL;
    tt_travel.origin = tt_now.pos;
    tt_travel.found = (TtFound) { .pos = UINT64_MAX };
    tt_travel.back = 1;
    tt_travel.stepper = stepper;
    tt_travel.by_turn = stepper && stepper != tt_vcpu();    /* another one's turn */
    if (!stepper || tt_travel.by_turn) {
        tt_timeline_reverse_continue(tt_travel.timeline, tt_now.pos, tt_replay_first());
    } else {
        tt_timeline_goto(tt_travel.timeline, tt_now.pos, tt_now.pos ? tt_now.pos - 1 : 0);
    }
    begin(done, opaque);
    return true;
}

bool tt_travel_survey(uint64_t from, uint64_t to, TtTravelHit *hit,
                      TtTravelDone *done, void *opaque, Error **errp)
{
    if (!may_begin(errp)) {
        return false;
    }
    tt_travel.reverse_step = false;
    tt_travel.origin = tt_now.pos;
    tt_travel.survey_from = from;
    tt_timeline_survey(tt_travel.timeline, tt_now.pos, from, MIN(to, tt_replay_end()));
    begin(done, opaque);
    tt_travel.survey = hit;
    return true;
}

/*
 * A pinned checkpoint for the present position: checkpoints stand at sync points, so
 * it is the one of the last sync point. If there is none, go back and take it while
 * passing.
 */
bool tt_travel_pin(TtTravelDone *done, void *opaque, Error **errp)
{
    uint64_t step = tt_session.manifest.sync_interval;
    uint64_t at = 0, last;
    TtCheckpointId id;

    if (!may_begin(errp)) {
        return false;
    }
    if (!step) {
        error_setg(errp, "this run has no sync points, and checkpoints can be made only "
                   "there: record it again");
        return false;
    }
    last = tt_last_sync_point(tt_now.pos);
    id = tt_checkpoints_find_no_near(tt_now.pos, &at);
    if (!id || (at < last && tt_replayer.diverged)) {
        error_setg(errp, "no checkpoint can be made where the replay diverged: go to an "
                   "earlier position first");
        return false;
    }
    tt_travel.pinned_id = 0;
    tt_travel.origin = tt_now.pos;
    tt_travel.reverse_step = false;
    if (at >= last) {
        pin(id);
        tt_timeline_goto(tt_travel.timeline, tt_now.pos, tt_now.pos);
    } else {
        tt_checkpoints_drop_near(at);
        tt_travel.pin_at = last;
        tt_travel.pinning = true;
        tt_timeline_goto(tt_travel.timeline, tt_now.pos, at);
    }
    begin(done, opaque);
    return true;
}

TtCheckpointId tt_travel_pinned(void)
{
    return tt_travel.pinned_id;
}

bool tt_travel_delete(uint64_t id, Error **errp)
{
    if (!tt_travel_is_possible(errp)) {
        return false;
    }
    if (tt_travel.active) {
        error_setg(errp, "a movement is under way: " TT_WAIT_OR_INTERRUPT);
        return false;
    }
    return tt_checkpoints_delete(id, errp);
}

/* The VM is being stopped from outside: what moves stands still here. */
void tt_travel_abort(void)
{
    TtStep step = { .kind = TT_STEP_DONE, .reason = TT_STOP_INTERRUPTED };

    if (!tt_travel.active) {
        return;
    }
    if (!tt_travel.straight) {
        tt_timeline_done(tt_travel.timeline, tt_now.pos, TT_STOP_INTERRUPTED);
    }
    tt_travel.reverse_step = false;
    tt_travel_finish(&step);
}

void tt_travel_end(void)
{
    tt_travel_abort();
    is_over = true;
}

void tt_travel_progress(uint64_t *done, uint64_t *total)
{
    *done = *total = 0;
    if (tt_travel.active && tt_travel.straight) {
        *total = MIN(tt_travel.run_to, tt_replay_end());
        *done = tt_now.pos - tt_travel.run_from;
    } else if (tt_travel.active) {
        tt_timeline_progress(tt_travel.timeline, done, total);
        *done += tt_now.pos > tt_travel.run_from ? tt_now.pos - tt_travel.run_from : 0;
    }
    *done = MIN(*done, *total);
}

void tt_travel_interrupt(void)
{
    if (tt_travel.active) {
        qatomic_set(&tt_travel.interrupted, true);
        qatomic_set(&tt_travel.pending, true);
        tt_token_kick();
    }
}

/* ---- what the replayer calls ---- */

static void begin_task(void)
{
    if (task) {
        task->begin();
    }
}

static bool goes_on(const char *why)
{
    return task && task->goes_on && task->goes_on(why);
}

static bool is_restoring(void)
{
    return task && task->is_restoring && task->is_restoring();
}

static const TtReplayDriver driver = {
    .init = start,
    .begin = begin_task,
    .is_active = tt_travel_active,
    .is_blind = is_blind,
    .steps_over = steps_over,
    .stop_at = tt_travel_stop_at,
    .came_from = tt_checkpoints_restored_at,
    .next_checkpoint = tt_travel_next_checkpoint,
    .is_pending = tt_travel_is_pending, .passes = tt_travel_passes,
    .changes_inside = tt_travel_changes_inside,
    .advance = tt_travel_advance, .runs = tt_travel_ring_runs,
    .abort = tt_travel_abort,
    .sync_point = sync_point,
    .switches = tt_travel_switches, .hit = tt_travel_hit,
    .ended = tt_travel_ended,
    .goes_on = goes_on,
    .is_restoring = is_restoring,
};

void tt_travel_set_task(const TtTravelTask *t)
{
    task = t;
}

void tt_travel_init(void)
{
    tt_replay_drive(&driver);
}
