/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of a vCPU of KVM as bytes, in the form in which TCG keeps it. What QEMU does
 * not ask KVM for is the shadow of STI and MOV SS, in which no interrupt is taken.
 */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-target.h"
#include "accel-tt/x86/tt-x86-move.h"
#include "tt-kvm-parts-int.h"
#include "qapi/error.h"
#include "cpu.h"
#include "hw/core/cpu.h"
#include "system/kvm.h"

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
    env->hflags = tt_x86_hidden_flags(env, tt_kvm_has_shadow(cpu));
    env->tr.flags = tt_x86_task_flags(env);
    tt_x86_turn_x87(env, env->fpstt);
    state = tt_target_save(cpu);
    tt_x86_turn_x87(env, -env->fpstt);
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

    env->hflags = tt_x86_hidden_flags(env, tt_kvm_has_shadow(cpu));
    tt_x86_turn_x87(env, env->fpstt);
    return hflags;
}

void tt_kvm_from_tcg(CPUState *cpu, uint32_t hflags)
{
    CPUX86State *env = cpu_env(cpu);

    tt_x86_turn_x87(env, -env->fpstt);
    env->hflags = hflags;
}
