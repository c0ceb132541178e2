/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replayer: feeds the log to the vCPU. No device, timer or file but RUN takes
 * part, and idle time is skipped.
 *
 * Synchronous events are consumed inside the instruction that asks
 * (tt_replay_sync); asynchronous ones between two instructions, at their exact
 * position: most of them outside cpu_exec (prepare), the acceptance of
 * an interrupt inside it, since its delivery may fault (boundary). The
 * vCPU's budget ends at the next of them (limit).
 */
#include "qemu/osdep.h"
#include "replay/tt-replay.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpu.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "hw-tt/memory/tt-block.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/screen/tt-gpu.h"
#include "hw-tt/screen/tt-screen.h"
#include "hw-tt/state/tt-parent.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "log/tt-sched.h"
#include "pages/tt-pagestore.h"
#include "replay/tt-replay-apply.h"
#include "replay/tt-replay-console.h"
#include "replay/tt-replay-driver.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "replay/tt-stop.h"
#include "run/tt-manifest.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/error-report.h"
#include "exec/cpu-common.h"
#include "exec/cpu-interrupt.h"

#define STALL_MAX 100000        /* turns without progress: see tt_replay_left */

static TtParent *parent;            /* until the first state is loaded */

static struct {
    uint64_t stall_pos;
    uint64_t synced_pos;            /* the TLB is empty if we are still there */
    unsigned stalls;
} turn;

/* ---- between two instructions ---- */

typedef enum Annotated {
    ALL_DONE,
    SOME_LEFT,                  /* somebody else is to have a turn first */
    AT_FINISH,                  /* the end of the run */
} Annotated;

/* Annotations at this position. There may be any number, and their work may be large:
 * whoever waits for the token comes in between. @to_check: up to the first CHECK, in one
 * go, since a sync point follows. */
static Annotated do_annotations(bool to_check)
{
    const TtEvent *ev;
    bool was_check = false;

    for (bool any = false; !tt_replayer.diverged &&
         (ev = tt_sched_peek(tt_replay_sched())) &&
         TT_EV_IS_ANNOTATION(ev->kind) && ev->pos <= tt_now.pos &&
         !(to_check && was_check); any = true) {
        if (any && !to_check && tt_token_is_wanted()) {
            return SOME_LEFT;
        }
        if (ev->pos < tt_now.pos) {
            tt_replay_report("position %" PRIu64 " of a recorded %s was passed", ev->pos,
                             tt_event_kind_name(ev->kind));
            break;
        }
        if (ev->kind == TT_EV_FINISH) {
            return AT_FINISH;
        }
        if (ev->kind == TT_EV_CHECK || ev->kind == TT_EV_DIGEST) {
            tt_replay_check(ev);
        }
        if (ev->kind == TT_EV_SCREEN) {
            tt_gpu_passed(ev);
        }
        was_check = ev->kind == TT_EV_CHECK;
        if (!tt_replayer.diverged) {
            tt_sched_pop(tt_replay_sched());
        }
    }
    return ALL_DONE;
}

static void pass_sync_point(void)
{
    tt_now.sync_next = tt_next_sync_point(tt_now.pos);
    tt_vcpus_flush();
    turn.synced_pos = tt_now.pos;
}

/*
 * Nothing is left of the log, or nothing of it can be read. Up to where the part
 * begins that cannot be read, no event is missing, unless the guest waits for one:
 * the place of the damage is the same, whatever the way to it.
 */
static bool at_end_of_log(bool waits)
{
    TtDiag diag;
    TtStatus s = tt_sched_status(tt_replay_sched(), &diag);

    if (s < 0) {
        if (!waits && tt_now.pos < tt_sched_horizon(tt_replay_sched())) {
            return false;
        }
        tt_replay_damaged(&diag);
        return true;
    }
    if (tt_now.pos < tt_replay_end()) {
        return false;
    }
    tt_replay_ends_in_damage();
    return true;
}

/* The event at the cursor, before guest code runs. True: go on with the next;
 * false: let the vCPU run. */
static bool do_due(const TtEvent *ev)
{
    if (TT_EV_IS_SYNC(ev->kind) || ev->nested) {
        if (ev->pos <= tt_now.pos) {
            tt_replay_report("the recorded %s did not happen (position %"
                             PRIu64 ")", tt_event_kind_name(ev->kind),
                             ev->pos);
            return true;
        }
        return false;
    }
    if (ev->pos > tt_now.pos) {
        return false;
    }
    if (ev->pos < tt_now.pos) {
        tt_replay_report("position %" PRIu64 " of a recorded %s was passed",
                         ev->pos, tt_event_kind_name(ev->kind));
        return true;
    }
    if (ev->kind == TT_EV_INTR || ev->kind == TT_EV_UNHALT) {
        return false;
    }
    if (tt_replay_apply(ev)) {
        bool is_switch = ev->kind == TT_EV_CPU_SWITCH;

        tt_sched_pop(tt_replay_sched());
        tt_now.pos++;
        if (is_switch) {
            tt_vcpu_plan_step();
        }
    }
    return true;
}

