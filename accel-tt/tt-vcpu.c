/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vCPU thread under -tt, and the position.
 *
 * Position = what passed in guest code (the backend counts it: instructions
 * executed and exceptions delivered) + asynchronous events applied. While guest
 * code runs, tt_now.pos is the position at which the stop was armed.
 *
 * One turn of the thread:
 *
 *   give way (token) -> work of others -> prepare -> arm -> cpu_exec -> disarm
 *                          ^                |                              |
 *                          |   stand still -+                              |
 *                          +-----------------------------------------------+
 *
 * Recording: prepare writes down what others changed in the vCPU meanwhile.
 * Replay: prepare applies what the log has for this position and moves a travel
 * on; it may decide that the VM stands still here.
 *
 * The thread of a replay is ours. A recording borrows the one that QEMU made: it
 * takes its turns in tt_vcpu_loop while tt_mode says so, and goes back to its own
 * loop when the recording has ended.
 *
 * Several vCPUs take turns in that one thread. While recording, tt-schedule.c chooses
 * which one runs. The change is an event.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpu.h"
#include "accel-tt/tt-inputs.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-schedule.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "accel-tt/tt-vcpus.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "exec/cpu-common.h"
#include "exec/cputlb.h"
#include "qemu/error-report.h"
#include "system/cpus.h"
#include "system/runstate.h"
#include "gdbstub/enums.h"

/* Guest instructions that the vCPU may run although others wait: long enough
 * to be worth the switch (some 50 us), short enough not to be felt. */
#define TT_SLICE 20000

static bool slice;
static bool in_loop;            /* the vCPU thread is in tt_vcpu_loop */

/* ---- where a turn ends ---- */

/* How far guest code may run from here. */
static uint64_t limit(void)
{
    uint64_t end = MIN(tt_now.sync_next, tt_now.pos + (1ull << 40));

    if (slice) {
        end = MIN(end, tt_now.pos + TT_SLICE);
    }
    end = MIN(end, tt_now.step_to);
    end = MIN(end, tt_backend->limit());
    end = MIN(end, tt_ops->limit());
    if (tt_recording() && tt_vcpus_count() > 1) {
        end = MIN(end, tt_schedule_end());
    }
    return end;
}

void tt_vcpu_arm(CPUState *cpu)
{
    uint64_t end = limit();

    tt_backend->arm(cpu, end > tt_now.pos ? end - tt_now.pos : 0);
}

void tt_vcpu_count(CPUState *cpu)
{
    tt_now.pos += tt_backend->count(cpu);
}

static void disarm(CPUState *cpu)
{
    tt_vcpu_count(cpu);
    tt_backend->disarm(cpu);
}

void G_NORETURN tt_vcpu_leave(CPUState *cpu)
{
    tt_backend->leave(cpu);
}

void tt_vcpu_fetch_again(CPUState *cpu)
{
    if (tt_backend->fetch_again) {
        tt_backend->fetch_again(cpu);
    }
}

bool tt_vcpu_is_ours(void)
{
    return in_loop;
}

void tt_vcpu_wake(void)
{
    qemu_cpu_kick(tt_vcpu());
}

/* ---- the thread ---- */

/* A replay may be told to run before its first state is loaded. */
static bool is_early(CPUState *cpu)
{
    return tt_replaying() && !tt_session.live;
}

static bool is_one_idle(CPUState *cpu)
{
    if (is_early(cpu) && !cpu->stop && cpu_work_list_empty(cpu)) {
        return true;
    }
    if (tt_is_moving() && !cpu->stop) {
        return false;
    }
    if (tt_past) {                      /* QEMU does not ask its functions of a replay */
        return !cpu->stop && cpu_work_list_empty(cpu) && cpu_is_stopped(cpu);
    }
    return cpu_thread_is_idle(cpu);
}

static bool are_idle(void)
{
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        if (!is_one_idle(tt_vcpus_at(i))) {
            return false;
        }
    }
    return true;
}

/* A replay runs as one: the log says which vCPU. */
static bool may_run(void)
{
    bool stopped = true;

    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        CPUState *cpu = tt_vcpus_at(i);

        if (tt_vcpu_has_duties(cpu) || is_early(cpu)) {
            return false;
        }
        stopped &= cpu_is_stopped(cpu);
    }
    return tt_is_moving() || !stopped;
}

/* The token is about to be given away. */
static void releasing(void)
{
    if (tt_ops->releasing) {
        tt_ops->releasing();
    }
}

