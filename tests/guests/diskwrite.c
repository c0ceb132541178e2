/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "diskwrite": writes a little to its disk when the host says so.
 *
 * Says "ready" and waits for so many NMIs, then writes to the first IDE disk (1 MiB at
 * least), 4 KiB at a time, at places and with contents that come from the time stamp
 * counter: two VMs that go on from one moment write different things. Says what it wrote
 * and where. Options: nmis=N (0), writes=N (1).
 */
#include "dev.h"

const char guest_name[] = "diskwrite";

enum { SECTORS = PAGE / IDE_SECTOR };

static void write_page(u32 place, u32 what)
{
    u32 words[IDE_SECTOR / 4];

    for (u32 i = 0; i < IDE_SECTOR / 4; i++) {
        words[i] = what;
    }
    for (u32 i = 0; i < SECTORS; i++) {
        ide_write_pio(place * SECTORS + i, words);
    }
}

void main(void)
{
    u32 writes = option("writes", 1), wanted = option("nmis", 0);

    rt_timer(100);
    put_str("ready\n");
    while (rt_nmis < wanted) {
        hlt();
    }
    for (u32 i = 0; i < writes; i++) {
        u32 what = (u32)rdtsc(), place = what * 2654435761u >> 24;

        write_page(place, what);
        say("place", place);
        say("what", what);
        put_char('\n');
    }
}
