/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Travel: movements between the positions of a replay. The plan is
 * timeline/tt-timeline.h's, checkpoints are tt-checkpoints.c's; this file carries out the
 * steps in the vCPU thread, between two turns of it.
 */
#include "qemu/osdep.h"
#include "travel/tt-travel.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpu.h"
#include "accel-tt/tt-vcpus.h"
#include "monitor-cmds/tt-events.h"
#include "replay/tt-replay.h"
#include "replay/tt-stop.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-checkpoints.h"
#include "travel/tt-search.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/main-loop.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "system/runstate.h"
#include "system/system.h"

/* A movement that lasts longer says how far it is, so often. */
#define TT_PROGRESS_AFTER_MS 1000
#define TT_PROGRESS_EVERY_MS 250

typedef struct Found {          /* the last hit of a search */
    uint64_t pos;
    bool is_watch;
    bool is_turn;               /* none, but the end of a turn */
    vaddr addr, len;
    int flags;
} Found;

#define NO_TRAVEL { .stop_at = UINT64_MAX }

static bool is_over;                /* QEMU ends: no vCPU runs any more */

static struct {
    TtTimeline *timeline;
    int64_t began_ms, told_ms;
    uint64_t pin_at;                /* take a pinned one from here on; 0: none */
    TtCheckpointId pinned_id;       /* what came of it */
    bool pinning;
    bool active, interrupted, blind;
    bool stepping_over;             /* a hit: one position, stops off */
    bool pending;                   /* the next step has not been taken */
    bool straight;                  /* no plan: run to `run_to`, skip nothing */
    bool reverse_step;
    bool leaves;                    /* back from `origin`: it does not end there */
    bool probing, probed;           /* a reverse step looks at what it undid */
    uint64_t home;                  /* and comes back here */
    CPUState *stepper;              /* the vCPU that steps back */
    bool by_turn;                   /* it was another one's turn before */
    uint64_t turn_began;            /* or later: where the scan began */
    int ended;                      /* why the last run could not go on */
    bool no_way;                    /* the store is damaged: nothing leads there */
    uint64_t origin, back;          /* where it began; back by so many */
    uint64_t stop_at;
    uint64_t run_from;              /* where the present run began */
    uint64_t run_to;                /* and a straight one ends */
    uint64_t hit_pos;               /* of the stop that is stepped over */
    Found found;
    TtTravelHit *survey;            /* NULL: this movement is none */
    uint64_t survey_from;
    TtTravelDone *done;
    void *opaque;
} tr = NO_TRAVEL;

bool tt_travel_active(void)
{
    return tr.active;
}

bool tt_travel_is_blind(void)
{
    return tr.active && tr.blind;
}

bool tt_travel_steps_over(void)
{
    return tr.active && tr.stepping_over;
}

uint64_t tt_travel_stop_at(void)
{
    /*
     * The same bound for the whole turn: an interrupt or an exception right
     * after the hit must not let the turn go on with the stops off.
     */
    return tr.stepping_over ? MIN(tr.stop_at, tr.hit_pos + 1) : tr.stop_at;
}

static void finish(const TtStep *step);

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
    return tr.by_turn || tt_search_may_hit(opaque, from, to);
}

void tt_travel_init(CPUState *cpu)
{
    if (!tt_past) {                 /* there tt_past_notify tells us */
        qemu_add_vm_change_state_handler(vm_changed, NULL);
    }
    tr.timeline = tt_checkpoints_init(cpu);
    tt_search_init();
    tt_timeline_set_filter(tr.timeline, may_hit, NULL);
}

void tt_travel_close(void)
{
    assert(!tr.active);
    tt_checkpoints_close();
    tt_search_close();
    tr = (typeof(tr)) NO_TRAVEL;
}

static void tell_progress(int64_t now)
{
    uint64_t done, total;

    if (tr.active && now - tr.began_ms >= TT_PROGRESS_AFTER_MS &&
        now - tr.told_ms >= TT_PROGRESS_EVERY_MS) {
        tr.told_ms = now;
        tt_travel_progress(&done, &total);
        tt_event_progress(done, total);
    }
}

