/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Conditional branches that a vCPU of TCG has executed, counted while tt_counts_branches
 * is set (tt/hooks-branches.h). Context: the vCPU's thread.
 */
#ifndef TT_BRANCHES_H
#define TT_BRANCHES_H

#include <stdint.h>

struct CPUState;

#define TT_BRANCHES_NEVER 0         /* the count is never that again */

/* Up to here: inside an instruction, too. */
uint64_t tt_branches_executed(struct CPUState *cpu);
/* Guest code is left between the one that makes the count @n and the instruction after
 * it. */
void tt_branches_stop_at(struct CPUState *cpu, uint64_t n);

#endif
