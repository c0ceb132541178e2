/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "debug": the guest's own debugger: single steps by the trap flag,
 * execution breakpoints and watchpoints in the debug registers, and ICEBP,
 * with #DB through a trap gate under the fast timer. Watchpoints make an
 * emulator run single instructions in blocks of their own. Options:
 * rounds=N (150), parts=N (15: 1 watchpoints, 2 single steps, 4 ICEBP,
 * 8 execution breakpoints), quiet=1: no timer.
 */
#include "rt.h"

const char guest_name[] = "debug";


/* Register 0: execution; register 1: writes of 4 bytes; both exact. */
enum { DR7_BREAK = 0x701, DR7_WATCH = 0xd00704 };

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
    f->eflags |= RT_EFLAGS_RF;     /* go past an execution breakpoint */
}

static void with_debug_registers(u32 control)
{
    __asm__ volatile("mov %0, %%dr0" :: "r"(debug_here));
    __asm__ volatile("mov %0, %%dr1" :: "r"(&watched));
    __asm__ volatile("mov %0, %%dr7" :: "r"(control));
    fold(debug_work(30, &watched));
    __asm__ volatile("mov %0, %%dr7" :: "r"(0));
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
    u32 rounds = option("rounds", 150), parts = option("parts", 15);

    rt_on(1, on_debug, GATE_TRAP);
    if (!option("quiet", 0)) {
        rt_timer(4000);
    }
    for (u32 r = 0; r < rounds; r++) {
        if (parts & 1) {
            with_debug_registers(r & 1 ? DR7_WATCH : DR7_WATCH | DR7_BREAK);
        }
        if (parts & 8) {
            with_debug_registers(DR7_BREAK);
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
    if (parts == 15 && hits < rounds * 10) {
        rt_fail("too few debug exceptions", hits);
    }
}
