/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass that turns a log of exits into a log of instructions.
 *
 * The cursor in the log of exits says what comes next; `at_place` says that the vCPU
 * stands where the event at the cursor happened:
 *
 *   next is            then
 *   an answer          guest code runs until it asks (tt-convert-answer.c); if
 *                      something else than an answer follows, it stops after the
 *                      instruction, and that is the place
 *   a place            guest code runs until the state fits (tt-convert-landmark.c)
 *   a window           guest code runs to the first boundary where an interrupt can
 *                      be taken
 *   HLT                guest code runs until the vCPU halts
 *   any other event    at_place: it is applied, and written with its position
 *
 * The vCPU's state, the flushes of its TLB and the places of digests are as in a
 * recording under TCG (record/tt-record.c), so the new log is replayed like any other.
 */
#include "qemu/osdep.h"
#include "convert/tt-convert.h"
#include "convert/tt-convert-files.h"
#include "tt-convert-part-int.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpu.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "hw-tt/memory/tt-memory.h"
#include "io/tt-base.h"
#include "log/tt-sched.h"
#include "replay/tt-replay-apply.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "replay/tt-stop.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "cpu.h"
#include "qemu/error-report.h"
#include "system/cpus.h"
#include "system/runstate.h"

TtConvertPass tt_pass;
int64_t tt_convert_interval_ms;

/* The recorder's vCPU leaves guest code each second: there is an event before so many. */
#define NEXT_MAX (UINT64_C(1) << 36)

static const TtEvent *next(void)
{
    return tt_sched_peek(tt_replay_sched());
}

/* It belongs to the place that follows. */
static bool is_more(const TtEvent *ev)
{
    return ev->kind == TT_EV_LANDMARK_PAGES || ev->kind == TT_EV_BRANCHES;
}

void tt_convert_pop(void)
{
    if (!is_more(next())) {
        tt_convert_branches_restart(0);
    }
    tt_sched_pop(tt_replay_sched());
    tt_pass.last_at = tt_now.pos;
}

void G_NORETURN tt_convert_leave(CPUState *cpu)
{
    tt_vcpu_leave(cpu);
}

/* ---- events that are applied ---- */

void tt_convert_apply_nested(void)
{
    const TtEvent *ev;

    while ((ev = next()) && ev->nested) {
        if (!tt_replay_may_be_nested(ev)) {
            tt_replay_report("the log has event '%s' inside an instruction",
                             tt_event_kind_name(ev->kind));
            tt_convert_leave(current_cpu);
        }
        if (!tt_convert_apply(ev)) {
            tt_convert_leave(current_cpu);
        }
        tt_convert_pop();
    }
}

/* ---- answers ---- */

static bool is_answer(const TtEvent *ev)
{
    return ev->nested || (TT_EV_IS_SYNC(ev->kind) && ev->kind != TT_EV_HLT);
}

void tt_convert_answered(void)
{
    const TtEvent *ev = next();
    CPUState *cpu = current_cpu;

    tt_convert_branches_restart(0);
    if (ev && (is_answer(ev) || ev->kind == TT_EV_HLT)) {
        return;
    }
    tt_vcpu_count(cpu);
    tt_pass.stops_behind = true;
    tt_vcpu_arm(cpu);
}

/* ---- digests, as a recorder makes them ---- */

static void sync_point(CPUState *cpu)
{
    tt_convert_put_check();
    tt_now.sync_next = tt_next_sync_point(tt_now.pos);
    tt_vcpus_flush();
    tt_vcpu_fetch_again(cpu);
    if (tt_convert_point_is_due(tt_convert_interval_ms)) {
        tt_pass.point_at = tt_now.pos;
        cpu->exit_request = true;
    }
}

/* ---- the end ---- */

static void end(bool is_clean)
{
    Error *err = NULL;

    if (tt_pass.is_over) {
        return;
    }
    tt_pass.is_over = true;
    if (!is_clean) {
        tt_convert_put_damage();
    }
    if (!tt_convert_points_close(&err) || !tt_convert_log_finish(true, is_clean, &err)) {
        error_reportf_err(err, "tt: the run cannot be converted: ");
        exit(1);
    }
    if (!tt_convert_part_is_on()) {
        tt_convert_tell_done();
    }
    qemu_system_shutdown_request_with_code(SHUTDOWN_CAUSE_HOST_QMP_QUIT, 0);
}

void tt_convert_end_part(void)
{
    Error *err = NULL;

    tt_pass.is_over = true;
    if (!tt_convert_log_finish(false, false, &err)) {
        error_reportf_err(err, "tt: the run cannot be converted: ");
        exit(1);
    }
    qemu_system_shutdown_request_with_code(SHUTDOWN_CAUSE_HOST_QMP_QUIT, 0);
}

