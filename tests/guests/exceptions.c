/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "exceptions": nothing but faults through trap gates, and the timer.
 *
 * A fault that is unwound leaves the instruction count unchanged, so "before
 * the faulting instruction" and "first instruction of its handler" must be
 * told apart by counting exceptions; and a fault in the middle of a block
 * must take back the instructions that did not run. The resume flag, set by
 * the return from a fault, must end with one instruction and not with the
 * block. Option: rounds=N (30).
 */
#include "rt.h"

const char guest_name[] = "exceptions";

extern u8 exc_skip2[], exc_skip6_err[], exc_count[];
extern volatile u32 exc_counts[4];
u32 exc_loop(u32 times, u32 mix);

void main(void)
{
    u32 rounds = option("rounds", 30), mix = 1;

    rt_paging();
    rt_gate(0, exc_skip2, GATE_TRAP);
    rt_gate(3, exc_count, GATE_TRAP);
    rt_gate(6, exc_skip2, GATE_TRAP);
    rt_gate(14, exc_skip6_err, GATE_TRAP);
    rt_timer(8000);
    for (u32 r = 0; r < rounds; r++) {
        mix = exc_loop(4000, mix);
        fold(mix);
    }
    for (u32 i = 0; i < 4; i++) {
        fold(exc_counts[i]);
    }
}
