/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "debug": the guest's own debugger: single steps by the trap flag,
 * execution breakpoints and watchpoints in the debug registers, and ICEBP,
 * with #DB through a trap gate under the fast timer. Watchpoints make an
 * emulator run single instructions in blocks of their own. Options:
 * rounds=N (150), parts=N (7: 1 debug registers, 2 single steps, 4 ICEBP),
 * quiet=1: no timer.
 */
#include "rt.h"

const char guest_name[] = "debug";

enum { EFLAGS_TF = 0x100, EFLAGS_RF = 0x10000 };

extern u8 debug_here[];
u32 debug_work(u32 times, volatile u32 *word);

static volatile u32 hits, watched;

static void on_debug(struct rt_frame *f)
{
    u32 dr6;

    __asm__ volatile("mov %%dr6, %0" : "=r"(dr6));
    __asm__ volatile("mov %0, %%dr6" :: "r"(0));
    hits++;
    fold(dr6);
    fold(f->eip);
    fold(f->eax);
    f->eflags |= EFLAGS_RF;     /* go past an execution breakpoint */
}

static void watch(u32 control)
{
    __asm__ volatile("mov %0, %%dr0" :: "r"(debug_here));
    __asm__ volatile("mov %0, %%dr1" :: "r"(&watched));
    __asm__ volatile("mov %0, %%dr7" :: "r"(control));
}

static void single_steps(u32 r)
{
    u32 x = r;

    __asm__ volatile(
        "pushf\n\t"
        "orl $0x100, (%%esp)\n\t"
        "popf\n\t"
        "add $7, %0\n\t"
        "rol $3, %0\n\t"
        "push %0\n\t"
        "pop %0\n\t"
        "mov %%ss, %%ecx\n\t"
        "mov %%ecx, %%ss\n\t"
        "xor $5, %0\n\t"
        "pushf\n\t"
        "andl $~0x100, (%%esp)\n\t"
        "popf\n\t"
        "lea 1(%0), %0\n\t"
        : "+a"(x) :: "ecx", "cc", "memory");
    fold(x);
}

void main(void)
{
    /* len 4, write for 1; execution for 0; both local and exact */
    static const u32 controls[] = { 0x701, 0xd00704, 0xd00705, 0x700 };
    u32 rounds = option("rounds", 150), parts = option("parts", 7);

    rt_on(1, on_debug, GATE_TRAP);
    if (!option("quiet", 0)) {
        rt_timer(4000);
    }
    for (u32 r = 0; r < rounds; r++) {
        if (parts & 1) {
            watch(controls[r % 4]);
            fold(debug_work(30, &watched));
            watch(0);
        }
        if (parts & 2) {
            single_steps(r);
        }
        if (parts & 4) {
            __asm__ volatile(".byte 0xf1");     /* ICEBP */
        }
    }
    fold(hits);
    say("hits", hits);
    if (parts == 7 && hits < rounds * 10) {
        rt_fail("too few debug exceptions", hits);
    }
}
