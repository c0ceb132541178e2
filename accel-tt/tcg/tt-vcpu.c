/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vCPU thread under -tt, and the position.
 *
 * Position = instructions executed + exceptions delivered + asynchronous events
 * applied. Counted blocks (CF_USE_ICOUNT without icount) give the first part:
 * while guest code runs, executed = icount_budget - (low + extra), and tt_now.pos is
 * the position at which the budget was armed. So the count is used to place and
 * to stop, never as a clock.
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
 * Several vCPUs take turns in that one thread. The recording chooses: who runs
 * goes on until it waits (HLT, PAUSE), has run for TT_TIME_SLICE positions, or was
 * interrupted; then comes the next that can run. The change is an event.
 */
#include "qemu/osdep.h"
#include "accel-tt/tcg/tt-vcpu.h"
#include "accel-tt/tcg/tt-branch-trace.h"
#include "accel-tt/tcg/tt-watch.h"
#include "accel-tt/tt-schedule.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "checkpoint/tt-checkpointer.h"
#include "hw-tt/memory/tt-guard.h"
#include "record/tt-record.h"
#include "replay/tt-replay.h"
#include "session/tt-position.h"
#include "session/tt-session.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "qemu/guest-random.h"
#include "exec/cpu-common.h"
#include "exec/cputlb.h"
#include "exec/tb-flush.h"
#include "exec/translation-block.h"
#include "qemu/error-report.h"
#include "system/cpus.h"
#include "system/runstate.h"
#include "gdbstub/enums.h"
#include "tcg/startup.h"
#include "accel/tcg/tcg-accel-ops.h"

/* Guest instructions that the vCPU may run although others wait: long enough
 * to be worth the switch (some 50 us), short enough not to be felt. */
#define TT_SLICE 20000

bool tt_breakpoints_off;
bool tt_insn_counted;

static bool slice;
static bool in_loop;            /* the vCPU thread is in tt_vcpu_loop */

/* ---- position ---- */

static int64_t executed(CPUState *cpu)
{
    return cpu->icount_budget -
        (cpu->neg.icount_decr.u16.low + cpu->icount_extra);
}

uint64_t tt_position(void)
{
    CPUState *cpu = tt_vcpu();

    /* Inside a device call the vCPU may sleep and let another thread go on. */
    if ((tt_token_is_mine() || tt_now.device_depth) && cpu->running) {
        return tt_now.pos + executed(cpu);
    }
    return tt_now.pos;
}

void tt_count_update(CPUState *cpu)
{
    int64_t n = executed(cpu);

    cpu->icount_budget -= n;
    tt_now.pos += n;
}

/* How far guest code may run from here. */
static uint64_t limit(CPUState *cpu)
{
    uint64_t end = MIN(tt_now.sync_next, tt_now.pos + (1ull << 40));

    if (slice) {
        end = MIN(end, tt_now.pos + TT_SLICE);
    }
    end = MIN(end, tt_now.step_to);
    if (unlikely(tt_trace_is_on)) {
        end = MIN(end, tt_trace_limit());
    }
    if (tt_replaying()) {
        end = MIN(end, tt_replay_limit());
    } else {
        end = MIN(end, tt_now.check_next);
        if (tt_vcpus_count() > 1) {
            end = MIN(end, tt_schedule_end());
        }
    }
    return end;
}

void tt_vcpu_arm(CPUState *cpu)
{
    uint64_t end = limit(cpu);
    int64_t budget = end > tt_now.pos ? end - tt_now.pos : 0;
    int low = MIN(0xffff, budget);

    cpu->icount_budget = budget;
    cpu->neg.icount_decr.u16.low = low;
    cpu->icount_extra = budget - low;
}

static void disarm(CPUState *cpu)
{
    tt_count_update(cpu);
    cpu->icount_budget = 0;
    cpu->neg.icount_decr.u16.low = 0;
    cpu->icount_extra = 0;
}

/* All that it executed was counted before. */
static void forget_count(CPUState *cpu)
{
    if (tt_token_is_mine() && cpu->running) {
        cpu->icount_budget = cpu->neg.icount_decr.u16.low + cpu->icount_extra;
    }
}

void tt_cpu_was_reset(CPUState *cpu)
{
    tt_insn_counted = false;
    forget_count(cpu);
    if (tt_recording() && tt_session.live) {
        tt_record_reset(cpu);
    }
}