/* What is due here; true: let the vCPU run. */
static bool do_all_due(void)
{
    const TtEvent *ev;
    Annotated how;

    while (!tt_replayer.diverged || tt_replay_driver->is_active()) {
        if (tt_replay_driver->is_pending()) {
            if (!tt_replay_driver->advance(tt_vcpu())) {
                return false;
            }
            continue;
        }
        how = do_annotations(false);
        if (how == SOME_LEFT) {
            return false;
        }
        if (how == AT_FINISH) {
            tt_stop_at_end();
            if (!tt_replay_driver->is_active()) {
                return false;
            }
            continue;
        }
        if (tt_replayer.diverged) {
            continue;
        }
        if (tt_now.pos >= tt_now.step_to) {
            tt_vcpus_stop_for_gdb();
            return false;
        }
        if (tt_now.pos >= tt_now.sync_next) {
            pass_sync_point();
        }
        if (tt_now.pos == turn.synced_pos) {
            tt_replay_driver->sync_point(tt_vcpu());
        }
        ev = tt_sched_peek(tt_replay_sched());
        if (!ev) {
            if (!at_end_of_log(false)) {
                return true;
            }
            if (tt_replayer.diverged) {
                continue;
            }
            tt_stop_at_end();
            if (!tt_replay_driver->is_active()) {
                return false;
            }
            continue;
        }
        if (!do_due(ev)) {
            return true;
        }
    }
    tt_stop_vm(tt_replay_failure());
    return false;
}

static bool prepare(void)
{
    if (!do_all_due()) {
        return false;
    }
    tt_replay_driver->runs(tt_vcpu());
    return true;
}

static uint64_t limit(void)
{
    uint64_t end = MIN(tt_sched_horizon(tt_replay_sched()), tt_replay_end());

    return MIN(end, tt_replay_driver->stop_at());
}

static bool is_due(const TtEvent *ev, TtEventKind kind)
{
    return ev && ev->kind == kind && !ev->nested && ev->pos == tt_now.pos &&
        tt_now.pos < tt_replay_driver->stop_at() && tt_now.pos < tt_now.step_to &&
        tt_now.pos < tt_now.sync_next && !tt_replayer.diverged;
}

/*
 * The recorder did its check and its sync point right here, before a pending debug
 * interrupt of the guest's own could move the position on. So do we; then leave
 * cpu_exec, if the guest lets us, for a checkpoint. A movement that ends at a sync
 * point ends after it, as checkpoints do: the fetch may set an accessed bit. The
 * same holds for a request to the recorder for a digest here, or for its end: those
 * follow the check in the log, and their turn comes after the fetch.
 */
static void sync_point_inside(CPUState *cpu)
{
    do_annotations(true);
    pass_sync_point();
    tt_vcpu_fetch_again(cpu);
    cpu->exit_request = true;
}

/* So did the recorder between two sync points, and so do we. */
static void check_inside(CPUState *cpu)
{
    const TtEvent *ev = tt_sched_peek(tt_replay_sched());

    if (ev && ev->kind == TT_EV_CHECK && ev->pos == tt_now.pos &&
        tt_now.pos <= tt_replay_driver->stop_at() &&
        tt_now.pos <= tt_now.step_to && !tt_replayer.diverged &&
        do_annotations(false) == SOME_LEFT) {
        cpu->exit_request = true;
    }
}

static bool boundary(CPUState *cpu)
{
    const TtEvent *ev;
    uint64_t type, vector;

    if (tt_now.pos >= tt_now.sync_next &&
        tt_now.pos <= tt_replay_driver->stop_at() &&
        tt_now.pos <= tt_now.step_to && !tt_replayer.diverged) {
        sync_point_inside(cpu);
        return false;
    }
    check_inside(cpu);
    ev = tt_sched_peek(tt_replay_sched());
    if (!is_due(ev, TT_EV_INTR) ||
        (cpu->interrupt_request & CPU_INTERRUPT_DEBUG) ||  /* first that stop, here */
        !tt_replay_driver->passes(cpu)) {
        return false;
    }
    type = ev->addr;
    vector = ev->val;
    tt_sched_pop(tt_replay_sched());
    tt_session.events++;
    tt_now.pos++;
    tt_replay_interrupted(cpu->cpu_index);
    tt_vcpu_arm(cpu);
    if (!tt_backend->deliver(cpu, type, vector)) {
        tt_replay_report("an interrupt of class %" PRIu64 " cannot be "
                         "delivered here", type);
    }
    cpu->exception_index = -1;
    tt_replay_driver->passes(cpu);
    return true;
}

static bool unhalts(CPUState *cpu)
{
    if (!is_due(tt_sched_peek(tt_replay_sched()), TT_EV_UNHALT)) {
        return false;
    }
    tt_sched_pop(tt_replay_sched());
    tt_session.events++;
    tt_now.pos++;
    tt_vcpu_arm(cpu);
    return true;
}

