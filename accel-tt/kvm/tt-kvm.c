/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vCPU backend for KVM (accel-tt/tt-vcpu-backend.h): records only; a replay runs
 * under TCG.
 *
 * KVM cannot say how many instructions have run. A position is an ordinal: exits to
 * QEMU and asynchronous events count one each. Nothing from outside may reach the
 * vCPU but at a place that a replay can find again:
 *
 *   K1  right after an exit, when its instruction is complete (complete()), and all of
 *       it if it is a string instruction with REP (tt_kvm_boundary());
 *   K2  where an interrupt window opened: the first boundary at which an interrupt
 *       can be taken (TT_EV_WINDOW);
 *   K3  where the vCPU was made to leave guest code, if its state says exactly
 *       where it is (TT_EV_LANDMARK), with a count of branches if the host has one.
 *
 * K3 is expensive, so a thread that wants the token waits for an exit first
 * (TT_KVM_HOLD_US). `exact` says that the vCPU stands at such a place. After an interrupt
 * was handed to the kernel it does not, until the next exit.
 */
#include "qemu/osdep.h"
#include "accel-tt/kvm/tt-kvm.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "accel-tt/tt-vcpu.h"
#include "accel-tt/tt-vcpus.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt-kvm-parts-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "cpu.h"
#include "hw/i386/apic.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "system/cpus.h"
#include "system/kvm.h"
#include "system/kvm_int.h"
#include "system/runstate.h"
#include <linux/kvm.h>

/* How long a thread waits for an exit before the vCPU is made to leave. A guest that
 * computes leaves once in this time at most; a timer of 1000 Hz is still served. */
#define TT_KVM_HOLD_US 1000

static struct {
    uint64_t exits;             /* since the last count */
    bool exact;
    bool is_complete;           /* the last exit's instruction */
    bool is_behind;             /* that instruction; else before one, where a window is */
    bool is_within;             /* a string instruction: no interrupt, and no window */
    bool is_stuck;              /* before an instruction that cannot be executed */
    bool is_first;              /* the recording begins: what is under way? */
} kv = { .exact = true, .is_complete = true, .is_first = true };

/* ---- positions: exits ---- */

static void arm(CPUState *cpu, uint64_t n)
{
}

static void nothing(CPUState *cpu)
{
}

static uint64_t passed(CPUState *cpu)
{
    return kv.exits;
}

static uint64_t count(CPUState *cpu)
{
    uint64_t n = kv.exits;

    kv.exits = 0;
    return n;
}

static uint64_t limit(void)
{
    return UINT64_MAX;
}

static void prepare(void)
{
}

/* ---- entering guest code ---- */

static bool is_wanted(CPUState *cpu)
{
    return qatomic_read(&cpu->exit_request) || tt_token_is_wanted() ||
        tt_vcpu_has_duties(cpu);
}

static bool put_state(CPUState *cpu)
{
    Error *err = NULL;

    if (!cpu->vcpu_dirty) {
        return true;
    }
    if (kvm_arch_put_registers(cpu, KVM_PUT_RUNTIME_STATE, &err)) {
        error_report("tt: KVM refuses to set the vCPU's state (%s): record with -accel "
                     "tcg", err ? error_get_pretty(err) : "no reason given");
        error_free(err);
        return false;
    }
    cpu->vcpu_dirty = false;
    return true;
}

/* The guest may have changed these without an exit. */
static void note_flags(CPUState *cpu)
{
    CPUX86State *env = cpu_env(cpu);

    env->eflags &= ~IF_MASK;
    env->eflags |= cpu->kvm_run->if_flag ? IF_MASK : 0;
    cpu_set_apic_tpr(env_archcpu(env)->apic_state, cpu->kvm_run->cr8);
}

