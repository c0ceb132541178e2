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
#include "system/cpu-timers.h"

bool tt_msrs_are_inputs;

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

bool tt_msr_is_input_slow(uint32_t index)
{
    return !tt_msr_is_state(index);
}

/* No filter covers the APIC's in x2APIC mode. Without that mode, which tt-v1 has not, KVM
 * raises #GP by itself. */
bool tt_msr_faults(uint32_t index)
{
    return tt_msrs_are_inputs && index >= MSR_APIC_START && index <= MSR_APIC_END;
}

int tt_msr_device_read(CPUState *cpu, uint32_t index, uint64_t *val)
{
    switch (index) {
    case MSR_IA32_APICBASE:
        *val = cpu_get_apic_base(X86_CPU(cpu)->apic_state);
        return 0;
    case MSR_IA32_UCODE_REV:
        *val = X86_CPU(cpu)->ucode_rev;
        return 0;
    case MSR_IA32_TSC:
        *val = cpus_get_elapsed_ticks();
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
