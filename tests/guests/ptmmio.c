/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "ptmmio": a page table in a device's memory. VGA's, one plane of it, holds
 * bytes as RAM does, but each access is one to a device; the CPU reads the entries
 * there, and sets the accessed and the dirty bit. Option: rounds=N (40).
 */
#include "rt.h"

const char guest_name[] = "ptmmio";

enum { TABLE = 0xa0000, MAPPED_AT = 0x40000000, ENTRIES = 16 };

static void set(u32 port, u32 index, u32 v)
{
    outb(port, index);
    outb(port + 1, v);
}

/* Plane 0 of the card at A0000h: what is written there is read back. */
static void use_plane(void)
{
    set(0x3c4, 2, 1);           /* write to plane 0 */
    set(0x3c4, 4, 6);           /* neither odd and even, nor four in a chain */
    for (u32 i = 0; i < 8; i++) {
        set(0x3ce, i, 0);       /* read plane 0, write what comes */
    }
    set(0x3ce, 6, 5);           /* 64 KiB at A0000h */
    set(0x3ce, 8, 0xff);        /* all bits */
}

void main(void)
{
    u32 rounds = option("rounds", 40), dir;
    volatile u32 *table = (volatile u32 *)TABLE;

    use_plane();
    rt_paging();
    __asm__ volatile("mov %%cr3, %0" : "=r"(dir));
    ((volatile u32 *)dir)[MAPPED_AT >> 22] = TABLE | PTE_P | PTE_W;
    flush_tlb();
    rt_timer(500);
    for (u32 r = 0; r < rounds; r++) {
        for (u32 i = 0; i < ENTRIES; i++) {
            volatile u32 *word = (volatile u32 *)(MAPPED_AT + i * PAGE + r % 64 * 4);

            table[i] = (u32)(RT_ARENA + i * PAGE) | PTE_P | PTE_W;
            invlpg(MAPPED_AT + i * PAGE);
            fold(*word);
            fold(table[i]);
            if (!(table[i] & PTE_A) || table[i] & PTE_D) {
                rt_fail("after a read", table[i]);
            }
            *word = r * 77 + i;
            fold(table[i]);
            if (!(table[i] & PTE_D)) {
                rt_fail("after a write", table[i]);
            }
        }
    }
    say("pages", rounds * ENTRIES);
}
