/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values that KVM refuses to put into CR0, CR4 and CR8, where TCG takes them: in a replay of
 * a run that was recorded under KVM (AMD's manual, volume 2, 3.1; Intel's, volume 3, 2.5).
 */
#include "qemu/osdep.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "cpu.h"

static bool begins_paging(CPUX86State *env, uint64_t val)
{
    return val & CR0_PG_MASK && !(env->cr[0] & CR0_PG_MASK);
}

static bool cr0_faults(CPUX86State *env, uint64_t val)
{
    bool has_paging = val & CR0_PG_MASK;

    if (val >> 32 || (has_paging && !(val & CR0_PE_MASK)) ||
        (val & CR0_NW_MASK && !(val & CR0_CD_MASK))) {
        return true;
    }
    if (begins_paging(env, val) && env->efer & MSR_EFER_LME) {
        return !(env->cr[4] & CR4_PAE_MASK) || env->segs[R_CS].flags & DESC_L_MASK;
    }
    return !has_paging && (env->hflags & HF_CS64_MASK || env->cr[4] & CR4_PCIDE_MASK);
}

static bool cr4_faults(CPUX86State *env, uint64_t val)
{
    uint64_t refused = CR4_SMXE_MASK;

    refused |= env->features[FEAT_1_ECX] & CPUID_EXT_VMX ? 0 : CR4_VMXE_MASK;
    refused |= env->features[FEAT_1_ECX] & CPUID_EXT_PCID ? 0 : CR4_PCIDE_MASK;
    return val & refused || (env->efer & MSR_EFER_LMA && !(val & CR4_PAE_MASK));
}

bool tt_cr_faults_slow(CPUState *cpu, int reg, uint64_t val)
{
    CPUX86State *env = cpu_env(cpu);

    return (reg == 0 && cr0_faults(env, val)) || (reg == 4 && cr4_faults(env, val)) ||
        (reg == 8 && val >> 4);
}