static void pin(TtCheckpointId id)
{
    tt_checkpoints_pin(id);
    tr.pinned_id = id;
    tr.pin_at = 0;
}

/* The last sync point before the end of a step backwards: the next one will begin
 * here. */
static bool is_last_sync_point(void)
{
    return tr.active && tr.reverse_step && !tr.probing &&
        tt_now.pos < tr.stop_at && tt_next_sync_point(tt_now.pos) > tr.stop_at;
}

void tt_travel_sync_point(CPUState *cpu)
{
    bool wanted = tr.active && tr.pin_at && tt_now.pos >= tr.pin_at;
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
    tr.active = true;
    tr.straight = false;
    tr.blind = true;
    tr.interrupted = false;
    tr.survey = NULL;
    tr.stop_at = 0;
    tr.pending = true;
    tr.ended = TT_STOP_NONE;
    tr.no_way = false;
    tr.stepping_over = false;
    tr.done = done;
    tr.opaque = opaque;
    tt_checkpoints_rest();
    tr.began_ms = tr.told_ms = now_ms();
    tt_vcpu_wake();
}

bool tt_travel_is_possible(Error **errp)
{
    if (!tt_replaying()) {
        error_setg(errp, "there is no past to go to: this is no replay");
    } else if (tt_at_end_exit) {
        error_setg(errp, "this replay keeps no checkpoints: start it with "
                   "at-end=stop");
    } else if (!tr.timeline) {
        error_setg(errp, "the replay has not begun yet");
    } else if (qemu_system_dump_in_progress()) {
        error_setg(errp, "the memory of this position is being dumped: wait for "
                   "the end (query-dump)");
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
    if (tr.active || is_over) {
        error_setg(errp, is_over ? "QEMU is ending" :
                   "another movement is under way");
        return false;
    }
    tr.pin_at = 0;
    tr.pinning = false;
    tr.probing = tr.probed = tr.by_turn = false;
    return true;
}

/* From where the replay went wrong it does not go on; behind it there may be a
 * checkpoint. */
static void set_no_way(Error **errp)
{
    g_autofree char *behind = NULL;
    uint64_t at;

    if (tt_timeline_find_after(tr.timeline, tt_now.pos, &at)) {
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

    return tt_replayer.diverged && tr.timeline &&
        tt_timeline_find(tr.timeline, target, &at) && at > tt_now.pos ?
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
    tr.reverse_step = false;
    tt_timeline_goto(tr.timeline, tt_now.pos, target);
    if (tt_replayer.diverged && target >= tt_now.pos) {
        tt_timeline_lost(tr.timeline);
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
    assert(!tr.straight);
    tr.leaves = true;
    tr.origin = from;
    tr.back = count;
    return true;
}

bool tt_travel_run(uint64_t target, TtTravelDone *done, void *opaque,
                   Error **errp)
{
    if (!may_run_to(target, errp)) {
        return false;
    }
    begin(done, opaque);
    tr.straight = true;
    tr.reverse_step = false;
    tr.run_to = target;
    tr.run_from = tt_now.pos;
    return true;
}

bool tt_travel_reverse(bool step, TtTravelDone *done, void *opaque,
                       Error **errp)
{
    if (!may_begin(errp)) {
        return false;
    }
    tr.reverse_step = tr.leaves = step;
    tr.origin = tt_now.pos;
    tr.found = (Found) { .pos = UINT64_MAX };
    tr.back = 1;
    tr.stepper = tt_vcpu();
    if (!step) {
        tt_timeline_reverse_continue(tr.timeline, tt_now.pos, tt_replay_first());
    } else {
        tt_timeline_goto(tr.timeline, tt_now.pos, tt_now.pos ? tt_now.pos - 1 : 0);
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
    tr.reverse_step = false;
    tr.origin = tt_now.pos;
    tr.survey_from = from;
    tt_timeline_survey(tr.timeline, tt_now.pos, from, MIN(to, tt_replay_end()));
    begin(done, opaque);
    tr.survey = hit;
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
    uint64_t at = 0, fence;
    TtCheckpointId id;

    if (!may_begin(errp)) {
        return false;
    }
    if (!step) {
        error_setg(errp, "this run has no fences, and checkpoints are made at them "
                   "only: record it anew");
        return false;
    }
    fence = tt_now.pos / step * step;
    id = tt_timeline_find(tr.timeline, tt_now.pos, &at);
    if (!id || (at < fence && tt_replayer.diverged)) {
        error_setg(errp, "no checkpoint can be made where a replay diverged");
        return false;
    }
    tr.pinned_id = 0;
    tr.origin = tt_now.pos;
    tr.reverse_step = false;
    if (at >= fence) {
        pin(id);
        tt_timeline_goto(tr.timeline, tt_now.pos, tt_now.pos);
    } else {
        tr.pin_at = fence;
        tr.pinning = true;
        tt_timeline_goto(tr.timeline, tt_now.pos, at);
    }
    begin(done, opaque);
    return true;
}

TtCheckpointId tt_travel_pinned(void)
{
    return tr.pinned_id;
}

bool tt_travel_delete(uint64_t id, Error **errp)
{
    if (!tt_travel_is_possible(errp)) {
        return false;
    }
    if (tr.active) {
        error_setg(errp, "a movement is under way: wait for its end");
        return false;
    }
    return tt_checkpoints_delete(id, errp);
}

/* The VM is being stopped from outside: what moves stands still here. */
void tt_travel_abort(void)
{
    TtStep step = { .kind = TT_STEP_DONE, .reason = TT_STOP_INTERRUPTED };

    if (!tr.active) {
        return;
    }
    if (!tr.straight) {
        tt_timeline_done(tr.timeline, tt_now.pos, TT_STOP_INTERRUPTED);
    }
    tr.reverse_step = false;
    finish(&step);
}

void tt_travel_end(void)
{
    tt_travel_abort();
    is_over = true;
}

void tt_travel_progress(uint64_t *done, uint64_t *total)
{
    *done = *total = 0;
    if (tr.active && tr.straight) {
        *total = MIN(tr.run_to, tt_replay_end());
        *done = tt_now.pos - tr.run_from;
    } else if (tr.active) {
        tt_timeline_progress(tr.timeline, done, total);
        *done += tt_now.pos > tr.run_from ? tt_now.pos - tr.run_from : 0;
    }
    *done = MIN(*done, *total);
}

void tt_travel_interrupt(void)
{
    if (tr.active) {
        qatomic_set(&tr.interrupted, true);
        qatomic_set(&tr.pending, true);
        tt_token_kick();
    }
}

/* The search ends where an access comes next: say which watchpoint it was. */
static void name_watchpoint(void)
{
    CPUState *cpu = tt_vcpu();
    CPUWatchpoint *wp;

    if (!tr.found.is_watch || tr.found.pos != tt_now.pos) {
        return;
    }
    QTAILQ_FOREACH(wp, &cpu->watchpoints, entry) {
        if ((wp->flags & BP_GDB) && wp->vaddr == tr.found.addr &&
            wp->len == tr.found.len &&
            (wp->flags & BP_MEM_ACCESS) == tr.found.flags) {
            cpu->watchpoint_hit = wp;
            return;
        }
    }
}

static void finish(const TtStep *step)
{
    TtStopReason reason = step->reason;

    if (reason == TT_STOP_HIT || (tr.probed && reason == TT_STOP_TARGET)) {
        name_watchpoint();
    }

    if (reason == TT_STOP_HIT && tr.by_turn && tr.found.is_turn) {
        reason = TT_STOP_TARGET;
    }
    if (tr.reverse_step && tr.origin <= tt_replay_first()) {
        reason = TT_STOP_START;
    }
    if (reason == TT_STOP_DIVERGED) {
        reason = tr.no_way ? TT_STOP_DAMAGED : tt_replay_failure();
    }
    tr.active = false;
    tr.leaves = false;
    tr.stop_at = UINT64_MAX;
    tr.stepping_over = false;
    tt_event_stopped(tt_now.pos, reason);
    tr.done(tr.opaque, tt_now.pos, reason);
    if (!tr.active && runstate_is_running() && !tt_vcpu()->stopped) {
        qemu_system_vmstop_request_prepare();   /* somebody said cont */
        qemu_system_vmstop_request(RUN_STATE_PAUSED);
        tt_vcpu()->stop = true;
    }
}

/*
 * A few positions are no resting place (a trap is delivered together with its
 * instruction), so a position before may lead to where we came from.
 */
static bool step_back_further(const TtStep *step)
{
    if (!tr.leaves || step->reason != TT_STOP_TARGET || tt_now.pos < tr.origin ||
        tr.origin - tt_replay_first() <= tr.back) {
        return false;
    }
    tr.back++;
    tt_timeline_goto(tr.timeline, tt_now.pos, tr.origin - tr.back);
    return true;
}

/*
 * Before that position it was the turn of other vCPUs: back to where the one that
 * steps had its last turn, or to a stop that another one met since.
 */
static bool search_turn(const TtStep *step)
{
    if (!tr.reverse_step || tr.by_turn || step->reason != TT_STOP_TARGET ||
        tt_vcpu() == tr.stepper) {
        return false;
    }
    tr.by_turn = true;
    tr.found = (Found) { .pos = UINT64_MAX };
    tt_timeline_reverse_continue(tr.timeline, tt_now.pos, tt_replay_first());
    return true;
}

/* Here a turn ends, or what is scanned of it. Was there anything of it? Then the
 * last position before this one is where a step back leads. */
static void note_turn(CPUState *whose)
{
    uint64_t at = tt_now.pos - 1;

    if (!tr.active || !tr.by_turn || tr.blind || whose != tr.stepper ||
        tt_now.pos <= tr.turn_began) {
        return;
    }
    tt_timeline_hit(tr.timeline, at);
    if (tr.found.pos != at || !tr.found.is_watch) {
        tr.found = (Found) { .pos = at, .is_turn = true };
    }
}

void tt_travel_switches(CPUState *from)
{
    note_turn(from);
    tr.turn_began = tt_now.pos + 1;
}

/* A pinned checkpoint is to be taken on the way back to where we came from. */
static bool return_pinning(const TtStep *step)
{
    if (!tr.pinning || step->reason != TT_STOP_TARGET) {
        return false;
    }
    tr.pinning = false;
    tt_timeline_goto(tr.timeline, tt_now.pos, tr.origin);
    return true;
}

/* One that counts reads, too, or that is too large to compare (tt-gdb-watch.c). */
static bool has_access_watchpoint(CPUState *cpu)
{
    CPUWatchpoint *wp;

    QTAILQ_FOREACH(wp, &cpu->watchpoints, entry) {
        if ((wp->flags & BP_GDB) &&
            ((wp->flags & BP_MEM_READ) || wp->len > TT_WATCH_COMPARED)) {
            return true;
        }
    }
    return false;
}

/*
 * A step backwards undid an instruction. Whether that accessed what is watched
 * shows when it is executed once more.
 */
static bool begin_probe(CPUState *cpu, const TtStep *step)
{
    if (!tr.reverse_step || tr.probed || step->reason != TT_STOP_TARGET ||
        tt_now.pos >= tr.origin || !has_access_watchpoint(cpu) ||
        !tt_search_may_hit(NULL, tt_now.pos, tr.origin)) {
        return false;
    }
    tr.probing = true;
    tr.blind = false;
    tr.home = tt_now.pos;
    tr.stop_at = tr.origin;
    return true;
}

static void end_probe(void)
{
    tr.probing = false;
    tr.probed = true;
    if (tr.found.is_watch) {
        tr.found.pos = tr.home;
    }
    tt_timeline_goto(tr.timeline, tt_now.pos, tr.home);
}

static void restore(CPUState *cpu, TtCheckpointId id)
{
    tt_search_leave();
    switch (tt_checkpoints_restore(cpu, id)) {
    case TT_RESTORED:
        tr.turn_began = tt_now.pos;
        tt_search_restored();
        tt_timeline_done(tr.timeline, tt_now.pos, TT_STOP_NONE);
        break;
    case TT_RESTORE_ANOTHER:
        break;                          /* the plan knows */
    case TT_RESTORE_NONE:
        tr.no_way = true;
        tt_timeline_done(tr.timeline, tt_now.pos, TT_STOP_DIVERGED);
        break;
    case TT_RESTORE_NOMEM:
        error_report("tt: not enough memory to go back: the VM stays at "
                     "position %" PRIu64, tt_now.pos);
        tt_timeline_done(tr.timeline, tt_now.pos, TT_STOP_INTERRUPTED);
        break;
    }
}

static bool take_step(CPUState *cpu, const TtStep *step)
{
    switch (step->kind) {
    case TT_STEP_RESTORE:
        restore(cpu, step->checkpoint);
        return true;
    case TT_STEP_RUN:
    case TT_STEP_SCAN:
        if (tt_now.pos >= step->pos) {      /* beyond: that was no resting place */
            if (step->kind == TT_STEP_SCAN) {
                note_turn(tt_vcpu());
            }
            tt_timeline_done(tr.timeline, step->pos, TT_STOP_NONE);
            return true;
        }
        tr.blind = step->kind == TT_STEP_RUN;
        tr.stop_at = step->pos;
        tr.run_from = tt_now.pos;
        return false;
    default:
        g_assert_not_reached();
    }
}

bool tt_travel_is_pending(void)
{
    if (tr.stepping_over && tt_now.pos > tr.hit_pos) {
        tr.stepping_over = false;
    }
    return tr.active && (tr.pending || tt_now.pos >= tt_travel_stop_at());
}

/* A straight run: on to its end, or there. */
static bool advance_straight(void)
{
    TtStep step = { .kind = TT_STEP_DONE, .reason = TT_STOP_TARGET };

    if (tr.interrupted) {
        step.reason = TT_STOP_INTERRUPTED;
    } else if (tr.ended) {
        step.reason = tr.ended;
    } else if (tt_now.pos < tr.run_to) {
        tr.stop_at = tr.run_to;
        return true;
    }
    finish(&step);
    return false;
}

bool tt_travel_advance(CPUState *cpu)
{
    tr.pending = false;
    if (tr.straight) {
        return advance_straight();
    }
    if (tr.probing) {
        end_probe();
    }
    if (tr.interrupted) {
        tr.interrupted = false;
        tt_timeline_done(tr.timeline, tt_now.pos, TT_STOP_INTERRUPTED);
    }
    for (;;) {
        TtStep step = tt_timeline_step(tr.timeline);

        if (step.kind == TT_STEP_DONE) {
            if (step_back_further(&step) || search_turn(&step) ||
                return_pinning(&step)) {
                continue;
            }
            if (begin_probe(cpu, &step)) {
                return true;
            }
            finish(&step);
            return false;
        }
        if (!take_step(cpu, &step)) {
            return true;
        }
    }
}

/*
 * Going forward a watchpoint stops behind the access. Going back it must stop
 * before it, where the old value still stands: gdb compares the two.
 */
static void note_hit(uint64_t pos)
{
    CPUState *cpu = tt_vcpu();

    if (pos >= tr.survey_from &&
        !tr.survey(tr.opaque, pos, cpu->cc->get_pc(cpu))) {
        tt_timeline_done(tr.timeline, pos, TT_STOP_END);    /* enough */
        tr.pending = true;
    }
}

void tt_travel_hit(uint64_t pos, CPUWatchpoint *wp)
{
    uint64_t at = wp && pos ? pos - 1 : pos;

    if (tr.survey && !tr.blind && !wp) {
        note_hit(pos);
    } else if (!tr.blind && (wp || !tr.probing)) {
        tt_timeline_hit(tr.timeline, at);
        if (at < tr.origin) {
            tr.found = (Found) {
                .pos = at, .is_watch = wp != NULL,
                .addr = wp ? wp->vaddr : 0, .len = wp ? wp->len : 0,
                .flags = wp ? wp->flags & BP_MEM_ACCESS : 0,
            };
        }
    }
    tr.hit_pos = pos;               /* not again at this position */
    tr.stepping_over = !tr.pending;
}

void tt_travel_ended(int reason)
{
    if (!tr.straight) {
        tt_timeline_done(tr.timeline, tt_now.pos, reason);
    }
    tr.ended = reason;
    tr.pending = true;
}