void tt_convert_annotate(const TtEvent *ev)
{
    TtEvent copy = *ev;

    copy.pos = tt_now.pos;
    switch (ev->kind) {
    case TT_EV_CHECK:
        tt_convert_put_check();
        break;
    case TT_EV_DIGEST:
        tt_convert_put_digest(ev);
        break;
    case TT_EV_FINISH:
        tt_convert_put(&copy);
        end(true);
        break;
    default:
        tt_convert_put(&copy);
        break;
    }
}

/* ---- outside guest code ---- */

typedef enum Step { RUN, AGAIN, STAND } Step;

/* The landmark at the cursor is here. */
static void found(CPUState *cpu)
{
    tt_convert_hunt_ends(cpu);
    tt_convert_counts.places++;
    tt_pass.checkpoint = tt_pass.find(next()->pos + 1);
    tt_convert_pop();
    tt_pass.at_place = true;
}

/* The vCPU stands where @ev happened, or runs until it does. */
static Step reach(CPUState *cpu, const TtEvent *ev)
{
    if (tt_convert_has_more() && ev->kind != TT_EV_LANDMARK && !is_more(ev)) {
        tt_replay_report("the count or the pages of a recorded place are damaged");
        return STAND;
    }
    if (is_answer(ev) || ev->kind == TT_EV_HLT) {
        tt_pass.at_place = false;
        return RUN;
    }
    if (ev->kind == TT_EV_LANDMARK_PAGES) {
        if (!tt_convert_more_pages(ev)) {
            tt_replay_report("the pages of a recorded landmark are damaged");
            return STAND;
        }
        tt_convert_pop();
        return AGAIN;
    }
    if (ev->kind == TT_EV_BRANCHES) {
        tt_convert_more_branches(ev);
        tt_convert_pop();
        return AGAIN;
    }
    if (ev->kind == TT_EV_LANDMARK) {
        if (tt_convert_is_here(cpu, ev)) {
            found(cpu);
            return AGAIN;
        }
        tt_pass.at_place = false;
        if (!tt_convert_is_hunting() && !tt_convert_hunt(cpu, ev)) {
            tt_replay_report("a recorded landmark is damaged");
            return STAND;
        }
        if (!tt_convert_hunt_goes_on(cpu)) {
            g_autofree char *why = tt_convert_hunt_text();

            tt_replay_report("a recorded landmark was not where its branches are; replay "
                             "with x-omit=branch-counts to look for it elsewhere: %s",
                             why);
            return STAND;
        }
        return RUN;
    }
    if (ev->kind == TT_EV_WINDOW) {
        tt_pass.at_place = false;
        tt_pass.wants_window = true;
        cpu->interrupt_request |= CPU_INTERRUPT_HARD;
        return RUN;
    }
    if (!tt_pass.at_place) {
        tt_replay_report("the log does not say where the recorded event '%s' happened",
                         tt_event_kind_name(ev->kind));
        return STAND;
    }
    return AGAIN;
}

static Step do_next(CPUState *cpu)
{
    const TtEvent *ev = next();
    Step step;
    bool is_state;

    if (tt_pass.checkpoint && !tt_pass.passes(cpu)) {
        return STAND;
    }
    if (!ev) {
        tt_convert_log_can_end();
        end(false);
        return STAND;
    }
    step = reach(cpu, ev);
    if (step != AGAIN || ev != next()) {
        return step;
    }
    if (ev->kind == TT_EV_INTR || ev->kind == TT_EV_UNHALT) {
        return RUN;                     /* inside: boundary, unhalts */
    }
    if (TT_EV_IS_ANNOTATION(ev->kind)) {
        tt_convert_annotate(ev);
        tt_convert_pop();
        return tt_pass.is_over ? STAND : AGAIN;
    }
    is_state = ev->kind == TT_EV_CPU_FLAG &&
        (ev->addr == TT_FLAG_TPR || ev->addr == TT_FLAG_TSC ||
         ev->addr == TT_FLAG_A20);
    if (!tt_convert_apply(ev)) {
        return STAND;
    }
    tt_convert_pop();
    tt_now.pos += !is_state;
    return AGAIN;
}

static bool prepare(void)
{
    CPUState *cpu = tt_vcpu();
    Step step = AGAIN;

    if (tt_pass.point_at && tt_pass.point_at == tt_now.pos) {
        tt_pass.take_point(cpu);
    }
    tt_pass.point_at = 0;            /* something else came first: the next sync point */
    if (tt_convert_tell_progress(tt_now.pos - tt_pass.last_at)) {
        tt_convert_repeat_tick(cpu);
    }
    if (tt_now.pos - tt_pass.last_at >= NEXT_MAX) {
        tt_replay_report("the guest never reaches the event that was recorded next");
    }
    while (step == AGAIN && !tt_replayer.diverged && !tt_pass.is_over) {
        step = do_next(cpu);
    }
    if (tt_replayer.diverged) {
        tt_stop_vm(tt_replay_failure());
        return false;
    }
    return step == RUN && cpu_work_list_empty(cpu);
}

