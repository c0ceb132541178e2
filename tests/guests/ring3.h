/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * For guests with user code: segments for it, a task, and a stack for each ring.
 */
#ifndef RING3_H
#define RING3_H

#include "rt.h"

enum { USER_CODE = 0x18, USER_DATA = 0x20, TASK = 0x28, RING3 = 3, KERNEL_CODE = 8,
       KERNEL_DATA = 0x10 };

static u32 tss[26];
static u8 kernel_stack[4096] ALIGNED(16), user_stack[4096] ALIGNED(16);
static u64 gdt[6] = { 0, 0x00cf9a000000ffff, 0x00cf92000000ffff, 0x00cffa000000ffff,
                      0x00cff2000000ffff };

static void load_tables(void)
{
    struct { u16 limit; u32 base; } __attribute__((packed)) pointer = {
        sizeof gdt - 1, (u32)gdt
    };
    u64 base = (u32)tss;

    tss[1] = (u32)(kernel_stack + sizeof kernel_stack);
    tss[2] = KERNEL_DATA;
    gdt[5] = (sizeof tss - 1) | (base & 0xffffff) << 16 | 0x89ull << 40 |
        (base >> 24) << 56;
    __asm__ volatile("lgdt %0\n\t" "ltr %w1" :: "m"(pointer), "r"(TASK) : "memory");
}

#endif
