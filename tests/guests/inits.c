/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "inits": INIT comes twice, while the vCPU runs and while it is halted. The firmware
 * makes a reset of it. The boots are counted in the clock's battery-backed memory. Runs
 * without -no-reboot.
 */
#include "rt.h"

const char guest_name[] = "inits";

enum { CMOS_INDEX = 0x70, CMOS_DATA = 0x71, BOOTS_AT = 0x6d, MARK_AT = 0x6e, MARK = 0xa9,
       APIC_ICR = 0xfee00300, IOAPIC = 0xfec00000, PIT_PIN = 2, INIT = 0x500,
       ASSERT = 0x4000, ONCE = 0x30 };

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

static void NOINLINE write(u32 at, u32 v)
{
    *(volatile u32 *)at = v;
}

static void init_self(void)
{
    write(APIC_ICR + 0x10, 0);
    write(APIC_ICR, INIT | ASSERT);
}

static void ioapic(u32 reg, u32 v)
{
    write(IOAPIC, reg);
    write(IOAPIC + 0x10, v);
}

/* The timer's interrupt is INIT, too: by itself that does not wake a vCPU of QEMU's. */
static void init_by_timer(void)
{
    cli();
    ioapic(0x11 + 2 * PIT_PIN, 0);
    ioapic(0x10 + 2 * PIT_PIN, INIT);
    outb(0x43, ONCE);
    outb(0x40, 0);
    outb(0x40, 0x40);
    sti();
}

void main(void)
{
    u32 boots = cmos_read(MARK_AT) == MARK ? cmos_read(BOOTS_AT) : 0;

    rt_timer(1000);
    for (u32 i = 0; i < 5; i++) {
        hlt();
    }
    say("boots", boots);
    fold(boots);
    if (boots == 2) {
        return;
    }
    cmos_write(BOOTS_AT, boots + 1);
    cmos_write(MARK_AT, MARK);
    put_char('\n');
    if (boots) {
        init_by_timer();
    } else {
        init_self();
    }
    for (;;) {
        __asm__ volatile("mov $0x51, %%eax\n\t" "hlt" ::: "eax");
    }
}
