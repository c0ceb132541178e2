/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "smap": the kernel may not touch pages of users (CR4.SMAP) but behind STAC.
 *
 * A recording that begins in it must know that. Needs a CPU with SMAP. Options:
 * rounds=N (300), nmis=N (0): go on until so many NMIs came.
 */
#include "rt.h"

const char guest_name[] = "smap";

enum { PAGE_FAULT = 14, USER = 4, CR4_SMAP = 1 << 21 };

static volatile u32 faults;
extern u8 behind[];

static void on_fault(struct rt_frame *f)
{
    faults++;
    fold(read_cr2());
    fold(f->err);
    f->eip = (u32)behind;
}

static void NOINLINE touch(volatile u32 *p)
{
    __asm__ volatile("mov (%0), %%eax\n\t" ".globl behind\n" "behind:" :: "r"(p) : "eax");
}

static u32 NOINLINE touch_allowed(volatile u32 *p)
{
    u32 v;

    __asm__ volatile(".byte 0x0f, 0x01, 0xcb\n\t"       /* stac */
                     "mov (%1), %0\n\t"
                     ".byte 0x0f, 0x01, 0xca\n\t"       /* clac */
                     : "=r"(v) : "r"(p) : "cc");
    return v;
}

void main(void)
{
    u32 rounds = option("rounds", 300), wanted = option("nmis", 0), r;
    volatile u32 *page = (volatile u32 *)RT_ARENA, *dir;
    u32 cr4;

    rt_paging();
    rt_on(PAGE_FAULT, on_fault, GATE_INTR);
    __asm__ volatile("mov %%cr3, %0" : "=r"(dir));
    dir[(u32)page >> 22] |= USER;
    *rt_pte((u32)page) |= USER;
    __asm__ volatile("mov %%cr4, %0" : "=r"(cr4));
    __asm__ volatile("mov %0, %%cr4" :: "r"(cr4 | CR4_SMAP) : "memory");
    put_str("ready\n");
    rt_timer(500);
    for (r = 0; r < rounds || rt_nmis < wanted; r++) {
        touch(page);
        fold(touch_allowed(page));
        if (faults != r + 1) {
            rt_fail("the kernel reads a page of users, faults", faults);
        }
    }
    rt_timer_off();
    fold(faults);
}
