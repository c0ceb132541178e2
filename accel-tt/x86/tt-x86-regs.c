/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A vCPU's registers, one by one. Nothing of the VM changes by looking.
 */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-x86-regs.h"
#include "debug/tt-paging.h"
#include "hw/core/cpu.h"
#include "cpu.h"

static uint64_t system_reg(CPUState *cpu, TtCondReg reg)
{
    CPUX86State *env = cpu_env(cpu);

    switch (reg) {
    case TT_COND_FS_BASE:
        return env->segs[R_FS].base;
    case TT_COND_GS_BASE:
        return env->segs[R_GS].base;
    case TT_COND_K_GS_BASE:
        return env->kernelgsbase;
    case TT_COND_CR0:
        return env->cr[0];
    case TT_COND_CR2:
        return env->cr[2];
    case TT_COND_CR3:
        return env->cr[3];
    case TT_COND_CR4:
        return env->cr[4];
    case TT_COND_EFER:
        return env->efer;
    case TT_COND_CPU:
        return cpu->cpu_index;
    case TT_COND_CPL:
        return env->hflags & HF_CPL_MASK;
    default:
        g_assert_not_reached();
    }
}

bool tt_target_address(CPUState *cpu, uint64_t *addr)
{
    return tt_paging_address(cpu_env(cpu)->hflags & HF_LMA_MASK, addr);
}

uint64_t tt_target_reg(CPUState *cpu, TtCondReg reg)
{
    static const uint8_t general[] = {
        [TT_COND_RAX] = R_EAX, [TT_COND_RBX] = R_EBX, [TT_COND_RCX] = R_ECX,
        [TT_COND_RDX] = R_EDX, [TT_COND_RSI] = R_ESI, [TT_COND_RDI] = R_EDI,
        [TT_COND_RBP] = R_EBP, [TT_COND_RSP] = R_ESP, [TT_COND_R8] = 8,
        [TT_COND_R9] = 9, [TT_COND_R10] = 10, [TT_COND_R11] = 11, [TT_COND_R12] = 12,
        [TT_COND_R13] = 13, [TT_COND_R14] = 14, [TT_COND_R15] = 15,
    };
    static const uint8_t segments[] = {
        [TT_COND_CS - TT_COND_CS] = R_CS, [TT_COND_SS - TT_COND_CS] = R_SS,
        [TT_COND_DS - TT_COND_CS] = R_DS, [TT_COND_ES - TT_COND_CS] = R_ES,
        [TT_COND_FS - TT_COND_CS] = R_FS, [TT_COND_GS - TT_COND_CS] = R_GS,
    };
    CPUX86State *env = cpu_env(cpu);

    if (reg < ARRAY_SIZE(general)) {
        return env->regs[general[reg]];
    }
    if (reg == TT_COND_RIP) {
        return cpu->cc->get_pc(cpu);
    }
    if (reg == TT_COND_EFLAGS) {
        return cpu_compute_eflags(env);
    }
    if (reg >= TT_COND_CS && reg <= TT_COND_GS) {
        return env->segs[segments[reg - TT_COND_CS]].selector;
    }
    return system_reg(cpu, reg);
}

void tt_target_flow_regs(CPUState *cpu, TtFlowRegs *regs)
{
    CPUX86State *env = cpu_env(cpu);

    regs->bits = env->hflags & HF_CS64_MASK ? 64 : env->hflags & HF_CS32_MASK ? 32 : 16;
    for (unsigned i = 0; i < TT_FLOW_GENERAL; i++) {
        regs->general[i] = env->regs[i];
    }
    regs->pc = env->eip;
    regs->flags = cpu_compute_eflags(env);
    for (unsigned i = 0; i < 6; i++) {
        regs->bases[i] = env->segs[i].base;
    }
}

void tt_target_vector(CPUState *cpu, unsigned n, uint8_t *bytes)
{
    memcpy(bytes, &cpu_env(cpu)->xmm_regs[n], 32);
}