/* KVM_RUN once. 0: there is an exit; -EINTR: it left without one; or an error. */
static int enter(CPUState *cpu, bool only_complete)
{
    struct kvm_run *run = cpu->kvm_run;
    int ret;

    if (!put_state(cpu)) {
        return -EIO;
    }
    run->cr8 = cpu_get_apic_tpr(X86_CPU(cpu)->apic_state);
    if (only_complete) {
        qatomic_set(&run->immediate_exit, 1);
    }
    smp_rmb();
    ret = kvm_vcpu_ioctl(cpu, KVM_RUN, 0);
    if (ret == -EAGAIN) {
        ret = -EINTR;
    }
    if (ret == -EINTR) {
        qatomic_set(&run->immediate_exit, 0);
        smp_wmb();
    }
    note_flags(cpu);
    return ret;
}

/* A replay finds the place by the exit's event. An exit without one (a write to ROM) is
 * no place. */
static int handle(CPUState *cpu, int ret)
{
    bool is_window = cpu->kvm_run->exit_reason == KVM_EXIT_IRQ_WINDOW_OPEN;
    uint64_t before = kv.exits;
    int why;

    kv.is_stuck = false;
    if (ret < 0) {
        kv.exact = false;
        error_report("tt: KVM_RUN failed: %s", strerror(-ret));
        return TT_KVM_FAILED;
    }
    kv.is_complete = false;
    kv.is_behind = !is_window;
    why = tt_kvm_exit(cpu, &kv.exits);
    kv.exact = is_window || kv.exits != before;
    if (why == TT_KVM_FAILED) {
        kv.is_stuck = !kv.exact;
        kv.exact = false;
    }
    return why;
}

/*
 * K1: the kernel finishes an instruction when it is entered the next time. An
 * instruction with several accesses leaves once more for each.
 */
static int complete(CPUState *cpu)
{
    int ret, why = TT_KVM_GO_ON;

    while (!kv.is_complete && why != TT_KVM_FAILED) {
        ret = enter(cpu, true);
        if (ret == -EINTR) {
            kv.is_complete = true;
        } else {
            why = handle(cpu, ret);
        }
    }
    return why;
}

/* ---- interrupts ---- */

/* The log already has it: what follows would not be what was recorded. */
static bool refused(int vector, int err)
{
    error_report("tt: KVM does not deliver interrupt %d: %s", vector, strerror(-err));
    return false;
}

static bool inject_nmi(CPUState *cpu)
{
    struct kvm_vcpu_events events = { 0 };
    int ret;

    if (kvm_vcpu_ioctl(cpu, KVM_GET_VCPU_EVENTS, &events) ||
        events.nmi.masked || events.nmi.pending || events.nmi.injected ||
        events.interrupt.shadow) {
        return true;            /* looked at again after the next exit */
    }
    cpu->interrupt_request &= ~CPU_INTERRUPT_NMI;
    tt_interrupt_accepted(cpu, CPU_INTERRUPT_NMI, EXCP02_NMI);
    kv.exact = false;
    ret = kvm_vcpu_ioctl(cpu, KVM_NMI);
    return !ret || refused(EXCP02_NMI, ret);
}

static bool inject_interrupt(CPUState *cpu)
{
    struct kvm_interrupt intr;
    int irq, ret;

    cpu->interrupt_request &= ~CPU_INTERRUPT_HARD;
    tt_interrupt_ack(true);
    irq = cpu_get_pic_interrupt(cpu_env(cpu));
    tt_interrupt_ack(false);
    if (irq < 0) {
        return true;
    }
    tt_interrupt_accepted(cpu, CPU_INTERRUPT_HARD, irq);
    intr.irq = irq;
    kv.exact = false;
    ret = kvm_vcpu_ioctl(cpu, KVM_INTERRUPT, &intr);
    return !ret || refused(irq, ret);
}

/* The flag of kvm_run is older, if QEMU has the registers. */
static bool takes_interrupts(CPUState *cpu)
{
    return cpu_env(cpu)->eflags & IF_MASK;
}

