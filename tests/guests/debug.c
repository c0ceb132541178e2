/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "debug": the guest's own debugger: single steps by the trap flag,
 * execution breakpoints and watchpoints in the debug registers, and ICEBP,
 * with #DB through a trap gate under the fast timer. Watchpoints make an
 * emulator run single instructions in blocks of their own. Options:
 * rounds=N (150), parts=N (15: 1 watchpoints, 2 single steps, 4 ICEBP,
 * 8 execution breakpoints; 16 watchpoints in code that runs once, for an emulator
 * whose buffer of translated code is small; 32 a watchpoint in what a string instruction
 * writes), quiet=1: no timer.
 */
#include "rt.h"

const char guest_name[] = "debug";


/* Register 0: execution; register 1: writes of 4 bytes; both exact. */
enum { DR7_BREAK = 0x701, DR7_WATCH = 0xd00704 };

extern u8 debug_here[];
u32 debug_work(u32 times, volatile u32 *word);

/* Part 16: pieces of code, and where in each the trap must come. */
enum { FRESH = 12000, FRESH_BYTES = 64, FRESH_TRAP = 10 };

static volatile u32 hits, watched, trap_at;
static u8 strip[64] ALIGNED(64);
static u8 fresh[FRESH][FRESH_BYTES] ALIGNED(4096);

static void on_debug(struct rt_frame *f)
{
    u32 dr6;

    __asm__ volatile("mov %%dr6, %0" : "=r"(dr6));
    __asm__ volatile("mov %0, %%dr6" :: "r"(0));
    hits++;
    fold(dr6);
    fold(f->eip);
    fold(f->eax);
    if (trap_at && f->eip != trap_at) {
        say("trap at", f->eip);
        rt_fail("the watchpoint's trap must come at", trap_at);
    }
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

/* nops, a store to the watched word, increments, a return. */
static void write_fresh(u8 *code)
{
    memset(code, 0x90, FRESH_TRAP - 5);
    code[FRESH_TRAP - 5] = 0xa3;                /* mov %eax, watched */
    *(u32 *)&code[FRESH_TRAP - 4] = (u32)&watched;
    memset(code + FRESH_TRAP, 0x41, 20);        /* inc %ecx */
    code[FRESH_TRAP + 20] = 0xc3;
}

static void watch_in_fresh_code(void)
{
    u32 before = hits;

    for (u32 i = 0; i < FRESH; i++) {
        write_fresh(fresh[i]);
    }
    __asm__ volatile("mov %0, %%dr1" :: "r"(&watched));
    __asm__ volatile("mov %0, %%dr7" :: "r"(DR7_WATCH));
    for (u32 i = 0; i < FRESH; i++) {
        trap_at = (u32)fresh[i] + FRESH_TRAP;
        __asm__ volatile("call *%0" :: "r"(fresh[i]) : "ecx", "cc", "memory");
    }
    __asm__ volatile("mov %0, %%dr7" :: "r"(0));
    trap_at = 0;
    if (hits - before != FRESH) {
        rt_fail("watchpoints in fresh code missed", hits - before);
    }
}

static void watch_in_strip(u32 r)
{
    u8 *d = strip;
    u32 n = sizeof(strip);

    __asm__ volatile("mov %0, %%dr1" :: "r"(strip + 32));
    __asm__ volatile("mov %0, %%dr7" :: "r"(DR7_WATCH));
    __asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(r + 1) : "memory");
    __asm__ volatile("mov %0, %%dr7" :: "r"(0));
}

void main(void)
{
    u32 rounds = option("rounds", 150), parts = option("parts", 15);

    rt_on(1, on_debug, GATE_TRAP);
    if (!option("quiet", 0)) {
        rt_timer(4000);
    }
    if (parts & 16) {
        watch_in_fresh_code();
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
        if (parts & 32) {
            watch_in_strip(r);
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
