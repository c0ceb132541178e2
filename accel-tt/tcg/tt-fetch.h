/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instruction fetch under TCG: a page is looked up exactly when control enters it.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_FETCH_H
#define TT_FETCH_H

#include "pages/tt-pageset.h"

void tt_fetch_start(void);      /* before the vCPU runs */
void tt_fetch_mode_changed(void);       /* the same where -tt is on; else nothing is left */
void tt_fetch_turn_to(CPUState *cpu);   /* the vCPU that runs from now on */
void tt_fetch_again(CPUState *cpu);     /* where the vCPU stands */

/* The code pages that control has entered; to be freed. */
TtPageSet *tt_fetch_save(CPUState *cpu);
void tt_fetch_load(CPUState *cpu, const TtPageSet *from);
/* A page, as tt_undo_entered was told of it, was not entered. Then turn to the vCPU. */
void tt_fetch_drop(CPUState *cpu, uint64_t key);

#endif
