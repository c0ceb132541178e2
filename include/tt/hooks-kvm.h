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

/* A run that was recorded under KVM: MSRs that QEMU answered there are inputs. */
extern bool tt_msrs_are_inputs;
bool tt_msr_is_input_slow(uint32_t index);

static inline bool tt_msr_is_input(uint32_t index)
{
    return __builtin_expect(tt_msrs_are_inputs, 0) && tt_msr_is_input_slow(index);
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
