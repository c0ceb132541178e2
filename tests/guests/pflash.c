/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "pflash": programs and erases flash memory, reads it back as memory,
 * and executes code from it.
 *
 * The flash lies below the firmware and is plain memory until a command puts it
 * into command mode. Options: rounds=N (40); panics=1: says before each that it
 * panics. Needs a second flash of 64 KiB below a firmware of 256 KiB.
 */
#include "rt.h"

const char guest_name[] = "pflash";

enum { BASE = 0xfffb0000, SECTOR = 4096, PROGRAM = 0x40, ERASE = 0x20,
       CONFIRM = 0xd0, READ_STATUS = 0x70, READ_ARRAY = 0xff, READY = 0x80 };

static void command(u32 at, u8 first, u8 second)
{
    volatile u8 *flash = (volatile u8 *)(BASE + at);

    *flash = first;
    *flash = second;
    *flash = READ_STATUS;
    while (!(*flash & READY)) {
    }
    *flash = READ_ARRAY;
}

/* mov $r, %eax; ret - at the start of a sector. */
static void write_code(u32 at, u32 r)
{
    u8 code[6] = { 0xb8, r, r >> 8, r >> 16, r >> 24, 0xc3 };

    command(at, ERASE, CONFIRM);
    for (u32 i = 0; i < sizeof(code); i++) {
        command(at + i, PROGRAM, code[i]);
    }
}

void main(void)
{
    u32 rounds = option("rounds", 40);

    rt_timer(2000);
    for (u32 r = 0; r < rounds; r++) {
        u32 at = (r * 7 % 16) * SECTOR, seen;

        if (option("panics", 0)) {
            put_str("Kernel panic - not syncing: by request\r\n");
        }
        write_code(at, r * 2654435761u);
        seen = ((u32 (*)(void))(BASE + at))();
        fold(seen);
        for (u32 i = 0; i < 64; i += 4) {
            fold(*(volatile u32 *)(BASE + at + i));
        }
        if (seen != r * 2654435761u) {
            rt_fail("flash gives", seen);
        }
    }
}