/* At an exact place. False: KVM does not take what was logged. */
static bool inject(CPUState *cpu)
{
    struct kvm_run *run = cpu->kvm_run;

    if (!put_state(cpu)) {              /* it would take back what is injected before it */
        return false;
    }
    if (cpu->interrupt_request & CPU_INTERRUPT_NMI && !inject_nmi(cpu)) {
        return false;
    }
    if (kv.exact && cpu->interrupt_request & CPU_INTERRUPT_HARD &&
        run->ready_for_interrupt_injection && takes_interrupts(cpu)) {
        return inject_interrupt(cpu);
    }
    return true;
}

/* INIT, SIPI and the like: the vCPU's state is another afterwards. True: it halts. */
static bool do_requests(CPUState *cpu)
{
    bool was_halted = cpu->halted;
    bool is_halted = kvm_arch_process_async_events(cpu);

    if (was_halted && !is_halted) {
        tt_record_unhalt(cpu);
    }
    return is_halted;
}

static bool has_request(CPUState *cpu)
{
    int mask = cpu->interrupt_request;

    if (mask & CPU_INTERRUPT_HARD && !takes_interrupts(cpu)) {
        mask &= ~CPU_INTERRUPT_HARD;    /* a window is asked for */
    }
    return mask;
}

/* ---- a turn ---- */

static int step(CPUState *cpu)
{
    struct kvm_run *run = cpu->kvm_run;
    int ret;

    if (kv.is_first) {
        kv.is_first = false;
        kv.exact = !tt_kvm_take_over(cpu);
    }
    if (kv.exact) {
        tt_kvm_branches_mark();
    }
    if (kv.exact && has_request(cpu)) {
        ret = complete(cpu);
        if (ret != TT_KVM_GO_ON) {
            return ret;
        }
        if (cpu->interrupt_request & (CPU_INTERRUPT_INIT | CPU_INTERRUPT_SIPI)) {
            do_requests(cpu);
            return EXCP_INTERRUPT;      /* the new state is logged outside */
        }
        switch (tt_kvm_boundary(cpu, kv.is_behind)) {
        case TT_KVM_BETWEEN:
            kv.is_within = false;
            do_requests(cpu);
            if (!inject(cpu)) {
                return TT_KVM_FAILED;
            }
            break;
        case TT_KVM_WITHIN:
            kv.is_within = true;
            break;
        case TT_KVM_UNKNOWN:
            error_report("tt: KVM does not give the vCPU's registers: record with -accel "
                         "tcg");
            kv.exact = false;
            return TT_KVM_FAILED;
        }
    }
    run->request_interrupt_window =
        !kv.is_within && cpu->interrupt_request & CPU_INTERRUPT_HARD;
    if (!tt_kvm_tsc_enter(cpu, kv.exact && kv.is_complete, kv.is_behind, kv.is_within)) {
        return TT_KVM_FAILED;
    }
    ret = enter(cpu, false);
    if (ret != -EINTR) {
        return handle(cpu, ret);
    }
    kv.exact = false;
    kv.is_complete = true;
    return TT_KVM_GO_ON;
}

/* K3. False: it is no place. */
static bool place(CPUState *cpu)
{
    TtLandmark here;

    if (!tt_kvm_place(cpu, &here)) {
        return false;
    }
    tt_ops->placed(cpu, &here);
    kv.exact = kv.is_complete = true;
    kv.is_behind = kv.is_within = false;
    return true;
}

/* The vCPU is to leave guest code for good. True: it stands at an exact place. */
static bool settle(CPUState *cpu, int *why)
{
    *why = complete(cpu);
    if (*why != TT_KVM_GO_ON) {
        return true;
    }
    if (kv.exact) {
        kv.is_within = tt_kvm_boundary(cpu, kv.is_behind) == TT_KVM_WITHIN;
        return !kv.is_within;
    }
    return place(cpu);
}

/* The recording ends where the VM does, if that is a place. If not, it ends for good: what
 * comes after a reset would be logged where the vCPU never was. */
static void place_stuck(CPUState *cpu)
{
    if (kv.is_stuck) {
        place(cpu);
    }
    if (!kv.exact) {
        tt_ops->lost();
    }
}

