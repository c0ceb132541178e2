/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb's watchpoints under TCG.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_WATCH_H
#define TT_WATCH_H

/* Around a run of guest code that no stop of gdb's may end. */
void tt_watchpoints_hide(CPUState *cpu);
void tt_watchpoints_restore(CPUState *cpu);
void tt_watchpoints_arm(CPUState *cpu);         /* they count from now on */

/* Entries came to its TLB that may not know of gdb's watchpoints. */
void tt_watchpoints_unmarked(CPUState *cpu);

#endif
