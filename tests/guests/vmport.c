/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "vmport": asks a device that answers in general registers, past the value
 * of its IN: the port of VMware's tools. Option: rounds=N (200).
 */
#include "rt.h"

const char guest_name[] = "vmport";

enum { PORT = 0x5658, MAGIC = 0x564d5868, GET_VERSION = 10, GET_UUID = 19,
       GET_HZ = 45 };

static void ask(u32 command)
{
    u32 a = MAGIC, b = 0, c = command, d = PORT;

    __asm__ volatile("inl %%dx, %%eax" : "+a"(a), "+b"(b), "+c"(c), "+d"(d));
    fold(a);
    fold(b);
    fold(c);
    fold(d);
}

void main(void)
{
    u32 rounds = option("rounds", 200);

    rt_timer(2000);
    for (u32 r = 0; r < rounds; r++) {
        ask(GET_VERSION);
        ask(GET_UUID);
        ask(GET_HZ);
    }
}
