/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The x86 part of a vCPU: its identity, state, flags and interrupts.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_TARGET_H
#define TT_TARGET_H

#include "run/tt-manifest.h"

void tt_target_identity(CPUState *cpu, TtManifest *m);
bool tt_target_adopt_identity(CPUState *cpu, const TtManifest *m,
                              Error **errp);
/* Puts into the registers what TCG keeps beside them: what SSE has raised in MXCSR. */
void tt_target_settle(CPUState *cpu);
GByteArray *tt_target_save(CPUState *cpu);      /* halted flag not included */
bool tt_target_load(CPUState *cpu, const uint8_t *data, size_t len,
                    Error **errp);
uint64_t tt_target_digest(CPUState *cpu);
/* Hash of everything that code outside the vCPU could change. ~1 us. */
uint64_t tt_target_fingerprint(CPUState *cpu);
/* General registers that a device changes when the vCPU asks it (vmport): note them
 * before, and log afterwards those that are not the same. */
#define TT_TARGET_REGS 16
void tt_target_note_regs(CPUState *cpu, uint64_t regs[TT_TARGET_REGS]);
void tt_target_log_regs(CPUState *cpu, const uint64_t before[TT_TARGET_REGS]);
/* Links of devices to a vCPU, of the world that is not shown. */
typedef struct TtLinks {
    uint32_t requests;          /* of interrupts */
    void *apic;
} TtLinks;

void tt_target_swap_links(CPUState *cpu, TtLinks *other);
void tt_target_flags(CPUState *cpu, uint64_t flags[4]); /* by TT_FLAG_* */
void tt_target_set_flag(CPUState *cpu, unsigned flag, uint64_t val);
/* Inside cpu_exec; may longjmp as the recorded delivery did. */
bool tt_target_deliver(CPUState *cpu, uint64_t type, uint64_t vector);
uint64_t tt_target_intr_class(int cpu_interrupt_mask);
bool tt_target_intercepts(CPUState *cpu, uint64_t intr_class);

#endif