static bool place_here(CPUState *cpu)
{
    if (!kv.exact || !kv.is_complete || cpu->halted || cpu->vcpu_dirty) {
        return false;
    }
    tt_kvm_branches_mark();
    return place(cpu);
}

static void renew(CPUState *cpu)
{
    tt_kvm_log_tpr(cpu);
    tt_kvm_tsc_log();
}

static int turns(CPUState *cpu)
{
    int why = TT_KVM_GO_ON;

    if (cpu->halted) {
        bool is_reset = cpu->interrupt_request & (CPU_INTERRUPT_INIT | CPU_INTERRUPT_SIPI);

        if (do_requests(cpu) || is_reset) {
            return cpu->halted ? EXCP_HLT : EXCP_INTERRUPT;     /* as in step() */
        }
    }
    for (;;) {
        why = step(cpu);
        if (why == TT_KVM_FAILED) {
            return why;
        }
        if (why != TT_KVM_GO_ON || is_wanted(cpu) || kv.is_within) {
            int more = TT_KVM_GO_ON;

            if (settle(cpu, &more)) {
                return more != TT_KVM_GO_ON ? more :
                    why != TT_KVM_GO_ON ? why : EXCP_INTERRUPT;
            }
        }
    }
}

static int run(CPUState *cpu, const TtRunMode *how)
{
    int why;

    cpu_exec_start(cpu);
    why = turns(cpu);
    if (why == TT_KVM_FAILED) {
        place_stuck(cpu);
    }
    cpu_exec_end(cpu);
    if (why == TT_KVM_FAILED) {
        cpu_dump_state(cpu, stderr, CPU_DUMP_CODE);
        vm_stop(RUN_STATE_INTERNAL_ERROR);
        why = EXCP_INTERRUPT;
    }
    return why;
}

/* ---- the rest of a backend ---- */

static bool deliver(CPUState *cpu, uint64_t intr_class, uint64_t vector)
{
    g_assert_not_reached();     /* a replay runs under TCG */
}

/* TCG executes what KVM cannot (tt-kvm-once.c). */
static void (*tcg_mode_changed)(void);

/* QEMU's own loop stops a vCPU when its instruction is complete. */
static void mode_changed(CPUState *cpu)
{
    tcg_mode_changed();
    kv = (typeof(kv)) { .exact = true, .is_complete = true, .is_first = true };
    tt_kvm_tsc_end(cpu);
    tt_kvm_branches_end();
    tt_kvm_leaves_to_emulate(false);
}

static void begin(CPUState *cpu)
{
    tt_kvm_log_cpuid(cpu);
    tt_kvm_log_tpr(cpu);
    tt_kvm_tsc_begin(cpu);
    tt_kvm_branches_begin(cpu);
    tt_kvm_leaves_to_emulate(true);
    g_free(tt_session.manifest.positions);
    tt_session.manifest.positions = g_strdup(tt_kvm_positions());
    info_report("tt: KVM: positions are %s", tt_kvm_positions());
}

static void kick(CPUState *cpu)
{
    pthread_kill(cpu->thread->thread, SIG_IPI);
}

static const TtVcpuBackend backend = {
    .name = "kvm", .counts_exits = true, .logs_writes_in_host = true, .begin = begin,
    .arm = arm, .passed = passed, .count = count, .disarm = nothing, .run = run,
    .limit = limit, .prepare = prepare,
    .save = tt_kvm_save, .load = tt_kvm_load, .digest = tt_kvm_digest,
    .fingerprint = tt_kvm_fingerprint,
    .flush = nothing, .turn_to = nothing, .deliver = deliver,
    .mode_changed = mode_changed, .can_begin = tt_kvm_can_begin,
    .refusal = tt_kvm_refusal, .place = place_here, .renew = renew,
    .hold_us = TT_KVM_HOLD_US, .kick = kick,
};

void tt_kvm_init(void (*mode_changed_of_tcg)(void))
{
    tcg_mode_changed = mode_changed_of_tcg;
    tt_backend = &backend;
    tt_kvm_tsc_init();
}
