/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which MSRs are state and which are inputs, when a run is recorded under KVM. Those
 * that nobody knows read as zero and take any value, as under TCG.
 */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-msr.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "hw/i386/apic.h"

static const TtMsrRange state[] = {
    { 0xfe, 0xfe },                     /* MTRRcap */
    { 0x174, 0x176 },                   /* SYSENTER */
    { 0x200, 0x20f }, { 0x250, 0x250 }, { 0x258, 0x259 }, { 0x268, 0x26f },
    { 0x277, 0x277 },                   /* PAT */
    { 0x2ff, 0x2ff },                   /* MTRRdefType */
    { 0xc0000080, 0xc0000084 },         /* EFER, STAR, LSTAR, CSTAR, FMASK */
    { 0xc0000100, 0xc0000103 },         /* bases of FS and GS, TSC_AUX */
};

const TtMsrRange *tt_msr_state(unsigned *n)
{
    *n = ARRAY_SIZE(state);
    return state;
}

bool tt_msr_is_state(uint32_t index)
{
    for (size_t i = 0; i < ARRAY_SIZE(state); i++) {
        if (index >= state[i].first && index <= state[i].last) {
            return true;
        }
    }
    return false;
}

/* ---- #GP without an exit ---- */

static bool is_memory_type(uint64_t type)
{
    return type <= 6 && 0x73 >> type & 1;
}

static bool are_memory_types(uint64_t types)
{
    for (unsigned i = 0; i < 8; i++) {
        if (!is_memory_type(types >> 8 * i & 0xff)) {
            return false;
        }
    }
    return true;
}

static bool is_pat(uint64_t val)
{
    for (unsigned i = 0; i < 8; i++) {
        unsigned type = val >> 8 * i & 0xff;

        if (type > 7 || type == 2 || type == 3) {
            return false;
        }
    }
    return true;
}

/* One of a pair; the odd one is the mask. */
static bool is_mtrr(CPUState *cpu, uint32_t index, uint64_t val)
{
    uint64_t reserved = ~0ull << X86_CPU(cpu)->phys_bits;

    return index & 1 ? !(val & (reserved | 0x7ff)) :
        !(val & (reserved | 0xf00)) && is_memory_type(val & 0xff);
}

static bool is_canonical(const CPUX86State *env, uint64_t address)
{
    unsigned more = env->features[FEAT_7_0_ECX] & CPUID_7_0_ECX_LA57 ? 7 : 16;

    return (uint64_t)((int64_t)(address << more) >> more) == address;
}

/* KVM leaves these to the CPU: which may be TCG, if the host is emulated. */
bool tt_msr_takes_address(CPUState *cpu, uint32_t index, uint64_t val)
{
    switch (index) {
    case MSR_IA32_SYSENTER_ESP: case MSR_IA32_SYSENTER_EIP:
        return is_canonical(cpu_env(cpu), val) || tt_has_svm(cpu) ||
            !tt_is_like_hardware();
    case MSR_LSTAR: case MSR_CSTAR:
    case MSR_FSBASE: case MSR_GSBASE: case MSR_KERNELGSBASE:
        return is_canonical(cpu_env(cpu), val) || !tt_is_like_hardware();
    default:
        return true;
    }
}

static bool is_efer(const CPUX86State *env, uint64_t val)
{
    uint32_t edx = env->features[FEAT_8000_0001_EDX];
    uint64_t allowed = MSR_EFER_SCE |
        (edx & CPUID_EXT2_LM ? MSR_EFER_LME | MSR_EFER_LMA : 0) |
        (edx & CPUID_EXT2_NX ? MSR_EFER_NXE : 0) |
        (edx & CPUID_EXT2_FFXSR ? MSR_EFER_FFXSR : 0);

    return !(val & ~allowed) &&
        (!(env->cr[0] & CR0_PG_MASK) || !((val ^ env->efer) & MSR_EFER_LME));
}

bool tt_msr_takes(CPUState *cpu, uint32_t index, uint64_t val)
{
    switch (index) {
    case MSR_MTRRcap:
        return false;
    case MSR_MTRRphysBase(0) ... MSR_MTRRphysMask(7):
        return is_mtrr(cpu, index, val);
    case MSR_MTRRfix64K_00000: case MSR_MTRRfix16K_80000: case MSR_MTRRfix16K_A0000:
    case MSR_MTRRfix4K_C0000 ... MSR_MTRRfix4K_F8000:
        return are_memory_types(val);
    case MSR_MTRRdefType:
        return !(val & ~0xcffull) && is_memory_type(val & 0xff);
    case MSR_PAT:
        return is_pat(val);
    case MSR_EFER:
        return is_efer(cpu_env(cpu), val);
    default:
        return tt_msr_takes_address(cpu, index, val);
    }
}

/* No filter covers the APIC's in x2APIC mode. Without that mode, which tt-v1 has not, KVM
 * raises #GP by itself. */
bool tt_msr_is_missing(CPUState *cpu, uint32_t index)
{
    return (index >= MSR_APIC_START && index <= MSR_APIC_END) ||
        (index == MSR_TSC_AUX && !(cpu_env(cpu)->features[FEAT_7_0_ECX] &
                                   CPUID_7_0_ECX_RDPID));
}

/* ---- what QEMU answers ---- */

int tt_msr_device_read(CPUState *cpu, uint32_t index, uint64_t *val)
{
    switch (index) {
    case MSR_IA32_APICBASE:
        *val = cpu_get_apic_base(X86_CPU(cpu)->apic_state);
        return 0;
    case MSR_IA32_UCODE_REV:
        *val = X86_CPU(cpu)->ucode_rev;
        return 0;
    default:
        *val = 0;
        return 0;
    }
}

int tt_msr_device_write(CPUState *cpu, uint32_t index, uint64_t val)
{
    if (index != MSR_IA32_APICBASE) {
        return 0;
    }
    return val & MSR_IA32_APICBASE_RESERVED ? -1 :
        cpu_set_apic_base(X86_CPU(cpu)->apic_state, val);
}
