/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "smm": system management interrupts through port B2h.
 *
 * The firmware's handler runs in a memory map of its own and returns. Only
 * the interrupt count register and the time taken show it. Option:
 * rounds=N (300).
 */
#include "rt.h"

const char guest_name[] = "smm";

enum { PORT_SMI = 0xb2, PORT_SMI_STATUS = 0xb3, MSR_SMI_COUNT = 0x34 };

static u32 NOINLINE trigger(u32 r)
{
    u32 x = r * 3, y = r ^ 0x5a5a;

    /* Registers must survive, and positions after the return be exact. */
    __asm__ volatile(
        "rol $5, %0\n\t"
        "xor %%eax, %%eax\n\t"
        "outb %%al, $0xb2\n\t"
        "add %1, %0\n\t"
        "lea 3(%0, %1, 4), %1\n\t"
        : "+r"(x), "+r"(y) :: "eax", "cc", "memory");
    return x ^ y;
}

void main(void)
{
    u32 rounds = option("rounds", 300), before;

    before = (u32)rdmsr(MSR_SMI_COUNT);
    rt_timer(2000);
    for (u32 r = 0; r < rounds; r++) {
        outb(PORT_SMI_STATUS, r);
        fold(trigger(r));
        fold(inb(PORT_SMI_STATUS));
    }
    say("smis", (u32)rdmsr(MSR_SMI_COUNT) - before);
    if ((u32)rdmsr(MSR_SMI_COUNT) - before < rounds) {
        rt_fail("no SMI came", rounds);
    }
}
