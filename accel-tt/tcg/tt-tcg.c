/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vCPU backend for TCG (accel-tt/tt-vcpu-backend.h).
 *
 * Counted blocks (CF_USE_ICOUNT without icount) give the number of instructions:
 * while guest code runs, executed = icount_budget - (low + extra). So the count is
 * used to place and to stop, never as a clock. An exception that is delivered
 * counts as one, too: a fault that is unwound leaves no instruction behind.
 */
#include "qemu/osdep.h"
#include "accel-tt/tcg/tt-tcg.h"
#include "accel-tt/tcg/tt-fetch.h"
#include "accel-tt/tcg/tt-tcg-trace.h"
#include "accel-tt/tcg/tt-tlb.h"
#include "accel-tt/tcg/tt-undo-tcg.h"
#include "accel-tt/tcg/tt-watch.h"
#include "accel-tt/tt-branch-trace.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "accel-tt/tt-vcpu.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-target.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "qemu/main-loop.h"
#include "qemu/guest-random.h"
#include "qemu/rcu.h"
#include "exec/breakpoint.h"
#include "exec/cputlb.h"
#include "exec/cpu-common.h"
#include "exec/translation-block.h"
#include "system/accel-ops.h"
#include "system/cpus.h"
#include "system/runstate.h"
#include "system/tcg.h"
#include "tcg/startup.h"
#include "accel/tcg/tcg-accel-ops.h"
#include "exec/tb-flush.h"

bool tt_breakpoints_off, tt_breakpoint_stopped;

bool tt_has_breakpoint(CPUState *cpu, uint64_t pc)
{
    return cpu_breakpoint_test(cpu, pc, BP_GDB);
}

/* ---- the budget ---- */

static uint64_t n_begun, n_excepted;

static uint64_t begun(void)
{
    return n_begun;
}

static uint64_t excepted(void)
{
    return n_excepted;
}

static int64_t executed(CPUState *cpu)
{
    return cpu->icount_budget -
        (cpu->neg.icount_decr.u16.low + cpu->icount_extra);
}

static void arm(CPUState *cpu, uint64_t n)
{
    int64_t budget = n;
    int low = MIN(0xffff, budget);

    cpu->icount_budget = budget;
    cpu->neg.icount_decr.u16.low = low;
    cpu->icount_extra = budget - low;
}

static uint64_t passed(CPUState *cpu)
{
    return executed(cpu);
}

static uint64_t count(CPUState *cpu)
{
    int64_t n = executed(cpu);

    cpu->icount_budget -= n;
    n_begun += n;
    return n;
}

