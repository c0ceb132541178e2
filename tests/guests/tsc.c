/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "tsc": the time-stamp counter, read back to back, in straight code
 * and with RDTSCP; it must never go back. Needs -cpu max. Options:
 * rounds=N (20000), p=0: no RDTSCP, m=1: as a model-specific register, too, which TCG by
 * itself has not, nmis=N (0): go on until so many NMIs came.
 */
#include "rt.h"

const char guest_name[] = "tsc";

static u64 last;

static void observe(u64 now)
{
    if (now < last) {
        rt_fail("the counter went back by", (u32)(last - now));
    }
    last = now;
    fold64(now);
}

void main(void)
{
    u32 rounds = option("rounds", 20000), has_p = option("p", 1);
    u32 wanted = option("nmis", 0), has_msr = option("m", 0);

    rt_timer(4000);
    for (u32 r = 0; r < rounds || rt_nmis < wanted; r++) {
        u32 low, high, low2, high2, aux;

        observe(rdtsc());
        __asm__ volatile(
            "rdtsc\n\t"
            "mov %%eax, %0\n\t"
            "mov %%edx, %1\n\t"
            "add %0, %1\n\t"
            "sub %0, %1\n\t"
            "rdtsc\n\t"
            : "=&r"(low), "=&r"(high), "=&a"(low2), "=&d"(high2) :: "cc");
        observe((u64)high << 32 | low);
        observe((u64)high2 << 32 | low2);
        if (has_msr) {
            observe(rdmsr(0x10));
        }
        if (!has_p) {
            continue;
        }
        __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(aux));
        observe((u64)high << 32 | low);
        fold(aux);
    }
}
