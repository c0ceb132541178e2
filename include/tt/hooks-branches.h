/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hooks for counting branches. Included by tt/hooks.h. Context: vCPU.
 */
#ifndef TT_HOOKS_BRANCHES_H
#define TT_HOOKS_BRANCHES_H

#include <stdbool.h>
#include <stdint.h>

struct CPUState;

/*
 * Each branch instruction that is executed to its end counts itself in
 * CPUX86State.tt_branches: those that depend on flags or a counter (Jcc, JCXZ, LOOP)
 * and the others (jumps, calls, returns, SYSCALL and its kin; not INT, no exception and
 * no interrupt). Set before the first block is translated, and never changed. Off:
 * nothing is translated. With -tt, a conditional branch that makes their count
 * tt_branch_stop ends guest code behind it.
 */
extern bool tt_counts_branches;
enum { TT_BRANCH_COND, TT_BRANCH_OTHER, TT_BRANCH_KINDS };

/*
 * -accel tcg,tt-pmu=on: four performance counters as in AMD's K7 and later, for hosts that
 * our tests emulate. They count branches, by ring, and in SVM guests or outside; with that
 * each kind has a count for each of four classes. No interrupt comes when one overflows.
 */
#define TT_BRANCH_CLASSES 4         /* 2 * in a guest + in user mode */
extern bool tt_pmu_is_on;

static inline unsigned tt_branch_class(bool in_guest, bool in_user)
{
    return tt_pmu_is_on ? 2 * in_guest + in_user : 0;
}

/* The places of runs need conditional branches alone. */
static inline bool tt_branch_counts(unsigned kind)
{
    return kind == TT_BRANCH_COND || tt_pmu_is_on;
}

/* False: @msr is none of its registers. */
bool tt_pmu_write(struct CPUState *cpu, uint32_t msr, uint64_t val);
bool tt_pmu_read(struct CPUState *cpu, uint32_t msr, uint64_t *val);

#endif
