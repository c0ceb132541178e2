/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An instruction that KVM cannot emulate (one of x87 or SSE on device memory, mostly) is
 * executed once by TCG, on the vCPU's state as KVM has it, and KVM goes on after it.
 *
 *   O1  TCG is there from the first such instruction on. QEMU takes it for switched off
 *       but while that instruction runs: no device has to tell it of changed code. So
 *       its TLB is flushed, and its block translated, each time.
 *   O2  What the instruction asks of devices is an exit each, as if KVM had asked. A
 *       replay, which is under TCG, asks for the same. Nothing else may be an input.
 *   O3  An exception that it raises is KVM's to deliver.
 *   O4  SYSENTER in 64-bit code is no such instruction: AMD's CPUs do not know it, and a
 *       KVM that could execute it for them gives up. The guest gets their #UD.
 *
 * Only registers and the state of x87 and SSE go back into KVM: an instruction that the
 * CPU could begin, and KVM could not emulate, has no other result.
 *
 * What has no place in this is refused with a sentence: see unsuitable().
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpu-backend.h"
#include "log/tt-log.h"
#include "session/tt-ops.h"
#include "tt-kvm-parts-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "cpu.h"
#include "accel/accel-cpu-target.h"
#include "accel/tcg/internal-common.h"
#include "accel/tcg/cpu-ops.h"
#include "exec/cpu-common.h"
#include "exec/cputlb.h"
#include "exec/tb-flush.h"
#include "exec/translation-block.h"
#include "fpu/softfloat-helpers.h"
#include "kvm/kvm_i386.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "qemu/plugin.h"
#include "qemu/rcu.h"
#include "qemu/units.h"
#include "system/kvm.h"
#include "system/tcg.h"
#include "tcg/startup.h"
#include <linux/kvm.h>

/* Of blocks with one instruction, as many as there are before they are flushed. */
#define BUFFER_BYTES (4 * MiB)
#define BLOCKS_MAX 256
QEMU_BUILD_BUG_ON(BLOCKS_MAX - 1 > CF_CLUSTER_MASK >> CF_CLUSTER_SHIFT);

/* ---- TCG in a process that has KVM ---- */

/* What QEMU's start does with -accel tcg, for one vCPU, in its thread. */
static void start_tcg(CPUState *cpu)
{
    static bool is_started;
    AccelCPUClass *x86 = ACCEL_CPU_CLASS(object_class_by_name(ACCEL_CPU_NAME("tcg")));
    CPUClass *cc = cpu->cc;

    if (is_started) {
        return;
    }
    is_started = true;
    x86->cpu_class_init(cc);
    cc->init_accel_cpu(x86, cc);
    page_init();
    tb_htable_init();
    tcg_init(BUFFER_BYTES, 0, 1);
    tcg_prologue_init();
    tcg_exec_realizefn(cpu, &error_abort);
#ifdef CONFIG_PLUGIN
    cpu->plugin_state = qemu_plugin_create_vcpu_state();
#endif
    tcg_register_thread();
    cpu->neg.can_do_io = true;
}

/* O1. Blocks are told apart by bits that no other vCPU uses here. */
static void forget_code(CPUState *cpu)
{
    static uint32_t n;

    n = (n + 1) % BLOCKS_MAX;
    if (!n) {
        tb_flush(cpu);
    }
    cpu->tcg_cflags = CF_NOIRQ | n << CF_CLUSTER_SHIFT;
    tlb_flush(cpu);
}

/* ---- O2: what it asks of devices ---- */

static struct {
    const TtOps *recorder;
    uint64_t *exits;
    bool has_other_input;
} once;

/* As KVM would have it: TCG's helper wants what it loads in another order. */
static uint64_t in_order_of_memory(const TtEvent *ev)
{
    return ev->size == 2 ? bswap16(ev->val) : ev->size == 4 ? bswap32(ev->val) :
        ev->size == 8 ? bswap64(ev->val) : ev->val;
}

static void answer(TtEvent *ev)
{
    TtEvent asked = *ev;

    if (ev->kind == TT_EV_MMIO_LD) {
        asked.val = in_order_of_memory(ev);
    } else if (ev->kind != TT_EV_MMIO_ST) {
        once.has_other_input = true;
        return;
    }
    once.recorder->answer(&asked);
    ++*once.exits;
}

/* It was executed. If not, TCG wants to look for its block once more. */
static bool has_moved(CPUState *cpu, uint64_t from)
{
    return cpu->exception_index >= 0 || cpu_env(cpu)->eip != from;
}

