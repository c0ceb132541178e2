/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "hlt": idling, wake-ups, interrupt shadows and NMIs.
 *
 * STI;HLT sleeps until the timer; STI and MOV SS hold interrupts back for
 * one instruction, which the interrupted address shows. NMIs come from
 * outside (inject-nmi). Options: rounds=N (150) wake-ups, nmis=N (0): go on
 * until so many NMIs came.
 */
#include "rt.h"

const char guest_name[] = "hlt";

/* Windows of one instruction, and windows of none at all. */
static void NOINLINE shadows(u32 turns)
{
    u32 a = 0, b = 0;

    __asm__ volatile(
        "1: sti\n\t"
        "inc %0\n\t"
        "cli\n\t"
        "sti\n\t"
        "cli\n\t"
        "inc %1\n\t"
        "sti\n\t"
        "mov %%ss, %%eax\n\t"
        "mov %%eax, %%ss\n\t"
        "lea (%0, %1, 2), %%eax\n\t"
        "cli\n\t"
        "dec %2\n\t"
        "jnz 1b\n\t"
        : "+r"(a), "+r"(b), "+r"(turns) :: "eax", "cc", "memory");
    fold(a);
    fold(b);
    sti();
}

static void sleep_once(void)
{
    u32 before = rt_ticks;

    cli();
    while (rt_ticks == before) {
        __asm__ volatile("sti\n\t" "hlt\n\t" "cli" ::: "memory");
        fold(rt_nmis);
    }
    sti();
}

void main(void)
{
    u32 rounds = option("rounds", 150), wanted = option("nmis", 0);

    rt_timer(500);
    put_str("ready\n");
    for (u32 r = 0; r < rounds || rt_nmis < wanted; r++) {
        sleep_once();
        shadows(2000);
        if (r % 50 == 49) {
            say64("irqs", rt_irq_sum);
            put_char('\n');
        }
    }
    fold(rt_nmis);
}
