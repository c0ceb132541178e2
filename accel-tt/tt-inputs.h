/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inputs of the vCPU that it asks for: ports, MMIO, time, CPUID, MSRs, random numbers.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_INPUTS_H
#define TT_INPUTS_H

void tt_inputs_start(void);     /* while the clock stands, or has not begun */

/*
 * Page guarding (hw-tt/memory/tt-guard.c) sets it while it is on. Before guest code
 * goes on, or a device call begins: what was written from outside is looked at.
 */
extern void (*tt_settle_slow)(void);

static inline void tt_settle(void)
{
    if (unlikely(tt_settle_slow)) {
        tt_settle_slow();
    }
}

#endif
