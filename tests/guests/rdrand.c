/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "rdrand": random numbers from the CPU, with the flag that says
 * whether there was one. Needs -cpu max. Option: rounds=N (10000).
 */
#include "rt.h"

const char guest_name[] = "rdrand";

enum { CPUID1_ECX_RDRAND = 1 << 30, CPUID7_EBX_RDSEED = 1 << 18 };

static u32 cpuid_part(u32 leaf, u32 part)
{
    u32 v[4];

    __asm__ volatile("cpuid" : "=a"(v[0]), "=b"(v[1]), "=c"(v[2]), "=d"(v[3])
                     : "a"(leaf), "c"(0));
    return v[part];
}

#define RANDOM(insn, value, flags) \
    __asm__ volatile(insn " %0\n\t" "pushf\n\t" "pop %1" \
                     : "=r"(value), "=r"(flags) :: "cc")

void main(void)
{
    u32 rounds = option("rounds", 10000), value, flags, good = 0, last = 0;

    if (!(cpuid_part(1, 2) & CPUID1_ECX_RDRAND) ||
        !(cpuid_part(7, 1) & CPUID7_EBX_RDSEED)) {
        rt_fail("the CPU has no RDRAND or RDSEED: use -cpu max", 0);
    }
    rt_timer(2000);
    for (u32 r = 0; r < rounds; r++) {
        u16 half;

        RANDOM("rdrand", value, flags);
        fold(value);
        fold(flags & RT_EFLAGS_SEEN);
        good += flags & 1;
        RANDOM("rdseed", value, flags);
        fold(value);
        fold(flags & RT_EFLAGS_SEEN);
        good += (flags & 1) && value != last;
        last = value;
        __asm__ volatile("rdrand %0" : "=r"(half) :: "cc");
        fold(half);
    }
    say("good", good);
    if (good < rounds) {
        rt_fail("too few random numbers", good);
    }
}
