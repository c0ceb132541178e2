/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of a vCPU of KVM as bytes, in the form in which TCG keeps it. QEMU fills the
 * same struct under either, with some differences: of the x87 registers KVM's is in the
 * order of the stack, TCG's in that of the registers; it does not ask KVM for the
 * shadow of STI and MOV SS, in which no interrupt is taken; and only TCG keeps bits of
 * CR4 among its hidden flags.
 */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-target.h"
#include "tt-kvm-parts-int.h"
#include "qapi/error.h"
#include "cpu.h"
#include "hw/core/cpu.h"
#include "system/kvm.h"

/* ST(i) is in register (@by + i) % 8. */
static void turn_x87(CPUX86State *env, unsigned by)
{
    FPReg st[8];

    QEMU_BUILD_BUG_ON(sizeof(st) != sizeof(env->fpregs));
    memcpy(st, env->fpregs, sizeof(st));
    for (unsigned i = 0; i < 8; i++) {
        env->fpregs[(by + i) & 7] = st[i];
    }
}

/* hflags as TCG has them. */
static uint32_t hidden_flags(CPUState *cpu)
{
    CPUX86State *env = cpu_env(cpu);
    uint32_t mask = HF_INHIBIT_IRQ_MASK | HF_SMAP_MASK | HF_UMIP_MASK;

    return (env->hflags & ~mask) |
        (tt_kvm_has_shadow(cpu) ? HF_INHIBIT_IRQ_MASK : 0) |
        (env->cr[4] & CR4_SMAP_MASK ? HF_SMAP_MASK : 0) |
        (env->cr[4] & CR4_UMIP_MASK ? HF_UMIP_MASK : 0);
}

/* TCG keeps the descriptor as LTR found it, not busy, and refuses another when an
 * interrupt changes to the kernel's stack. */
static uint32_t task_flags(const CPUX86State *env)
{
    return env->tr.selector & 0xfffc ? env->tr.flags & ~DESC_TSS_BUSY_MASK :
        env->tr.flags;
}

GByteArray *tt_kvm_save(CPUState *cpu)
{
    CPUX86State *env = cpu_env(cpu);
    bool was_dirty = cpu->vcpu_dirty;
    GByteArray *state;
    uint32_t hflags, tr_flags;

    if (!was_dirty) {
        kvm_arch_get_registers(cpu, &error_abort);
    }
    hflags = env->hflags;
    tr_flags = env->tr.flags;
    env->hflags = hidden_flags(cpu);
    env->tr.flags = task_flags(env);
    turn_x87(env, env->fpstt);
    state = tt_target_save(cpu);
    turn_x87(env, -env->fpstt);
    env->hflags = hflags;
    env->tr.flags = tr_flags;
    cpu->vcpu_dirty = was_dirty;
    tt_kvm_tsc_forget();
    return state;
}

bool tt_kvm_load(CPUState *cpu, const uint8_t *data, size_t len, Error **errp)
{
    error_setg(errp, "under KVM a vCPU cannot go back to an earlier state: replay "
               "the run");
    return false;
}

uint64_t tt_kvm_digest(CPUState *cpu)
{
    return 0;                   /* positions are exits: nobody compares them */
}

/* QEMU has the state only while somebody reads or changes it. */
uint64_t tt_kvm_fingerprint(CPUState *cpu)
{
    return cpu->vcpu_dirty ? tt_target_fingerprint(cpu) : cpu->halted;
}

/* ---- the registers that QEMU has, for one instruction of TCG's ---- */

uint32_t tt_kvm_to_tcg(CPUState *cpu)
{
    CPUX86State *env = cpu_env(cpu);
    uint32_t hflags = env->hflags;

    env->hflags = hidden_flags(cpu);
    turn_x87(env, env->fpstt);
    return hflags;
}

void tt_kvm_from_tcg(CPUState *cpu, uint32_t hflags)
{
    CPUX86State *env = cpu_env(cpu);

    turn_x87(env, -env->fpstt);
    env->hflags = hflags;
}