static bool prepare(void)
{
    if (!tt_ops->prepare()) {
        return false;
    }
    /* A new map waits to be used; or it is for us to say which vCPU runs. */
    return tt_recording() ? tt_schedule_choose() : cpu_work_list_empty(tt_vcpu());
}

static void stepped_or_hit(CPUState *cpu, int why)
{
    if (tt_ops->left(cpu, why)) {
        return;                     /* a travel, or the end: dealt with */
    }
    if (why == EXCP_DEBUG || tt_now.pos >= tt_now.step_to) {
        tt_vcpus_stop_for_gdb();
    }
}

/*
 * A step of gdb's is one position of the vCPU that it steps. While it is another
 * one's turn, that one runs on.
 */
void tt_vcpu_plan_step(void)
{
    bool step = tt_vcpu()->singlestep_enabled && !tt_is_moving();

    tt_now.step_to = step ? tt_now.pos + 1 : UINT64_MAX;
}

static TtRunMode run_mode(bool is_step)
{
    TtRunMode how = { .is_blind = tt_ops->is_blind && tt_ops->is_blind() };

    how.passes_breakpoints = is_step || how.is_blind ||
        (tt_ops->steps_over && tt_ops->steps_over());
    return how;
}

static void turn(void)
{
    CPUState *cpu = tt_vcpu();
    TtRunMode how;
    int why;

    current_cpu = cpu;
    tt_vcpu_plan_step();
    if (!prepare()) {
        return;
    }
    if (cpu != tt_vcpu()) {
        cpu = current_cpu = tt_vcpu();
        tt_vcpu_plan_step();
    }
    tt_backend->prepare();
    tt_settle();
    how = run_mode(tt_now.step_to != UINT64_MAX);
    tt_vcpu_arm(cpu);
    tt_token_enter_guest(slice);
    why = tt_backend->run(cpu, &how);
    tt_token_leave_guest();
    disarm(cpu);
    tt_schedule_note(why == EXCP_INTERRUPT);
    stepped_or_hit(cpu, why);
}

static void wait_for_work(void)
{
    bool released = false;

    while (are_idle()) {
        if (!released) {
            releasing();
            released = true;
        }
        qemu_cond_wait_bql(tt_vcpu()->halt_cond);
    }
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        CPUState *cpu = tt_vcpus_at(i);

        if (!cpu_work_list_empty(cpu)) {
            releasing();
        }
        if (cpu->stop && !cpu->stopped && tt_is_moving()) {
            tt_ops->abort();    /* the one that stops the VM waits for us */
        }
        current_cpu = cpu;
        qemu_wait_io_event_common(cpu);
    }
}

void tt_vcpu_force_rcu(Notifier *notify, void *data)
{
    tt_token_kick();
}

/* Between two turns in the past, devices find the vCPUs of the present. */
static void turn_in_past(void)
{
    tt_vcpus_swap_links();
    turn();
    tt_vcpus_swap_links();
}

void tt_vcpu_round(void)
{
    slice = tt_token_yield(releasing);
    if (tt_on() && may_run()) {
        if (tt_past) {
            turn_in_past();
        } else {
            turn();
        }
    }
    if (tt_vcpu()->exit_request) {
        qatomic_set_mb(&tt_vcpu()->exit_request, 0);
    }
    wait_for_work();
}

/*
 * A thread that wanted the lock before the token was on waits for it uncounted, and
 * nobody would give way to it: let it in first. (One that is not there yet gets its
 * chance when the next segment is sealed.)
 */
static void let_in_the_uncounted(void)
{
    bql_unlock();
    g_usleep(1000);
    bql_lock();
}

void tt_vcpu_loop(CPUState *cpu)
{
    Notifier rcu = { .notify = tt_vcpu_force_rcu };

    let_in_the_uncounted();
    rcu_add_force_rcu_notifier(&rcu);
    tt_token_adopt();
    tt_vcpus_find();
    if (tt_on() && !tt_session.has_begun) {
        current_cpu = tt_vcpu();
        tt_ops->begin();
    }
    in_loop = true;
    while (tt_on()) {
        tt_vcpu_round();
    }
    in_loop = false;
    tt_token_disown();
    rcu_remove_force_rcu_notifier(&rcu);
}

void tt_vcpu_mode_changed(void)
{
    assert(bql_locked());
    tt_vcpus_find();
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        tt_backend->mode_changed(tt_vcpus_at(i));
    }
}
