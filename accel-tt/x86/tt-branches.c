/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conditional branches that a vCPU of TCG has executed, and a stop at one of them. */
#include "qemu/osdep.h"
#include "accel-tt/x86/tt-branches.h"
#include "tt/hooks.h"
#include "hw/core/cpu.h"
#include "cpu.h"
#include "exec/helper-proto.h"

bool tt_counts_branches;

uint64_t tt_branches_executed(CPUState *cpu)
{
    return cpu_env(cpu)->tt_branches[TT_BRANCH_CLASSES * TT_BRANCH_COND];
}

void tt_branches_stop_at(CPUState *cpu, uint64_t n)
{
    cpu_env(cpu)->tt_branch_stop = n;
}

/* The next block leaves before its first instruction. */
void HELPER(tt_branches_stop)(CPUX86State *env)
{
    CPUState *cpu = env_cpu(env);

    cpu->exit_request = true;
    cpu->neg.icount_decr.u16.high = -1;
}
