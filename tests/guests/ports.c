/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest "ports": a long log, quickly. It reads a port again and again, and says now and
 * then how far it is. Options: reads=N (1000).
 */
#include "rt.h"

const char guest_name[] = "ports";

enum { LINES = 10, PORT = 0x61 };       /* its bits 4 and 5 follow the timer */

void main(void)
{
    u32 reads = option("reads", 1000);

    for (u32 line = 0; line < LINES; line++) {
        for (u32 i = 0; i < reads / LINES; i++) {
            fold(inb(PORT));
        }
        say("line", line);
        put_char('\n');
    }
}
