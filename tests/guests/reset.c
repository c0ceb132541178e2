/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "reset": three resets, each by another way, then the end.
 *
 * The boots are counted in the clock's battery-backed memory. A sum is kept
 * in RAM over the resets and printed at the end. Runs without -no-reboot.
 */
#include "rt.h"

const char guest_name[] = "reset";

enum { CMOS_INDEX = 0x70, CMOS_DATA = 0x71, BOOTS_AT = 0x6d, MARK_AT = 0x6e,
       MARK = 0xa7 };

/* Kept over resets: nothing else writes here. */
static volatile u32 *const kept = (u32 *)(48 << 20);

static u32 cmos_read(u32 at)
{
    outb(CMOS_INDEX, at);
    return inb(CMOS_DATA);
}

static void cmos_write(u32 at, u32 v)
{
    outb(CMOS_INDEX, at);
    outb(CMOS_DATA, v);
}

static void reset_by_keyboard(void)
{
    outb(0x64, 0xfe);
}

static void reset_by_port_cf9(void)
{
    outb(0xcf9, 2);
    outb(0xcf9, 6);
}

static void reset_by_triple_fault(void)
{
    static const u8 no_idt[6];

    __asm__ volatile("lidt %0\n\tint3" :: "m"(no_idt));
}

void main(void)
{
    static void (*const ways[])(void) = {
        reset_by_keyboard, reset_by_port_cf9, reset_by_triple_fault,
    };
    u32 boots = cmos_read(MARK_AT) == MARK ? cmos_read(BOOTS_AT) : 0;

    rt_timer(1000);
    for (u32 i = 0; i < 20; i++) {
        hlt();
    }
    say("boots", boots);
    put_char('\n');
    cmos_write(MARK_AT, MARK);
    cmos_write(BOOTS_AT, boots + 1);
    fold(boots ? kept[0] : 0);
    fold((u32)rt_irq_sum);
    kept[0] = (u32)rt_sum;
    if (boots < sizeof ways / sizeof ways[0]) {
        ways[boots]();
        for (;;) {
            hlt();
        }
    }
    fold(kept[0]);
}
