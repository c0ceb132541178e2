/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "cpuid": every leaf that the CPU admits to, hashed and printed, so
 * that a replay with another CPU model shows. Option: rounds=N (100).
 */
#include "rt.h"

const char guest_name[] = "cpuid";

static u32 fold_leaf(u32 leaf, u32 sub)
{
    u32 a, b, c, d;

    __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d)
                     : "a"(leaf), "c"(sub));
    fold(a);
    fold(b);
    fold(c);
    fold(d);
    return a;
}

static void fold_range(u32 base)
{
    u32 last = fold_leaf(base, 0);

    if (last < base || last > base + 64) {
        return;
    }
    for (u32 leaf = base + 1; leaf <= last; leaf++) {
        for (u32 sub = 0; sub < 8; sub++) {
            fold_leaf(leaf, sub);
        }
    }
}

void main(void)
{
    u32 rounds = option("rounds", 100);

    rt_timer(2000);
    for (u32 r = 0; r < rounds; r++) {
        fold_range(0);
        fold_range(0x40000000u);
        fold_range(0x80000000u);
    }
}
