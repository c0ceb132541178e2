/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model-specific registers of a run that is recorded under KVM. Some are state of the
 * vCPU, which KVM and TCG keep alike. All others are inputs: KVM asks QEMU, whose
 * answer is logged. Where KVM, or the CPU, raises #GP for one that is state, nothing is
 * logged, so a replay has to know.
 *
 * Context: the BQL is held.
 */
#ifndef TT_MSR_H
#define TT_MSR_H

struct CPUState;

typedef struct TtMsrRange {
    uint32_t first, last;
} TtMsrRange;

/* The state, in ascending order; @n of them. */
const TtMsrRange *tt_msr_state(unsigned *n);
bool tt_msr_is_state(uint32_t index);
/* Neither: KVM raises #GP. */
bool tt_msr_is_missing(struct CPUState *cpu, uint32_t index);
/* Is @val one that KVM, or the CPU, takes for @index, which is state? */
bool tt_msr_takes(struct CPUState *cpu, uint32_t index, uint64_t val);
/* Only what KVM leaves to the CPU. */
bool tt_msr_takes_address(struct CPUState *cpu, uint32_t index, uint64_t val);

/* What QEMU answers. Below 0: #GP. */
int tt_msr_device_read(struct CPUState *cpu, uint32_t index, uint64_t *val);
int tt_msr_device_write(struct CPUState *cpu, uint32_t index, uint64_t val);

#endif
