/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Carries the steps of a movement out in the vCPU thread, between two turns of it.
 * The plan is timeline/tt-timeline.h's, checkpoints are tt-checkpoints.h's.
 */
#include "qemu/osdep.h"
#include "travel/tt-travel-step.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "session/tt-events.h"
#include "timeline/tt-near.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-cpnear.h"
#include "travel/tt-cprestore.h"
#include "travel/tt-search.h"
#include "travel/tt-travel-ring.h"
#include "travel/tt-travel.h"
#include "tt-travel-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/error-report.h"
#include "system/runstate.h"

/* The search ends where an access comes next: say which watchpoint it was. */
static void name_watchpoint(void)
{
    CPUState *cpu = tt_vcpu();
    CPUWatchpoint *wp;

    if (!tt_travel.found.is_watch || tt_travel.found.pos != tt_now.pos) {
        return;
    }
    QTAILQ_FOREACH(wp, &cpu->watchpoints, entry) {
        if ((wp->flags & BP_GDB) && wp->vaddr == tt_travel.found.addr &&
            wp->len == tt_travel.found.len &&
            (wp->flags & BP_MEM_ACCESS) == tt_travel.found.flags) {
            cpu->watchpoint_hit = wp;
            return;
        }
    }
}

uint64_t tt_travel_next_checkpoint(uint64_t pos)
{
    uint64_t at;

    return tt_travel.timeline &&
        tt_timeline_find_after(tt_travel.timeline, pos, &at) ? at : UINT64_MAX;
}

