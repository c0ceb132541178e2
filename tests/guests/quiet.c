/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "quiet": interrupts at places that a log of exits does not name.
 *
 * Writes to ROM, which leave guest code and tell nothing, under the timer; then loads of
 * SS from device memory, where an NMI (inject-nmi) has to wait for one more instruction.
 * The frames of the interrupts are folded. Options: rounds=N (12) of writes, nmis=N (0):
 * go on with the loads until so many NMIs came.
 */
#include "rt.h"

const char guest_name[] = "quiet";

enum { ROM = 0xffffff00, IOAPIC = 0xfec00000, DATA = 0x10, WRITES = 200, LOADS = 200 };

static void NOINLINE write_rom(void)
{
    volatile u32 *rom = (volatile u32 *)ROM;

    for (u32 i = 0; i < WRITES; i++) {
        rom[i & 31] = i;
    }
}

/* The index register of the I/O APIC reads as it was written. */
static void NOINLINE load_ss(void)
{
    u32 n = LOADS, a = 0, b = 0;

    *(volatile u32 *)IOAPIC = DATA;
    __asm__ volatile(
        "1: mov (%3), %%ss\n\t"
        "inc %0\n\t"
        "lea 1(%0, %1), %1\n\t"
        "dec %2\n\t"
        "jnz 1b\n\t"
        : "+r"(a), "+r"(b), "+r"(n) : "r"(IOAPIC) : "cc", "memory");
    fold(a);
    fold(b);
}

void main(void)
{
    u32 rounds = option("rounds", 12), wanted = option("nmis", 0);

    put_str("ready\n");
    rt_timer(2000);
    for (u32 r = 0; r < rounds; r++) {
        write_rom();
    }
    rt_timer_off();
    say("ticks", rt_ticks);
    put_char('\n');
    do {
        load_ss();
    } while (rt_nmis < wanted);
    fold(rt_nmis);
}
