/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "reps": long string instructions with REP, one behind the other, with interrupts
 * on. Under KVM whoever makes the vCPU leave guest code finds it within one of them.
 * Options: rounds=N (6), bytes=N (1500000) of each; break=1: with a data breakpoint that is
 * never hit.
 */
#include "rt.h"

const char guest_name[] = "reps";

static void NOINLINE copy(u32 bytes)
{
    u8 *from = RT_ARENA, *to = RT_ARENA + (4 << 20);
    u32 n = bytes;

    /* Of two in a row, the second one has nothing left to do. */
    __asm__ volatile("rep movsb\n\t" "rep stosb\n\t" "mov %3, %%ecx\n\t" "rep stosb\n\t"
                     "rep movsb\n\t" "mov %3, %%ecx\n\t" "mov %4, %%edi\n\t"
                     "repe scasb\n\t" "repne scasb\n\t"
                     : "+S"(from), "+D"(to), "+c"(n) : "r"(bytes), "r"(RT_ARENA), "a"(0)
                     : "memory", "cc");
    fold(n);
    fold((u32)to);
}

void main(void)
{
    u32 rounds = option("rounds", 6), bytes = option("bytes", 1500000);

    if (option("break", 0)) {
        __asm__ volatile("mov %0, %%dr0\n\t" "mov %1, %%dr7"
                         :: "r"(RT_ARENA + (32 << 20)), "r"(0x10001));
    }
    rt_timer(1000);
    for (u32 r = 0; r < rounds; r++) {
        copy(bytes);
    }
    rt_timer_off();
    fold(rt_ticks);
}