static bool left(CPUState *cpu, int why)
{
    if (tt_replayer.diverged) {
        return true;
    }
    if (why == EXCP_DEBUG && tt_replay_driver->is_active()) {
        tt_replay_driver->hit(tt_now.pos, cpu->watchpoint_hit);
        cpu->watchpoint_hit = NULL;
        return true;
    }
    if (why == EXCP_HALTED && tt_now.pos < tt_replay_end() &&
        tt_now.pos < tt_replay_driver->stop_at() &&
        tt_now.pos < tt_now.sync_next) {
        if (at_end_of_log(true)) {
            return true;        /* what ends the wait cannot be read */
        }
        tt_replay_report("the guest waits for an interrupt, but the log has none here");
        return true;
    }
    if (tt_now.pos != turn.stall_pos) {
        turn.stall_pos = tt_now.pos;
        turn.stalls = 0;
    } else if (++turn.stalls > STALL_MAX) {
        tt_replay_report("the guest makes no progress here");
        return true;
    }
    return false;
}

/* ---- start and end ---- */

bool tt_replay_open(Error **errp)
{
    if (!tt_replay_log_open(errp)) {
        return false;
    }
    tt_replays_kvm = tt_session.manifest.rules & TT_RULE_KVM;
    tt_fetch_names_page = !(tt_session.manifest.rules & TT_RULE_FETCH_FAULT);
    if (tt_session.manifest.features & TT_FEATURE_PARENT) {
        parent = tt_parent_of(&tt_session.manifest, tt_session.dir, errp);
        return parent;
    }
    return true;
}

/* @b's contents become those in the parent's checkpoint. */
static bool fill(TtBlock *b, Error **errp)
{
    TtStatus s = parent ? tt_parent_fill(parent, b->name, b->size_bytes,
                                         b->host) : TT_ERR_FORMAT;
    const TtDiag *said;
    TtDiag diag;

    if (s < 0) {
        said = parent ? tt_pagestore_read_error(parent->store) : NULL;
        tt_fail(&diag, s, "RAM of checkpoint %" PRIu32 " of the branch's parent "
                "'%s' cannot be read: %s", tt_session.manifest.parent_checkpoint,
                tt_session.manifest.parent_path,
                said ? said->text : tt_status_name(s));
        tt_replay_damaged(&diag);       /* the parent's store, not the replay */
        error_setg(errp, "%s", diag.text);
    }
    return s >= 0;
}

void tt_replay_start(CPUState *cpu)
{
    tt_session.live = true;
    tt_now.pos = 0;
    tt_now.sync_next = tt_next_sync_point(0);
    tt_vcpus_turn_to(first_cpu);
    if (!tt_log_reader_is_window(tt_replay_reader())) {     /* else the driver does */
        tt_replay_apply_initial();
    }
    tt_parent_close(parent);
    parent = NULL;
    tt_vcpus_do_work();
    tt_vcpus_flush();
    if (tt_log_reader_damage(tt_replay_reader()) && !tt_at_end_exit) {
        warn_report("tt: the run can be replayed only up to where its log is damaged: %s",
                    tt_log_reader_damage(tt_replay_reader())->text);
    }
    tt_replay_driver->init(cpu);
    tt_replay_begins_at(tt_now.pos);
    tt_replay_driver->begin();
}

void tt_replay_close(void)
{
    tt_parent_close(parent);
    parent = NULL;
    tt_replay_log_close();
    tt_replay_exact_reset();
    memset(&turn, 0, sizeof(turn));
}

/* ---- what the vCPU and the devices call ---- */

static bool is_moving(void)
{
    return tt_replay_driver->is_active();
}

static bool is_blind(void)
{
    return tt_replay_driver->is_blind();
}

static bool steps_over(void)
{
    return tt_replay_driver->steps_over();
}

static uint64_t stop_at(void)
{
    return tt_replay_driver->stop_at();
}

static void abort_movement(void)
{
    tt_replay_driver->abort();
}

static void changes_inside(CPUState *cpu)
{
    tt_replay_driver->changes_inside(cpu);
}

static const TtOps ops = {
    .answer = tt_replay_sync,
    .port_written = tt_replay_console,
    .prepare = prepare,
    .limit = limit,
    .boundary = boundary,
    .unhalts = unhalts,
    .excepted = changes_inside,
    .mapped_anew = changes_inside,
    .left = left,
    .is_moving = is_moving,
    .is_blind = is_blind,
    .steps_over = steps_over,
    .stop_at = stop_at,
    .abort = abort_movement,
};

static const TtScreenLog screen_log = {
    .sched = tt_replay_sched, .reader = tt_replay_reader,
};

void tt_replay_init(void)
{
    tt_world_register(&tt_replayer, NULL, sizeof(tt_replayer));
    tt_ops_register(TT_REPLAY, &ops);
    tt_memory_on_fill(fill);
    tt_screen_set_log(&screen_log);
}
