/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "twice": one page of code at two virtual addresses, as a library has in two
 * processes. Options: first=N (3000), second=N (500): how often it runs at each.
 */
#include "rt.h"

const char guest_name[] = "twice";

enum { FRAME_MASK = 0xfffff000 };

void main(void)
{
    /* lea 3(%eax,%eax), %eax; ret: with the argument in EAX */
    static const u8 code[] = { 0x8d, 0x44, 0x00, 0x03, 0xc3 };
    u8 *first = RT_ARENA, *second = RT_ARENA + 16 * PAGE;
    u32 n_first = option("first", 3000), n_second = option("second", 500), v = 1;

    rt_paging();
    memcpy(first, code, sizeof code);
    *rt_pte((u32)second) = (*rt_pte((u32)first) & FRAME_MASK) |
        (*rt_pte((u32)second) & ~FRAME_MASK);
    __asm__ volatile("mov %%cr3, %%eax\n\t" "mov %%eax, %%cr3" ::: "eax", "memory");
    say("first", (u32)first);
    say("second", (u32)second);
    put_char('\n');
    for (u32 i = 0; i < n_first; i++) {
        __asm__ volatile("call *%1" : "+a"(v) : "r"(first) : "cc", "memory");
    }
    for (u32 i = 0; i < n_second; i++) {
        __asm__ volatile("call *%1" : "+a"(v) : "r"(second) : "cc", "memory");
    }
    fold(v);
}
