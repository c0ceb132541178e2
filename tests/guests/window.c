/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "window": timer interrupts that have to wait for an IRET.
 *
 * Most of the time goes by in handlers behind interrupt gates, so most ticks come when
 * IRET turns interrupts on again. One IRET leads to a page of code that is missing: the
 * interrupt comes before the fault of the fetch. The fault's own IRET sets the resume
 * flag: it is in the frame of the interrupt that comes before the instruction.
 *
 * And REP BSF, which compilers write for any processor: one that has TZCNT executes that,
 * and the flags are others. Options: rounds=N (400), spins=N (3000).
 */
#include "rt.h"

const char guest_name[] = "window";

enum { PAGES = 8, BREAKPOINT = 3, PAGE_FAULT = 14 };

static u32 spins;
static volatile u32 faults, away;

static u8 *code_of(u32 i)
{
    return RT_ARENA + i * PAGE + 64 * i;
}

static void wait(void)
{
    for (volatile u32 i = 0; i < spins; i++) {
    }
}

static void on_breakpoint(struct rt_frame *f)
{
    wait();
    f->ecx = f->eip;            /* the code jumps back there */
    f->eip = away;
}

static void on_fault(struct rt_frame *f)
{
    u32 va = read_cr2();

    wait();
    faults++;
    fold(va);
    fold(f->eip);
    if (va != away || f->eip != away) {
        rt_fail("a fetch must fault at", away);
    }
    *rt_pte(va) |= PTE_P;
}

static u32 NOINLINE go_away(u32 i, u32 eax)
{
    away = (u32)code_of(i);
    *rt_pte(away) &= ~(u32)PTE_P;
    invlpg(away);
    __asm__ volatile("int3" : "+a"(eax) :: "ecx", "cc", "memory");
    return eax;
}

static void count_zeros(u32 v)
{
    u32 n, flags;

    __asm__ volatile("rep bsf %2, %0\n\t" "pushf\n\t" "pop %1"
                     : "=&r"(n), "=r"(flags) : "r"(v) : "cc");
    fold(n);
    fold(flags & RT_EFLAGS_SEEN);
}

void main(void)
{
    static const u8 code[] = { 0x40, 0xd1, 0xc0, 0xff, 0xe1 };  /* inc, rol, jmp *%ecx */
    u32 rounds = option("rounds", 400), eax = 1;

    spins = option("spins", 3000);
    rt_paging();
    for (u32 i = 0; i < PAGES; i++) {
        memcpy(code_of(i), code, sizeof code);
    }
    rt_on(BREAKPOINT, on_breakpoint, GATE_INTR);
    rt_on(PAGE_FAULT, on_fault, GATE_INTR);
    rt_timer(4000);
    for (u32 r = 0; r < rounds; r++) {
        eax = go_away(r % PAGES, eax + r);
        fold(eax);
        count_zeros(eax | 0x100);
    }
    rt_timer_off();
    if (faults != rounds) {
        rt_fail("a page that is missing must fault once, faults", faults);
    }
    say("faults", faults);
}
