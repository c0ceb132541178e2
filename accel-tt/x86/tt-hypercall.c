/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hypercalls of a run that was recorded under KVM. KVM answers them by itself, also where
 * CPUID names no hypervisor: what is refused needs no knowledge of the host. That of the
 * other vendor faults: KVM is told not to write its own into the guest's code
 * (tt-kvm-setup.c).
 */
#include "qemu/osdep.h"
#include "tt/hooks.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "tcg/helper-tcg.h"

#define POLL_IRQ        1       /* KVM_HC_VAPIC_POLL_IRQ: it always succeeds */
#define CLOCK_PAIRING   9       /* KVM_HC_CLOCK_PAIRING of a clock that it does not know */
#define NO_SUCH_CALL    (-1000) /* -KVM_ENOSYS */
#define NO_SUCH_CLOCK   (-95)   /* -KVM_EOPNOTSUPP */
#define NOT_ALLOWED     (-1)    /* -KVM_EPERM */

static int64_t answer(uint64_t nr, bool in_kernel)
{
    if (!in_kernel) {
        return NOT_ALLOWED;
    }
    return nr == POLL_IRQ ? 0 : nr == CLOCK_PAIRING ? NO_SUCH_CLOCK : NO_SUCH_CALL;
}

/* The host's CPU: KVM's guests have its vendor. */
bool tt_has_svm(CPUState *cpu)
{
    const CPUX86State *env = cpu_env(cpu);

    return IS_AMD_CPU(env) || env->cpuid_vendor1 == 0x6f677948;     /* "Hygo" */
}

void HELPER(tt_hypercall)(CPUX86State *env, uint32_t is_vmcall)
{
    bool in_kernel = !(env->hflags & HF_CPL_MASK), wide = env->hflags & HF_CS64_MASK;
    uint64_t nr = wide ? env->regs[R_EAX] : (uint32_t)env->regs[R_EAX];
    int64_t result;

    if (is_vmcall == tt_has_svm(env_cpu(env))) {
        /* KVM's emulator has VMCALL as an instruction of the kernel's. */
        raise_exception_err_ra(env, is_vmcall && !in_kernel ? EXCP0D_GPF : EXCP06_ILLOP, 0,
                               GETPC());
    }
    result = answer(nr, in_kernel);
    env->regs[R_EAX] = wide ? (uint64_t)result : (uint32_t)result;
}
