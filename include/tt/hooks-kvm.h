/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hooks for runs that were recorded under KVM: their conversion and their replay.
 * Included by tt/hooks.h. Context: vCPU.
 */
#ifndef TT_HOOKS_KVM_H
#define TT_HOOKS_KVM_H

#include <stdbool.h>
#include <stdint.h>

struct CPUState;

/* A replay of a run that was recorded under KVM: what KVM does without QEMU is done as
 * there. */
extern bool tt_replays_kvm;

/* VMCALL and VMMCALL: asked when a block is translated. */
static inline bool tt_answers_hypercalls(void)
{
    return tt_replays_kvm;
}

/* AMD's CPUs, and those like them. */
bool tt_has_svm(struct CPUState *cpu);

/* WRMSR and RDMSR of it: true: that was all. @ra: of the helper; #GP does not return.
 * Also if what a CPU does is wanted. */
bool tt_msr_wr_as_kvm_slow(struct CPUState *cpu, uint64_t val, uintptr_t ra);
bool tt_msr_rd_as_kvm_slow(struct CPUState *cpu, uintptr_t ra);

static inline bool tt_msr_wr_as_kvm(struct CPUState *cpu, uint64_t val, uintptr_t ra)
{
    return __builtin_expect(tt_replays_kvm || tt_is_like_hardware(), 0) &&
        tt_msr_wr_as_kvm_slow(cpu, val, ra);
}

static inline bool tt_msr_rd_as_kvm(struct CPUState *cpu, uintptr_t ra)
{
    return __builtin_expect(tt_replays_kvm || tt_is_like_hardware(), 0) &&
        tt_msr_rd_as_kvm_slow(cpu, ra);
}

/* Does KVM refuse to put @val into this control register? */
bool tt_cr_faults_slow(struct CPUState *cpu, int reg, uint64_t val);

static inline bool tt_cr_faults(struct CPUState *cpu, int reg, uint64_t val)
{
    return __builtin_expect(tt_replays_kvm, 0) && tt_cr_faults_slow(cpu, reg, val);
}

/* What the kernel lets QEMU answer (its MSR filter), while nothing is recorded: the
 * vCPU's thread, without the BQL. Returns 0. */
int tt_kvm_rdmsr(struct CPUState *cpu);
int tt_kvm_wrmsr(struct CPUState *cpu);
/* A conversion keeps in mind which pages were used as page tables: their accessed and
 * dirty bits need not be as on the recorded CPU. @entry: in host memory, or NULL. */
extern bool tt_notes_tables;
void tt_note_table(void *entry);

static inline void tt_walked(void *entry)
{
    if (__builtin_expect(tt_notes_tables, 0)) {
        tt_note_table(entry);
    }
}

#endif
