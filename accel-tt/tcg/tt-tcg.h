/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vCPU backend for TCG.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_TCG_H
#define TT_TCG_H

void tt_tcg_init(void);         /* the vCPUs are TCG's: once, at start */
/* How many instructions have begun in this process: those that were executed, and those
 * that faulted. A plugin's call at each instruction counts the same. */
uint64_t tt_tcg_begun(void);
/* How many exceptions, traps too, were delivered in it. */
uint64_t tt_tcg_excepted(void);
/* Ends a turn of the vCPU from inside a helper; does not return. */
void G_NORETURN tt_vcpu_leave(CPUState *cpu);

#endif