void tt_count_exception(CPUState *cpu)
{
    tt_count_update(cpu);
    if (!(tt_omit & TT_OMIT_EXCEPTION_COUNT) && !tt_insn_counted) {
        tt_now.pos++;
    }
    tt_insn_counted = false;
    tt_vcpu_arm(cpu);
}

bool tt_boundary(CPUState *cpu)
{
    if (cpu->neg.icount_decr.u16.low + cpu->icount_extra) {
        if (unlikely(cpu->interrupt_request)) {
            tt_count_update(cpu);       /* INIT resets the counter */
        }
        return false;
    }
    tt_count_update(cpu);
    if (tt_replaying()) {
        return tt_replay_boundary(cpu);
    }
    if (tt_now.pos >= tt_now.sync_next) {
        tt_record_sync_point(cpu);
        tt_vcpu_arm(cpu);
    } else if (tt_now.pos >= tt_now.check_next) {
        tt_record_check();
        tt_vcpu_arm(cpu);
    }
    return false;
}

void G_NORETURN tt_vcpu_leave(CPUState *cpu)
{
    cpu->exception_index = EXCP_INTERRUPT;
    cpu_loop_exit(cpu);
}

/* ---- interrupts raised by devices ---- */

void tt_handle_interrupt(CPUState *cpu, int mask)
{
    if (tt_replaying() && (!tt_past || tt_token_is_mine())) {
        /* No device acts in a replay: only what the vCPU does to itself. */
        mask &= CPU_INTERRUPT_EXITTB | CPU_INTERRUPT_DEBUG;
        if (!mask) {
            return;
        }
    }
    tcg_handle_interrupt(cpu, mask);
}

void tt_vcpu_kick(CPUState *cpu)
{
    cpu_exit(cpu);
    cpu_exit(tt_vcpu() ?: cpu);         /* it may run in the same thread */
}

bool tt_vcpu_is_ours(void)
{
    return in_loop;
}

void tt_vcpu_wake(void)
{
    qemu_cpu_kick(tt_vcpu());
}

