/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an undo log of single steps notes of TCG's vCPUs: registers, entries of the TLB,
 * code pages that were entered. An operation of the backend: accel-tt/tt-vcpu-backend.h.
 *
 * Context: vCPU thread, BQL held.
 */
#ifndef TT_UNDO_TCG_H
#define TT_UNDO_TCG_H

#include "accel-tt/tt-vcpu-backend.h"

extern const TtVcpuUndo tt_tcg_undo;

/* Control has entered a code page for the first time. */
void tt_undo_entered(struct CPUState *cpu, uint64_t key);
/* The entry of @addr in the TLB of this mode is about to change, and the victims. */
void tt_undo_tlb_changes(struct CPUState *cpu, int mmu_idx, uint64_t addr);
/* A TLB was flushed, which no note undoes. */
void tt_undo_bar(void);

#endif
