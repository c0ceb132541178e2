/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "smc": code that changes itself, near and far, under the timer.
 *
 * The next instruction, one earlier in the loop, one after a page boundary,
 * counters that lie beside code, and string stores over code that runs.
 * Every part computes what it must return, so that a stale translation is
 * found in the recording as well. Option: rounds=N (400).
 */
#include "rt.h"

const char guest_name[] = "smc";

u32 smc_next(u32 times);
u32 smc_earlier(u32 times);
u32 smc_string(u32 times);
extern u8 smc_beside[], smc_beside_end[];

static u8 pages[3 * PAGE] ALIGNED(4096);

/* mov $imm32, %eax; ret with the immediate on the next page */
static void across_pages(u32 r)
{
    u8 *code = pages + PAGE - 1 - r % 4;

    code[0] = 0xb8;
    code[5] = 0xc3;
    for (u32 i = 0; i < 10; i++) {
        u32 value = r * 0x9e3779b9u + i, got;

        code[1] = (u8)value;
        code[2] = (u8)(value >> 8);
        code[3] = (u8)(value >> 16);
        code[4] = (u8)(value >> 24);
        got = ((u32 (*)(void))code)();
        if (got != value) {
            rt_fail("stale code across pages", got);
        }
        fold(got);
    }
}

/* A loop that keeps its counter a few bytes after its own code. */
static void beside_code(u32 r)
{
    u8 *code = pages + 2 * PAGE + 64 * (r % 16);
    u32 got;

    memcpy(code, smc_beside, (u32)(smc_beside_end - smc_beside));
    got = ((u32 (*)(u32))code)(r % 50 + 1);
    fold(got);
    if (got != r % 50 + 1) {
        rt_fail("wrong count beside code", got);
    }
}

void main(void)
{
    u32 rounds = option("rounds", 400);

    rt_timer(4000);
    for (u32 r = 0; r < rounds; r++) {
        fold(smc_next(100));
        fold(smc_earlier(100));
        fold(smc_string(100));
        across_pages(r);
        beside_code(r);
    }
}
