/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which page tables the vCPUs use while the VM is recorded under TCG (debug/tt-paging.h).
 * Whatever a vCPU executes is fetched through its TLB, which is emptied where its page
 * tables change; so it is enough to look whenever a page comes into a TLB.
 *
 * Context: the vCPU whose turn it is, or all vCPUs stand; the BQL need not be held.
 */
#ifndef TT_X86_PAGING_H
#define TT_X86_PAGING_H

#include "debug/tt-paging.h"
#include "hw/core/cpu.h"

TtPaging tt_paging_of(CPUState *cpu);
/* From position @pos on. */
void tt_paging_begin(uint64_t pos);
/* All that were used since then, as bytes; g_free. @is_lost: they do not tell where an
 * address leads, since the memory map has changed. */
uint8_t *tt_paging_encode(bool is_lost, uint32_t *len);

#endif