void tt_travel_finish(const TtStep *step)
{
    TtStopReason reason = step->reason;

    if (reason == TT_STOP_HIT || (tt_travel.probed && reason == TT_STOP_TARGET)) {
        name_watchpoint();
    }

    if (reason == TT_STOP_HIT && tt_travel.by_turn && tt_travel.found.is_turn) {
        reason = TT_STOP_TARGET;
    }
    if (tt_travel.reverse_step && tt_travel.origin <= tt_replay_first()) {
        reason = TT_STOP_START;
    }
    if (reason == TT_STOP_DIVERGED) {
        reason = tt_travel.no_way ? TT_STOP_DAMAGED : tt_replay_failure();
    }
    tt_travel.active = false;
    tt_travel.leaves = false;
    tt_travel.stop_at = UINT64_MAX;
    tt_travel.stepping_over = false;
    tt_tell_stopped(tt_now.pos, reason);
    tt_travel.done(tt_travel.opaque, tt_now.pos, reason);
    if (!tt_travel.active && runstate_is_running() && !tt_vcpu()->stopped) {
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
    if (!tt_travel.leaves || step->reason != TT_STOP_TARGET ||
        tt_now.pos < tt_travel.origin ||
        tt_travel.origin - tt_replay_first() <= tt_travel.back) {
        return false;
    }
    tt_travel.back++;
    tt_timeline_goto(tt_travel.timeline, tt_now.pos, tt_travel.origin - tt_travel.back);
    return true;
}

/*
 * Before that position it was the turn of other vCPUs: back to where the one that
 * steps had its last turn, or to a stop that another one met since.
 */
static bool search_turn(const TtStep *step)
{
    if (!tt_travel.reverse_step || tt_travel.by_turn ||
        step->reason != TT_STOP_TARGET ||
        tt_vcpu() == tt_travel.stepper) {
        return false;
    }
    tt_travel.by_turn = true;
    tt_travel.found = (TtFound) { .pos = UINT64_MAX };
    tt_timeline_reverse_continue(tt_travel.timeline, tt_now.pos, tt_replay_first());
    return true;
}

/* Here a turn ends, or what is scanned of it. Was there anything of it? Then the
 * last position before this one is where a step back leads. */
static void note_turn(CPUState *whose)
{
    uint64_t at = tt_now.pos - 1;

    if (!tt_travel.active || !tt_travel.by_turn || tt_travel.blind ||
        whose != tt_travel.stepper ||
        tt_now.pos <= tt_travel.turn_began) {
        return;
    }
    tt_timeline_hit(tt_travel.timeline, at);
    if (tt_travel.found.pos != at || !tt_travel.found.is_watch) {
        tt_travel.found = (TtFound) { .pos = at, .is_turn = true };
    }
}

void tt_travel_switches(CPUState *from)
{
    note_turn(from);
    tt_travel.turn_began = tt_now.pos + 1;
}

/* A pinned checkpoint is to be taken on the way back to where we came from. */
static bool return_pinning(const TtStep *step)
{
    if (!tt_travel.pinning || step->reason != TT_STOP_TARGET) {
        return false;
    }
    tt_travel.pinning = false;
    tt_timeline_goto(tt_travel.timeline, tt_now.pos, tt_travel.origin);
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
    if (!tt_travel.reverse_step || tt_travel.probed ||
        step->reason != TT_STOP_TARGET ||
        tt_now.pos >= tt_travel.origin || !has_access_watchpoint(cpu) ||
        !tt_search_may_hit(NULL, tt_now.pos, tt_travel.origin)) {
        return false;
    }
    tt_travel.probing = true;
    tt_travel.blind = false;
    tt_travel.home = tt_now.pos;
    tt_travel.stop_at = tt_travel.origin;
    tt_travel.heads_for = 0;
    return true;
}

static void end_probe(void)
{
    tt_travel.probing = false;
    tt_travel.probed = true;
    if (tt_travel.found.is_watch) {
        tt_travel.found.pos = tt_travel.home;
    }
    tt_timeline_goto(tt_travel.timeline, tt_now.pos, tt_travel.home);
}

/* Does the undo log lead there? */
static bool undo_steps(void)
{
    uint64_t target;

    if (!tt_timeline_goes_back_to(tt_travel.timeline, &target) ||
        !tt_travel_ring_back(target)) {
        return false;
    }
    tt_travel.turn_began = tt_now.pos;
    tt_timeline_is_there(tt_travel.timeline);
    return true;
}

static void restore(CPUState *cpu, TtCheckpointId id)
{
    tt_search_leave();
    if (undo_steps()) {
        return;
    }
    tt_travel_ring_stop();
    switch (tt_checkpoints_restore(cpu, id)) {
    case TT_RESTORED:
        tt_travel.turn_began = tt_now.pos;
        if (!tt_checkpoints_restored_near()) {
            tt_search_restored();
        }
        tt_timeline_done(tt_travel.timeline, tt_now.pos, TT_STOP_NONE);
        break;
    case TT_RESTORE_ANOTHER:
        break;                          /* the plan knows */
    case TT_RESTORE_NONE:
        tt_travel.no_way = true;
        tt_timeline_done(tt_travel.timeline, tt_now.pos, TT_STOP_DIVERGED);
        break;
    case TT_RESTORE_NOMEM:
        error_report("tt: not enough memory to go there%s", tt_checkpoints_is_lost() ?
                     "" : ": the VM stays where it is");
        tt_timeline_done(tt_travel.timeline, tt_now.pos, TT_STOP_INTERRUPTED);
        break;
    }
}

/* A run to @target: stop on the way for near checkpoints, and to fill the undo log. */
static void plan_run(CPUState *cpu, uint64_t target)
{
    uint64_t fills_from = tt_travel_ring_fills_from(target);

    if (tt_travel.near_at && tt_now.pos >= tt_travel.near_at) {
        tt_checkpoints_near(cpu);
    }
    tt_travel.heads_for = target;
    tt_travel.near_at = tt_omit & TT_OMIT_NEAR ? 0 : tt_near_next(tt_now.pos, target);
    tt_travel.fills = tt_now.pos >= fills_from;
    tt_travel.stop_at = tt_travel.fills ? tt_now.pos + 1 :
        MIN(tt_travel.near_at ?: target, fills_from);
}

static bool take_step(CPUState *cpu, const TtStep *step)
{
    if (step->kind != TT_STEP_RUN || tt_now.pos >= step->pos) {
        tt_travel.heads_for = tt_travel.near_at = 0;
        tt_travel.fills = false;
    }
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
            tt_timeline_done(tt_travel.timeline, step->pos, TT_STOP_NONE);
            return true;
        }
        tt_travel.blind = step->kind == TT_STEP_RUN;
        tt_travel.stop_at = step->pos;
        tt_travel.run_from = tt_travel.heads_for ? tt_travel.run_from : tt_now.pos;
        if (tt_travel.blind) {
            plan_run(cpu, step->pos);
        }
        return false;
    default:
        g_assert_not_reached();
    }
}

/* ---- a scan ---- */

static bool is_scan(void)
{
    return tt_travel.active && tt_travel.visit;
}

const CPUWatchpoint *tt_travel_watch_hit(void)
{
    return tt_travel.watch_hit;
}

bool tt_travel_scans(void)
{
    return is_scan();
}

