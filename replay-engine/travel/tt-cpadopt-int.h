/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder's checkpoints, at the start of a replay.
 *
 * Context: the vCPU thread, outside cpu_exec, BQL held. Blocks: reads files.
 */
#ifndef TT_CPADOPT_INT_H
#define TT_CPADOPT_INT_H

/* One at the start is the state we are in. False: there are none; why was said. */
bool tt_cpadopt_stored(CPUState *cpu);
/* The VM becomes that of the first one that can be used; if there is none, that is
 * reported as damage. */
void tt_cpadopt_window(CPUState *cpu);

#endif
