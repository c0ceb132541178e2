/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "victims": writes to pages that hold code, and that push each other out.
 *
 * An emulator marks the TLB's entry of a page from which it has translated, so
 * that writes there are noticed. Whether such an entry is found again where
 * those live that were pushed out must not depend on that mark, which depends
 * on what it remembers: else the page is walked, and its A bit set, or not.
 * Options: rounds=N (10).
 */
#include "rt.h"

const char guest_name[] = "victims";

enum { PAGES = 12000, STRIDE = 2048, GROUP = 5, STEPS = 3000 };

static u8 *code_of(u32 i)
{
    return RT_ARENA + i * PAGE + 64;
}

/* MOV to EAX; RET. */
static void write_code(u32 i)
{
    u8 *p = code_of(i);

    p[0] = 0xb8;
    p[1] = i;
    p[2] = i >> 8;
    p[3] = 0;
    p[4] = 0;
    p[5] = 0xc3;
}

static u32 NOINLINE run_code(u32 i)
{
    u32 eax;

    __asm__ volatile("call *%1" : "=a"(eax) : "r"(code_of(i)) : "memory");
    return eax;
}

/* One of those that share a place in the TLB. */
static u32 choose(u32 *seed, u32 place)
{
    return (place + prng(seed) % GROUP * STRIDE) % PAGES;
}

static void one_round(u32 *seed)
{
    for (u32 k = 0; k < STEPS; k++) {
        u32 place = prng(seed) % STRIDE;

        for (u32 n = 0; n < 8; n++) {
            u32 i = choose(seed, place);
            volatile u32 *pte = rt_pte((u32)code_of(i));

            if (prng(seed) & 1) {
                fold(run_code(i));
            } else {
                *(volatile u8 *)(code_of(i) + 2048) = n;
            }
            i = choose(seed, place);
            pte = rt_pte((u32)code_of(i));
            fold(*pte & PTE_A);
            *pte &= ~(u32)PTE_A;
        }
    }
}

void main(void)
{
    u32 rounds = option("rounds", 10), seed = 3;

    for (u32 i = 0; i < PAGES; i++) {
        write_code(i);
    }
    rt_paging();
    rt_timer(1000);
    for (u32 r = 0; r < rounds; r++) {
        one_round(&seed);
    }
}