/* False: it was not. */
static bool execute(CPUState *cpu)
{
    CPUX86State *env = cpu_env(cpu);
    uint64_t from = env->eip;
    TtOps ops = *tt_ops;

    RCU_READ_LOCK_GUARD();
    ops.answer = answer;
    once.recorder = tt_ops;
    tt_ops = &ops;
    cpu_exec_end(cpu);                  /* as the next function wants it */
    cpu->exception_index = -1;
    for (int i = 0; i < 2 && !has_moved(cpu, from); i++) {
        cpu->cflags_next_tb = -1;
        env->cc_src = 0;                /* a fault of the fetch leaves eflags whole */
        env->cc_op = CC_OP_EFLAGS;
        env->df = 1;
        cpu_exec_step_atomic(cpu);
        cpu->cc->tcg_ops->cpu_exec_exit(cpu);
    }
    cpu_exec_start(cpu);
    tt_ops = once.recorder;
    return has_moved(cpu, from);
}

/* ---- the vCPU before and after ---- */

/* Why it cannot be executed so, or NULL. */
static const char *unsuitable(CPUX86State *env)
{
    return env->hflags & HF_SMM_MASK ? "in system management mode" :
        env->dr[7] & (DR7_GLOBAL_BP_MASK | DR7_LOCAL_BP_MASK) ?
        "while its debug registers are in use" :
        env->exception_nr >= 0 || env->interrupt_injected >= 0 || env->nmi_injected ?
        "while an interrupt or exception is delivered" : NULL;
}

static void to_tcg(CPUX86State *env)
{
    env->a20_mask = -1;                 /* KVM knows no other */
    cpu_init_fp_statuses(env);
    update_fp_status(env);
    update_mxcsr_status(env);
}

static bool has_error_code(int vector)
{
    return vector == EXCP08_DBLE || vector == EXCP11_ALGN ||
        (vector >= EXCP0A_TSS && vector <= EXCP0E_PAGE);
}

/* What of the vCPU no such instruction changes, and does not go back into KVM. */
#define SYSTEM_FROM offsetof(CPUX86State, segs)
#define SYSTEM_BYTES (offsetof(CPUX86State, cr) + sizeof_field(CPUX86State, cr) - \
                      SYSTEM_FROM)

static bool is_system_same(const CPUX86State *env, const uint8_t before[SYSTEM_BYTES])
{
    uint8_t now[SYSTEM_BYTES];

    memcpy(now, (const uint8_t *)env + SYSTEM_FROM, sizeof(now));
    memcpy(now + offsetof(CPUX86State, cr[2]) - SYSTEM_FROM,
           before + offsetof(CPUX86State, cr[2]) - SYSTEM_FROM, sizeof(env->cr[2]));
    return !memcmp(now, before, sizeof(now));
}

/* O3. What it raised, or NOTHING; NOT_SO: it is none that the CPU would raise. */
enum { NOTHING = -1, NOT_SO = -2 };

static int take_exception(CPUState *cpu)
{
    CPUX86State *env = cpu_env(cpu);
    int vector = cpu->exception_index;

    cpu->exception_index = -1;
    env->old_exception = -1;
    tt_insn_counted = false;
    if (vector < 0) {
        return NOTHING;
    }
    /* #UD: TCG does not know what the CPU had begun to execute. */
    return vector == EXCP06_ILLOP || vector > EXCP12_MCHK || env->exception_is_int ?
        NOT_SO : vector;
}

/* In TCG's form, and back in KVM's. */
static int execute_there(CPUState *cpu)
{
    CPUX86State *env = cpu_env(cpu);
    int32_t a20_mask = env->a20_mask;
    uint32_t hflags = tt_kvm_to_tcg(cpu);
    uint8_t system[SYSTEM_BYTES];
    bool is_done;
    int raised;

    memcpy(system, (uint8_t *)env + SYSTEM_FROM, sizeof(system));
    start_tcg(cpu);
    cpu->vcpu_dirty = tcg_allowed = true;       /* QEMU has the state, not the kernel */
    to_tcg(env);
    forget_code(cpu);
    is_done = execute(cpu);
    update_mxcsr_from_sse_status(env);
    set_float_exception_flags(0, &env->sse_status);     /* KVM's MXCSR is all there is */
    cpu->vcpu_dirty = tcg_allowed = false;
    raised = take_exception(cpu);
    env->a20_mask = a20_mask;
    env->xstate_bv |= XSTATE_FP_MASK | XSTATE_SSE_MASK;    /* not what they begin with */
    tt_kvm_from_tcg(cpu, hflags);
    return is_done && !once.has_other_input && is_system_same(env, system) ? raised :
        NOT_SO;
}

