/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Performance counters for the hosts that our tests emulate: PerfEvtSel0 to 3 and
 * PerfCtr0 to 3 of AMD's K7 and later, as Linux uses them where CPUID names no newer
 * ones. Two events count, and exactly so; with all others a counter stands still:
 *
 *   0xc2   retired branch instructions
 *   0xd1   retired conditional branch instructions
 *
 * Branches count themselves (include/tt/branches.c.inc). A counter is the sum of those
 * classes that its register selects, less what that was when the counter was set.
 *
 * Context: the vCPU's thread.
 */
#include "qemu/osdep.h"
#include "tt/hooks.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "tcg/helper-tcg.h"

#define CPUS_MAX      8             /* those after them have no counters */
#define COUNTERS      4
#define MSR_SELECT    0xc0010000u
#define MSR_COUNTER   0xc0010004u
#define COUNTER_MASK  ((UINT64_C(1) << 48) - 1)

#define EVENT_MASK    UINT64_C(0xf0000ffff)     /* with the unit mask */
#define EVENT_BRANCH  0xc2
#define EVENT_COND    0xd1
#define SELECT_USER   (UINT64_C(1) << 16)
#define SELECT_KERNEL (UINT64_C(1) << 17)
#define SELECT_ON     (UINT64_C(1) << 22)
#define SELECT_GUEST  (UINT64_C(1) << 40)       /* both of these, or none: all code */
#define SELECT_HOST   (UINT64_C(1) << 41)

bool tt_pmu_is_on;

typedef struct Counter {
    uint64_t select;
    uint64_t value;             /* when `seen` branches had been counted */
    uint64_t seen;
} Counter;

static Counter counters[CPUS_MAX][COUNTERS];

static bool selects_class(uint64_t select, unsigned class)
{
    uint64_t where = select & (SELECT_GUEST | SELECT_HOST);
    bool in_guest = class & 2, in_user = class & 1;

    if (where == SELECT_GUEST || where == SELECT_HOST) {
        if (in_guest != (where == SELECT_GUEST)) {
            return false;
        }
    }
    return select & (in_user ? SELECT_USER : SELECT_KERNEL);
}

static uint64_t counted(CPUX86State *env, uint64_t select)
{
    uint64_t event = select & EVENT_MASK, n = 0;

    if (!(select & SELECT_ON) || (event != EVENT_BRANCH && event != EVENT_COND)) {
        return 0;
    }
    for (unsigned class = 0; class < TT_BRANCH_CLASSES; class++) {
        if (selects_class(select, class)) {
            n += env->tt_branches[TT_BRANCH_CLASSES * TT_BRANCH_COND + class];
            if (event == EVENT_BRANCH) {
                n += env->tt_branches[TT_BRANCH_CLASSES * TT_BRANCH_OTHER + class];
            }
        }
    }
    return n;
}

static uint64_t value_of(CPUX86State *env, const Counter *c)
{
    return (c->value + counted(env, c->select) - c->seen) & COUNTER_MASK;
}

static void set_value(CPUX86State *env, Counter *c, uint64_t value)
{
    c->value = value;
    c->seen = counted(env, c->select);
}

static Counter *counter_of(CPUState *cpu, uint32_t msr, uint32_t first)
{
    return msr >= first && msr - first < COUNTERS && cpu->cpu_index < CPUS_MAX ?
        &counters[cpu->cpu_index][msr - first] : NULL;
}

bool tt_pmu_write(CPUState *cpu, uint32_t msr, uint64_t val)
{
    CPUX86State *env = cpu_env(cpu);
    Counter *c = counter_of(cpu, msr, MSR_SELECT);

    if (c) {
        uint64_t now = value_of(env, c);

        c->select = val;
        set_value(env, c, now);
        return true;
    }
    c = counter_of(cpu, msr, MSR_COUNTER);
    if (c) {
        set_value(env, c, val);
    }
    return c;
}

bool tt_pmu_read(CPUState *cpu, uint32_t msr, uint64_t *val)
{
    Counter *c = counter_of(cpu, msr, MSR_SELECT);

    if (c) {
        *val = c->select;
        return true;
    }
    c = counter_of(cpu, msr, MSR_COUNTER);
    if (c) {
        *val = value_of(cpu_env(cpu), c);
    }
    return c;
}

/* Also in a replay of a run of KVM's, which has no counters. */
void HELPER(tt_rdpmc)(CPUX86State *env)
{
    uint32_t index = env->regs[R_ECX];
    Counter *c = tt_pmu_is_on ? counter_of(env_cpu(env), index, 0) : NULL;
    uint64_t val;

    if (!(env->cr[4] & CR4_PCE_MASK) && env->hflags & HF_CPL_MASK) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, GETPC());
    }
    cpu_svm_check_intercept_param(env, SVM_EXIT_RDPMC, 0, GETPC());
    if (!c) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, GETPC());
    }
    val = value_of(env, c);
    env->regs[R_EAX] = (uint32_t)val;
    env->regs[R_EDX] = val >> 32;
}
