/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU model tt-v1: what can be recorded under KVM, and what TCG executes alike. It
 * has no time stamp counter, no random numbers, no XSAVE, no MWAIT.
 */
#ifndef TT_CPU_MODEL_H
#define TT_CPU_MODEL_H

#define TT_CPU_MODEL "tt-v1"
#define TT_CPU_MODEL_TYPE TT_CPU_MODEL "-x86_64-cpu"

struct CPUState;

/* What of its features must not be there; NULL: all is well. */
const char *tt_cpu_model_unrecordable(struct CPUState *cpu);
/* What of them TCG has not, so that no replay could execute it; NULL: nothing. */
const char *tt_cpu_model_unreplayable(struct CPUState *cpu);
/* The user gave tsc-frequency. */
bool tt_cpu_model_has_tsc_frequency(struct CPUState *cpu);

#endif
