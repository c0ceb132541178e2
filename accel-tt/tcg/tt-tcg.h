/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vCPU backend for TCG.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_TCG_H
#define TT_TCG_H

void tt_tcg_init(void);         /* the vCPUs are TCG's: once, at start */
/* In a replay, after TCG was chosen and before there are vCPUs: they have our thread. */
void tt_tcg_take_threads(void);

#endif