static void disarm(CPUState *cpu)
{
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

static uint64_t limit(void)
{
    return unlikely(tt_trace_is_on) ? tt_trace_limit() : UINT64_MAX;
}

static void prepare(void)
{
    if (unlikely(tt_trace_is_on)) {
        tt_trace_turn();
    }
}

static int run(CPUState *cpu, const TtRunMode *how)
{
    int why;

    if (how->is_blind) {
        tt_watchpoints_hide(cpu);
    } else {
        tt_watchpoints_arm(cpu);
    }
    tt_breakpoints_off = how->passes_breakpoints;
    why = tcg_cpu_exec(cpu);
    tt_breakpoints_off = false;
    tt_watchpoints_restore(cpu);
    return why;
}

/* ---- hooks of the run loop ---- */

void tt_count_update(CPUState *cpu)
{
    tt_vcpu_count(cpu);
}

void tt_cpu_was_reset(CPUState *cpu)
{
    tt_insn_counted = false;
    forget_count(cpu);
    if (tt_ops->was_reset && tt_session.live) {
        tt_ops->was_reset(cpu);
    }
}

void tt_count_exception(CPUState *cpu)
{
    tt_count_update(cpu);
    n_excepted++;
    if (tt_ops->excepted) {
        tt_ops->excepted(cpu);
    }
    if (!(tt_omit & TT_OMIT_EXCEPTION_COUNT) && !tt_insn_counted) {
        tt_now.pos++;
        n_begun += !tt_no_insn_begun;
    }
    tt_insn_counted = tt_no_insn_begun = false;
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
    return tt_ops->boundary(cpu);
}

static void G_NORETURN leave(CPUState *cpu)
{
    cpu->exception_index = EXCP_INTERRUPT;
    cpu_loop_exit(cpu);
}

/* ---- interrupts raised by devices ---- */

static void handle_interrupt(CPUState *cpu, int mask)
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

/* A fault of it is no instruction's. */
static bool deliver(CPUState *cpu, uint64_t type, uint64_t vector)
{
    bool done;

    tt_no_insn_begun = true;
    done = tt_target_deliver(cpu, type, vector);
    tt_no_insn_begun = false;
    return done;
}

/* ---- state ---- */

static void flush(CPUState *cpu)
{
    tlb_flush(cpu);
}

static void change_mode(CPUState *cpu)
{
    assert(!cpu->running);
    tt_insn_counted = false;    /* set in any mode, cleared in ours */
    if (cpu == first_cpu) {
        tb_flush(cpu);
        tt_fetch_mode_changed();
    }
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

/* SSE flags that wait are no change: who stops the VM, or asks for a digest, has them
 * added to MXCSR. */
static uint64_t fingerprint(CPUState *cpu)
{
    tt_target_settle(cpu);
    return tt_target_fingerprint(cpu);
}

static const TtVcpuBackend backend = {
    .name = "tcg",
    .arm = arm, .passed = passed, .count = count, .disarm = disarm, .run = run,
    .limit = limit, .prepare = prepare,
    .save = tt_target_save, .load = tt_target_load, .digest = tt_target_digest,
    .fingerprint = fingerprint, .flush = flush,
    .turn_to = tt_fetch_turn_to, .deliver = deliver,
    .mode_changed = change_mode, .leave = leave, .begun = begun, .excepted = excepted,
    .fetch_again = tt_fetch_again, .report_branches = tt_tcg_report_branches,
    .save_tlbs = tt_tlbs_save, .load_tlbs = tt_tlbs_load, .free_tlbs = tt_tlbs_free,
    .bytes_of_tlbs = tt_tlbs_bytes, .undo = &tt_tcg_undo,
};

/* QEMU's own saved states (migration, savevm) take the registers as they are. */
static void vm_changed(void *opaque, bool running, RunState state)
{
    CPUState *cpu;

    CPU_FOREACH(cpu) {
        if (!running) {
            tt_target_settle(cpu);
        }
    }
}

void tt_tcg_init(void)
{
    tt_backend = &backend;
    qemu_add_vm_change_state_handler(vm_changed, NULL);
}

/* ---- the thread of a replay ---- */

static void *vcpu_thread(void *opaque)
{
    CPUState *cpu = opaque;
    Notifier rcu = { .notify = tt_vcpu_force_rcu };

    rcu_register_thread();
    rcu_add_force_rcu_notifier(&rcu);
    tcg_register_thread();
    bql_lock();
    qemu_thread_get_self(cpu->thread);
    cpu->thread_id = qemu_get_thread_id();
    cpu->neg.can_do_io = true;
    cpu_thread_signal_created(cpu);
    qemu_guest_random_seed_thread_part2(cpu->random_seed);

    while (cpu->stopped && !tt_is_moving()) {
        qemu_cond_wait_bql(cpu->halt_cond);
        for (unsigned i = 0; i < tt_vcpus_count(); i++) {
            current_cpu = tt_vcpus_at(i);
            qemu_wait_io_event_common(current_cpu);
        }
    }
    tt_token_adopt();
    for (;;) {
        tt_vcpu_round();
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

static void start(CPUState *cpu)
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

static void kick(CPUState *cpu)
{
    cpu_exit(cpu);
    cpu_exit(tt_vcpu() ?: cpu);         /* it may run in the same thread */
}

static bool is_idle(CPUState *cpu)
{
    return !tt_replaying();             /* a replay knows no idle time */
}

static void (*init_qemu_ops)(AccelOpsClass *ops);

static void init_ops(AccelOpsClass *ops)
{
    init_qemu_ops(ops);
    ops->create_vcpu_thread = start;
    ops->kick_vcpu_thread = kick;
    ops->handle_interrupt = handle_interrupt;
    ops->cpu_thread_is_idle = is_idle;
}

void tt_tcg_take_threads(void)
{
    AccelOpsClass *ops = ACCEL_OPS_CLASS(module_object_class_by_name(ACCEL_OPS_NAME("tcg")));

    init_qemu_ops = ops->ops_init;
    ops->ops_init = init_ops;
}
