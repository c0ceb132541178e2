/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "abits": accessed and dirty bits without flushing.
 *
 * A page table entry gets its A bit when the TLB misses, so the bits show
 * which pages the TLB had dropped: its size, its hash, every flush. The set
 * of pages is at times smaller and at times larger than 4096, and CR3 is
 * reloaded now and then. Options: rounds=N (40).
 */
#include "rt.h"

const char guest_name[] = "abits";

enum { ARENA_PAGES = 12000, TOUCHES = 6000 };

static u32 round_pages(u32 r)
{
    static const u32 sizes[] = { 200, 900, 3000, 4096, 5000, 8200, 12000 };

    return sizes[r % (sizeof sizes / sizeof sizes[0])];
}

static void clear_bits(u32 pages)
{
    for (u32 i = 0; i < pages; i++) {
        *rt_pte((u32)RT_ARENA + i * PAGE) &= ~(u32)(PTE_A | PTE_D);
    }
}

static void fold_bits(u32 pages)
{
    u32 set = 0, order = 0;

    for (u32 i = 0; i < pages; i++) {
        u32 pte = *rt_pte((u32)RT_ARENA + i * PAGE);
        set += (pte & PTE_A) ? 1 : 0;
        set += (pte & PTE_D) ? 65536 : 0;
        order = order * 31 + (pte & (PTE_A | PTE_D));
    }
    fold(set);
    fold(order);
}

void main(void)
{
    u32 rounds = option("rounds", 40), seed = 99;

    rt_paging();
    rt_timer(1000);
    for (u32 r = 0; r < rounds; r++) {
        u32 pages = round_pages(r);

        if (r % 5 == 0) {
            flush_tlb();
        }
        clear_bits(pages);
        for (u32 i = 0; i < TOUCHES; i++) {
            volatile u8 *p = RT_ARENA + prng(&seed) % pages * PAGE;
            if (i & 1) {
                fold(*p);
            } else {
                *p += 1;
            }
        }
        fold_bits(pages);
        if (r % 10 == 9) {
            say64("sum", rt_sum);
            put_char('\n');
        }
    }
}