static void visit_here(bool is_hit)
{
    bool is_new = tt_now.pos != tt_travel.visited || (is_hit && !tt_travel.visited_hit) ||
        tt_travel.watch_hit;

    if (is_scan() && !tt_travel.has_enough && is_new) {
        tt_travel.visited = tt_now.pos;
        tt_travel.visited_hit = is_hit;
        if (!tt_travel.visit(tt_travel.opaque, tt_now.pos, is_hit)) {
            tt_travel.has_enough = tt_travel.pending = true;
        }
    }
}

bool tt_travel_passes(CPUState *cpu)
{
    visit_here(false);
    if (is_scan() && tt_travel.has_enough) {
        cpu->exit_request = true;
        return false;
    }
    return true;
}

void tt_travel_changes_inside(CPUState *cpu)
{
    if (is_scan()) {
        cpu_exit(cpu);
    }
}

bool tt_travel_is_pending(void)
{
    if (tt_travel.stepping_over && tt_now.pos > tt_travel.hit_pos) {
        tt_travel.stepping_over = false;
    }
    visit_here(false);
    return tt_travel.active && (tt_travel.pending || tt_now.pos >= tt_travel_stop_at());
}

/* A straight run: on to its end, or there. */
static bool advance_straight(void)
{
    TtStep step = { .kind = TT_STEP_DONE, .reason = TT_STOP_TARGET };

    if (tt_travel.interrupted) {
        step.reason = TT_STOP_INTERRUPTED;
    } else if (tt_travel.ended) {
        step.reason = tt_travel.ended;
    } else if (tt_now.pos < tt_travel.run_to && !(is_scan() && tt_travel.has_enough)) {
        tt_travel.stop_at = is_scan() && tt_travel.each ? tt_now.pos + 1 :
            tt_travel.run_to;
        return true;
    }
    tt_travel_finish(&step);
    return false;
}

bool tt_travel_advance(CPUState *cpu)
{
    tt_travel.pending = false;
    if (tt_travel.straight) {
        return advance_straight();
    }
    if (tt_travel.probing) {
        end_probe();
    }
    if (tt_travel.interrupted) {
        tt_travel.interrupted = false;
        tt_timeline_done(tt_travel.timeline, tt_now.pos, TT_STOP_INTERRUPTED);
    }
    for (;;) {
        TtStep step = tt_timeline_step(tt_travel.timeline);

        if (step.kind == TT_STEP_DONE) {
            if (step_back_further(&step) || search_turn(&step) ||
                return_pinning(&step)) {
                continue;
            }
            if (begin_probe(cpu, &step)) {
                return true;
            }
            tt_travel_finish(&step);
            return false;
        }
        if (!take_step(cpu, &step)) {
            return true;
        }
    }
}

/*
 * Going forward a watchpoint stops after the access. Going back it must stop
 * before it, where the old value still stands: gdb compares the two.
 */
static void note_hit(uint64_t pos)
{
    CPUState *cpu = tt_vcpu();

    if (pos >= tt_travel.survey_from &&
        !tt_travel.survey(tt_travel.opaque, pos, cpu->cc->get_pc(cpu))) {
        tt_timeline_done(tt_travel.timeline, pos, TT_STOP_END);    /* enough */
        tt_travel.pending = true;
    }
}

void tt_travel_hit(uint64_t pos, CPUWatchpoint *wp)
{
    uint64_t at = wp && pos ? pos - 1 : pos;

    if (is_scan()) {
        tt_travel.watch_hit = wp;
        visit_here(!wp);
        tt_travel.watch_hit = NULL;
    } else if (tt_travel.survey && !tt_travel.blind && !wp) {
        note_hit(pos);
    } else if (!tt_travel.blind && (wp || !tt_travel.probing)) {
        tt_timeline_hit(tt_travel.timeline, at);
        if (at < tt_travel.origin) {
            tt_travel.found = (TtFound) {
                .pos = at, .is_watch = wp != NULL,
                .addr = wp ? wp->vaddr : 0, .len = wp ? wp->len : 0,
                .flags = wp ? wp->flags & BP_MEM_ACCESS : 0,
            };
        }
    }
    if (is_scan() && wp) {
        return;                             /* a breakpoint here counts as well */
    }
    tt_travel.hit_pos = pos;               /* not again at this position */
    tt_travel.stepping_over = !tt_travel.pending;
}

void tt_travel_ended(int reason)
{
    if (!tt_travel.straight) {
        tt_timeline_done(tt_travel.timeline, tt_now.pos, reason);
    }
    tt_travel.ended = reason;
    tt_travel.pending = true;
}
