/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "bigram": writes to every page of much RAM, again and again.
 *
 * Options: mb=N (16) MiB, from the eighth on; rounds=N (20).
 */
#include "rt.h"

const char guest_name[] = "bigram";

enum { FIRST = 8 << 20 };

void main(void)
{
    u32 rounds = option("rounds", 20), end = FIRST + (option("mb", 16) << 20);

    rt_timer(500);
    for (u32 r = 1; r <= rounds; r++) {
        for (u32 at = FIRST; at < end; at += PAGE) {
            *(volatile u32 *)at += r;
        }
        fold(*(volatile u32 *)FIRST ^ *(volatile u32 *)(end - PAGE));
    }
}
