/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "panic": works for a while, gets into trouble, and works on.
 *
 * Options: how=N (0) 1: says so to pvpanic, 2: triple fault, 3: a line on the
 * console as Linux writes it, 4: lets the ib700 watchdog expire, 5: a line that
 * only looks like one; ticks=N (100) of the timer before it; rounds=N (0) of
 * work after it, 0: without end.
 */
#include "rt.h"

const char guest_name[] = "panic";

enum { PVPANIC = 0x505, PVPANIC_PANICKED = 1, IB700 = 0x443, AT_ONCE = 15 };

static volatile u32 pages[128][1024];

/* Writes RAM and takes interrupts. */
static void work(u32 ticks)
{
    u32 until = rt_ticks + ticks, n = 0;

    while ((int)(until - rt_ticks) > 0) {
        pages[n % 128][n / 128 % 1024] += n ^ (u32)rt_irq_sum;
        n += 7;
    }
    fold(n);
}

static void trouble(u32 how)
{
    static const u8 no_idt[6];

    switch (how) {
    case 1:
        outb(PVPANIC, PVPANIC_PANICKED);
        break;
    case 2:
        __asm__ volatile("lidt %0\n\tint3" :: "m"(no_idt));
        break;
    case 3:
        put_str("[    1.234567] Kernel panic - not syncing: by request\r\n");
        put_str("[    1.234999] BUG: the same once more\r\n");
        break;
    case 4:
        outb(IB700, AT_ONCE);
        break;
    case 5:
        put_str("echo a BUG: is no Oops: when it is read\r\n");
        break;
    }
}

void main(void)
{
    u32 rounds = option("rounds", 0);

    rt_timer(1000);
    put_str("working\n");
    work(option("ticks", 100));
    trouble(option("how", 0));
    put_str("behind it\n");
    for (u32 r = 0; !rounds || r < rounds; r++) {
        work(50);
    }
}
