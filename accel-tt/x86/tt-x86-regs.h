/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A vCPU's registers, one by one, for conditions.
 *
 * Context: the BQL is held; the vCPU stands between two instructions.
 */
#ifndef TT_X86_REGS_H
#define TT_X86_REGS_H

#include "debug/tt-cond.h"
#include "debug/tt-flow.h"

uint64_t tt_target_reg(CPUState *cpu, TtCondReg reg);
/* *@addr becomes what it is in the vCPU's mode: outside of long mode addresses have 32 bits,
 * and may come with copies of the uppermost one above it. False: it is none. */
bool tt_target_address(CPUState *cpu, uint64_t *addr);
/* What the next instruction works with; and a vector register, of 32 bytes. */
void tt_target_flow_regs(CPUState *cpu, TtFlowRegs *regs);
void tt_target_vector(CPUState *cpu, unsigned n, uint8_t *bytes);

#endif
