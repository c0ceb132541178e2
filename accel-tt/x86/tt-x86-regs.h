/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A vCPU's registers, one by one, for conditions.
 *
 * Context: the BQL is held; the vCPU stands between two instructions.
 */
#ifndef TT_X86_REGS_H
#define TT_X86_REGS_H

#include "debug/tt-cond.h"

uint64_t tt_target_reg(CPUState *cpu, TtCondReg reg);

#endif
