/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "crossing": instructions that lie on two pages.
 *
 * An emulator looks the second page up when it translates or searches the
 * block, which may be before it knows that the instruction will run: an
 * interrupt that is taken there instead then finds the page's A bit set, and
 * its entry in the TLB. Thousands of such instructions are called through a
 * pointer; the timer's handler folds the A bit of the page that the
 * interrupted one would have needed. Options: rounds=N (20), hz=N (8000).
 */
#include "rt.h"

const char guest_name[] = "crossing";

enum { PAGES = 8000, CALLS = 20000, IRQ0 = 0x20 };

static volatile u64 seen = 1;
static volatile u32 met;

/* MOV to EAX: two bytes before the end of page i, three after it; RET. */
static u8 *code_of(u32 i)
{
    return RT_ARENA + (i + 1) * PAGE - 2;
}

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

static void on_tick(struct rt_frame *f)
{
    u32 at = f->eip - (u32)RT_ARENA;

    rt_ticks++;
    rt_fold_frame(f);
    if (at < PAGES * PAGE && at % PAGE == PAGE - 2) {
        met++;
        seen = (seen ^ (*rt_pte(f->eip + PAGE) & PTE_A)) * 0x100000001b3ull;
    }
}

static void one_round(u32 *seed)
{
    for (u32 k = 0; k < CALLS; k++) {
        u32 i = prng(seed) % PAGES;

        *rt_pte((u32)code_of(i) + PAGE) &= ~(u32)PTE_A;
        fold(run_code(i));
    }
}

/* What runs for the first time sets the A bits of both pages. */
static void check_first_run(u32 i)
{
    u32 at = (u32)code_of(i);

    fold(run_code(i));
    if (!(*rt_pte(at) & *rt_pte(at + PAGE) & PTE_A)) {
        rt_fail("no A bit", at);
    }
}

void main(void)
{
    u32 rounds = option("rounds", 20), seed = 5;

    for (u32 i = 0; i < PAGES; i++) {
        write_code(i);
    }
    rt_paging();
    for (u32 i = 0; i < 64; i += 2) {
        check_first_run(i);
    }
    rt_timer(option("hz", 8000));
    rt_on(IRQ0, on_tick, GATE_INTR);
    for (u32 r = 0; r < rounds; r++) {
        one_round(&seed);
    }
    rt_timer_off();
    say("met", met);
    say64("seen", seen);
}