bool tt_vcpu_is_idle(CPUState *cpu)
{
    return !tt_replaying();         /* a replay knows no idle time */
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
    if (tt_travel_active() && !cpu->stop) {
        return false;
    }
    if (tt_past) {                      /* QEMU does not ask tt_vcpu_is_idle */
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

bool tt_vcpu_has_duties(CPUState *cpu)
{
    return cpu->stop || !cpu_work_list_empty(cpu);
}

/* A replay runs as one: it is the log that says who. */
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
    return tt_travel_active() || !stopped;
}

/* The token is about to be given away. */
static void releasing(void)
{
    if (tt_recording() && tt_session.live) {
        tt_record_release();
    }
}

static bool prepare(void)
{
    if (tt_replaying()) {
        if (!tt_replay_prepare()) {
            return false;
        }
        return cpu_work_list_empty(tt_vcpu());  /* a new map waits to be used */
    }
    if (tt_session.live) {
        tt_record_resync();
    }
    return tt_schedule_choose();
}

static void stepped_or_hit(CPUState *cpu, int why)
{
    if (tt_replaying() && tt_replay_left(cpu, why)) {
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
    bool step = tt_vcpu()->singlestep_enabled && !tt_travel_active();

    tt_now.step_to = step ? tt_now.pos + 1 : UINT64_MAX;
}

static void turn(void)
{
    CPUState *cpu = tt_vcpu();
    bool step, blind;
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
    step = tt_now.step_to != UINT64_MAX;
    if (unlikely(tt_trace_is_on)) {
        tt_trace_turn();
    }
    tt_guard_settle();
    tt_vcpu_arm(cpu);
    blind = tt_travel_is_blind();
    if (blind) {
        tt_watchpoints_hide(cpu);
    } else {
        tt_watchpoints_arm(cpu);
    }
    tt_breakpoints_off = step || blind || tt_travel_steps_over();
    tt_token_enter_guest(slice);
    why = tcg_cpu_exec(cpu);
    tt_token_leave_guest();
    tt_breakpoints_off = false;
    tt_watchpoints_restore(cpu);
    disarm(cpu);
    tt_schedule_note(why == EXCP_INTERRUPT);
    if (tt_recording()) {
        tt_checkpointer_turn(cpu);
    }
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
        if (cpu->stop && !cpu->stopped && tt_travel_active()) {
            tt_travel_abort();  /* who stops the VM waits for us until then */
        }
        current_cpu = cpu;
        qemu_wait_io_event_common(cpu);
    }
}

static void force_rcu(Notifier *notify, void *data)
{
    tt_token_kick();
}

/* Between two turns in the past, devices find the vCPUs of the present. */
static void turn_in_past(void)
{
    tt_target_swap_links();
    turn();
    tt_target_swap_links();
}

static void one_round(void)
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

static void start_with_the_vm(void)
{
    Error *err = NULL;

    current_cpu = tt_vcpu();
    if (!tt_record_start(&err)) {
        error_reportf_err(err, "-tt record: ");
        exit(1);
    }
}

/*
 * Whoever wanted the lock before the token was on waits for it uncounted, and
 * nobody would give way for him: let him in first. (One that is not there yet
 * gets his chance when the next segment is sealed.)
 */
static void let_in_the_uncounted(void)
{
    bql_unlock();
    g_usleep(1000);
    bql_lock();
}

void tt_vcpu_loop(CPUState *cpu)
{
    Notifier rcu = { .notify = force_rcu };

    let_in_the_uncounted();
    rcu_add_force_rcu_notifier(&rcu);
    tt_token_adopt();
    tt_vcpus_find();
    if (tt_on() && !tt_session.has_begun) {
        start_with_the_vm();
    }
    in_loop = true;
    while (tt_on()) {
        one_round();
    }
    in_loop = false;
    tt_token_disown();
    rcu_remove_force_rcu_notifier(&rcu);
}

static void change_mode(CPUState *cpu)
{
    assert(!cpu->running);
    if (tt_on()) {
        cpu->tcg_cflags |= CF_USE_ICOUNT;
    } else {
        cpu->tcg_cflags &= ~CF_USE_ICOUNT;
    }
    cpu->cflags_next_tb = -1;
    cpu->icount_budget = 0;
    cpu->icount_extra = 0;
    cpu->neg.icount_decr.u16.low = 0;
    /* Also the address spaces without entries get a table of the new size. */
    qemu_spin_lock(&cpu->neg.tlb.c.lock);
    cpu->neg.tlb.c.dirty = MAKE_64BIT_MASK(0, NB_MMU_MODES);
    qemu_spin_unlock(&cpu->neg.tlb.c.lock);
    tlb_flush(cpu);
}

void tt_vcpu_mode_changed(void)
{
    assert(bql_locked());
    tt_vcpus_find();
    tt_insn_counted = false;    /* set in any mode, cleared in ours */
    tb_flush(first_cpu);
    for (unsigned i = 0; i < tt_vcpus_count(); i++) {
        change_mode(tt_vcpus_at(i));
    }
}

/* ---- the thread of a replay ---- */

static void *vcpu_thread(void *opaque)
{
    CPUState *cpu = opaque;
    Notifier rcu = { .notify = force_rcu };

    rcu_register_thread();
    rcu_add_force_rcu_notifier(&rcu);
    tcg_register_thread();
    bql_lock();
    qemu_thread_get_self(cpu->thread);
    cpu->thread_id = qemu_get_thread_id();
    cpu->neg.can_do_io = true;
    cpu_thread_signal_created(cpu);
    qemu_guest_random_seed_thread_part2(cpu->random_seed);

    while (cpu->stopped && !tt_travel_active()) {
        qemu_cond_wait_bql(cpu->halt_cond);
        for (unsigned i = 0; i < tt_vcpus_count(); i++) {
            current_cpu = tt_vcpus_at(i);
            qemu_wait_io_event_common(current_cpu);
        }
    }
    tt_token_adopt();
    for (;;) {
        one_round();
    }
    return NULL;
}

/* The second vCPU and those that follow live in the thread of the first. */
static void join_first(CPUState *cpu)
{
    g_free(cpu->thread);
    qemu_cond_destroy(cpu->halt_cond);
    g_free(cpu->halt_cond);
    cpu->thread = first_cpu->thread;
    cpu->halt_cond = first_cpu->halt_cond;
    cpu->thread_id = first_cpu->thread_id;
    cpu->neg.can_do_io = true;
    cpu->created = true;
}

void tt_vcpu_start(CPUState *cpu)
{
    tt_vcpus_find();
    tcg_cpu_init_cflags(cpu, false);
    if (cpu != first_cpu) {
        join_first(cpu);
        return;
    }
    cpu->thread = cpu->thread ?: g_new0(QemuThread, 1);
    qemu_thread_create(cpu->thread, "CPU 0/TT", vcpu_thread, cpu,
                       QEMU_THREAD_JOINABLE);
}