/* Guest code is not to run on: the next event happens here. */
static bool is_due(void)
{
    const TtEvent *ev = next();

    return tt_pass.at_place && ev && !is_answer(ev) && ev->kind != TT_EV_HLT &&
        ev->kind != TT_EV_LANDMARK && ev->kind != TT_EV_WINDOW;
}

static uint64_t limit(void)
{
    return tt_pass.stops_behind || tt_convert_owes_half() || is_due() ? tt_now.pos :
        tt_pass.last_at + NEXT_MAX;
}

/* ---- in guest code, between two blocks ---- */

/* The next event is looked for from here on: prepare does it. */
static void leave_unless_answer(CPUState *cpu)
{
    const TtEvent *ev = next();

    if (!ev || (!is_answer(ev) && ev->kind != TT_EV_HLT)) {
        cpu->exit_request = true;
    }
}

/* An event of @kind happens here: it is written, and in *@taken. */
static bool take(CPUState *cpu, TtEventKind kind, TtEvent *taken)
{
    const TtEvent *ev = next();

    if (!tt_pass.at_place || !ev || ev->kind != kind) {
        return false;
    }
    *taken = *ev;
    taken->pos = tt_now.pos;
    tt_convert_put(taken);
    tt_convert_pop();
    tt_now.pos++;
    tt_vcpu_arm(cpu);
    return true;
}

static bool take_interrupt(CPUState *cpu)
{
    TtEvent intr;

    if (!take(cpu, TT_EV_INTR, &intr)) {
        return false;
    }
    leave_unless_answer(cpu);           /* the delivery itself may fault */
    if (!tt_target_deliver(cpu, intr.addr, intr.val)) {
        tt_replay_report("a recorded interrupt of class %" PRIu64 " cannot be "
                         "delivered", intr.addr);
    }
    cpu->exception_index = -1;
    return true;
}

static void store_half(CPUState *cpu)
{
    const TtEvent *ev = tt_convert_take_half();

    if (ev && tt_convert_apply(ev)) {
        tt_now.pos++;
        tt_vcpu_arm(cpu);
    }
}

static bool boundary(CPUState *cpu)
{
    bool is_behind = tt_pass.stops_behind;

    if (is_behind) {
        tt_pass.stops_behind = false;
        tt_pass.at_place = true;
    }
    if (tt_now.pos >= tt_now.sync_next) {
        sync_point(cpu);
        tt_vcpu_arm(cpu);
    }
    store_half(cpu);
    if (take_interrupt(cpu)) {
        return true;
    }
    if (is_behind) {
        cpu->exit_request = true;       /* prepare sees to what comes next */
    }
    return false;
}

static void window_open(CPUState *cpu)
{
    if (tt_pass.wants_window) {
        tt_pass.wants_window = false;
        cpu->interrupt_request &= ~CPU_INTERRUPT_HARD;
        tt_convert_pop();
        tt_pass.at_place = true;
        cpu->exit_request = true;
    }
}

static bool unhalts(CPUState *cpu)
{
    TtEvent unhalt;

    return take(cpu, TT_EV_UNHALT, &unhalt);
}

static bool left(CPUState *cpu, int why)
{
    const TtEvent *ev = next();

    if (tt_replayer.diverged || tt_pass.is_over) {
        return true;
    }
    if (why == EXCP_DEBUG && tt_convert_is_hunting()) {
        found(cpu);
    } else if (why == EXCP_HLT) {
        if (!ev || ev->kind != TT_EV_HLT) {
            tt_convert_report_other("halts", ev);
            return true;
        }
        tt_convert_pop();
        tt_pass.at_place = true;
    } else if (why == EXCP_HALTED) {
        tt_replay_report("the guest waits for an interrupt, but the log has none here");
    }
    return true;
}

/* ---- all of it ---- */

static void port_written(uint32_t port, uint32_t val, unsigned size) { }

static uint64_t stop_at(void)
{
    return UINT64_MAX;
}

static void no_movement(void)
{
}

static const TtOps ops = {
    .answer = tt_convert_answer, .cr8_written = tt_convert_cr8_written,
    .port_written = port_written,
    .prepare = prepare, .limit = limit, .boundary = boundary, .left = left,
    .unhalts = unhalts, .excepted = tt_convert_excepted, .window_open = window_open,
    .stop_at = stop_at, .abort = no_movement,
};

void tt_convert_register(void)
{
    tt_ops_register(TT_REPLAY, &ops);
}
