/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMSR and WRMSR in a replay of a run that was recorded under KVM; and, where TCG is to be
 * like a real CPU, what that takes and keeps of addresses.
 */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-msr.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "tcg/helper-tcg.h"

bool tt_msr_wr_as_kvm_slow(CPUState *cpu, uint64_t val, uintptr_t ra)
{
    uint32_t index = cpu_env(cpu)->regs[R_ECX];
    bool is_state = tt_msr_is_state(index) || !tt_replays_kvm;
    int status = 0;

    if (!tt_replays_kvm ? !tt_msr_takes_address(cpu, index, val) :
        tt_msr_is_missing(cpu, index) || (is_state && !tt_msr_takes(cpu, index, val))) {
        status = -1;
    } else if (!is_state) {
        tt_msr_wr(index, &status);
    }
    if (status < 0) {
        raise_exception_err_ra(cpu_env(cpu), EXCP0D_GPF, 0, ra);
    }
    return !is_state;
}

/* AMD's CPUs have 32 bits of these. TCG's state has all: so had that of older runs. */
static bool read_narrow(CPUState *cpu, uint32_t index, uint64_t *val)
{
    CPUX86State *env = cpu_env(cpu);

    if ((index != MSR_IA32_SYSENTER_ESP && index != MSR_IA32_SYSENTER_EIP) ||
        !tt_has_svm(cpu)) {
        return false;
    }
    *val = (uint32_t)(index == MSR_IA32_SYSENTER_ESP ? env->sysenter_esp :
                      env->sysenter_eip);
    return true;
}

bool tt_msr_rd_as_kvm_slow(CPUState *cpu, uintptr_t ra)
{
    CPUX86State *env = cpu_env(cpu);
    uint32_t index = env->regs[R_ECX];
    bool is_state = tt_msr_is_state(index) || !tt_replays_kvm;
    int status = 0;
    uint64_t val = 0;

    if (read_narrow(cpu, index, &val)) {
        is_state = false;
    } else if (tt_replays_kvm && tt_msr_is_missing(cpu, index)) {
        status = -1;
    } else if (!is_state) {
        tt_msr_rd(index, &val, &status);
    }
    if (status < 0) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
    }
    if (!is_state) {
        env->regs[R_EAX] = (uint32_t)val;
        env->regs[R_EDX] = val >> 32;
    }
    return !is_state;
}