/* ---- back into the kernel ---- */

/* Its shadow of STI or MOV SS has ended, whatever it was. */
static bool put_events(CPUState *cpu, int raised)
{
    CPUX86State *env = cpu_env(cpu);
    struct kvm_vcpu_events e = { 0 };

    if (kvm_vcpu_ioctl(cpu, KVM_GET_VCPU_EVENTS, &e)) {
        return false;
    }
    e.flags = KVM_VCPUEVENT_VALID_SHADOW | KVM_VCPUEVENT_VALID_PAYLOAD;
    e.interrupt.shadow = 0;
    if (raised != NOTHING) {
        e.exception.nr = raised;
        e.exception.pending = 1;
        e.exception.has_error_code = has_error_code(raised);
        e.exception.error_code = env->error_code;
        e.exception_has_payload = raised == EXCP01_DB || raised == EXCP0E_PAGE;
        e.exception_payload = raised == EXCP01_DB ? DR6_BS : env->cr[2];
    }
    return !kvm_vcpu_ioctl(cpu, KVM_SET_VCPU_EVENTS, &e);
}

static bool put(CPUState *cpu, int raised)
{
    CPUX86State *env = cpu_env(cpu);
    const target_ulong *r = env->regs;
    struct kvm_regs regs = {
        .rax = r[R_EAX], .rbx = r[R_EBX], .rcx = r[R_ECX], .rdx = r[R_EDX],
        .rsi = r[R_ESI], .rdi = r[R_EDI], .rsp = r[R_ESP], .rbp = r[R_EBP],
        .r8 = r[8], .r9 = r[9], .r10 = r[10], .r11 = r[11],
        .r12 = r[12], .r13 = r[13], .r14 = r[14], .r15 = r[15],
        .rip = env->eip, .rflags = env->eflags,
    };

    x86_cpu_xsave_all_areas(X86_CPU(cpu), env->xsave_buf, env->xsave_buf_len);
    return !kvm_vcpu_ioctl(cpu, KVM_SET_REGS, &regs) &&
        !kvm_vcpu_ioctl(cpu, KVM_SET_XSAVE, env->xsave_buf) && put_events(cpu, raised);
}

static bool is_prefix(uint8_t byte)
{
    switch (byte) {
    case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64 ... 0x67: case 0xf2: case 0xf3:
    case 0x40 ... 0x4f:
        return true;
    default:
        return false;
    }
}

/* O4. The bytes are those that KVM has fetched: Linux 5.15 gives them. */
static bool is_sysenter(CPUState *cpu)
{
    const struct kvm_run *run = cpu->kvm_run;
    const uint8_t *code = run->emulation_failure.insn_bytes;
    unsigned n = 0, i = 0;

    if (run->emulation_failure.ndata >= 1 &&
        run->emulation_failure.flags & KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES) {
        n = MIN(run->emulation_failure.insn_size, sizeof(run->emulation_failure.insn_bytes));
    }
    while (i < n && is_prefix(code[i])) {
        i++;
    }
    return i + 2 <= n && code[i] == 0x0f && code[i + 1] == 0x34 &&
        cpu_env(cpu)->hflags & HF_CS64_MASK && tt_has_svm(cpu);
}

static const char *try(CPUState *cpu)
{
    CPUX86State *env = cpu_env(cpu);
    const char *why = is_sysenter(cpu) ? NULL : unsuitable(env);
    int raised;

    if (why || !kvm_has_exception_payload()) {
        return why ?: "and takes no exceptions from QEMU";
    }
    if (is_sysenter(cpu)) {
        return put_events(cpu, EXCP06_ILLOP) ? NULL : "and takes no #UD";
    }
    raised = execute_there(cpu);
    return raised == NOT_SO ? "and what TCG makes of it does not fit into KVM" :
        put(cpu, raised) ? NULL : "and does not take its result";
}

bool tt_kvm_once(CPUState *cpu, uint64_t *exits)
{
    Error *err = NULL;
    const char *why;

    once.exits = exits;
    once.has_other_input = false;
    if (kvm_arch_get_registers(cpu, &err)) {
        error_reportf_err(err, "tt: ");
        return false;
    }
    tt_kvm_tsc_forget();
    why = try(cpu);
    if (why) {
        error_report("tt: KVM on this host cannot execute an instruction of the guest, "
                     "%s: record with -accel tcg", why);
    }
    return !why;
}
