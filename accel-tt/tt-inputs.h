/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inputs of the vCPU that it asks for: ports, MMIO, time, CPUID, MSRs, random numbers.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_INPUTS_H
#define TT_INPUTS_H

void tt_inputs_start(void);     /* while the clock stands, or has not begun */

#endif
