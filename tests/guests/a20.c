/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "a20": the A20 gate, by port 92h and by the keyboard controller.
 *
 * With the gate closed, addresses of odd MiB fall on the MiB below. The
 * runtime lies at 2 MiB, so it and the timer go on working then. Option:
 * rounds=N (300).
 */
#include "rt.h"

const char guest_name[] = "a20";

enum { PORT_FAST = 0x92, KBD_DATA = 0x60, KBD = 0x64, KBD_FULL = 2 };

/* Free conventional memory, and the same place one MiB higher. */
static volatile u32 *const low = (u32 *)0x70000;
static volatile u32 *const high = (u32 *)0x170000;

static void kbd_wait(void)
{
    while (inb(KBD) & KBD_FULL) {
    }
}

static void set_by_port(u32 on)
{
    outb(PORT_FAST, (inb(PORT_FAST) & ~3u) | (on ? 2 : 0));
}

static void set_by_keyboard(u32 on)
{
    kbd_wait();
    outb(KBD, 0xd1);
    kbd_wait();
    outb(KBD_DATA, on ? 0xdf : 0xdd);
    kbd_wait();
}

static void check_gate(u32 on, u32 r)
{
    u32 wraps;

    *low = r;
    *high = ~r;
    wraps = *low == ~r;
    fold(wraps);
    fold(*low);
    fold(*high);
    if (wraps == on) {
        rt_fail("wrong gate", on);
    }
}

void main(void)
{
    u32 rounds = option("rounds", 300);

    rt_timer(2000);
    for (u32 r = 0; r < rounds; r++) {
        void (*set)(u32) = (r & 1) ? set_by_keyboard : set_by_port;

        set(0);
        check_gate(0, r);
        set(1);
        check_gate(1, r);
    }
    /* The end comes with the gate closed: the last digest shows it. */
    set_by_port(0);
    check_gate(0, rounds);
}
