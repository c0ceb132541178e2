/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For the program that this is preloaded into, a short sleep takes 0.3 s: a thread that
 * waits for something in such steps comes late, as on a machine with much other work. */
#include <unistd.h>

void g_usleep(unsigned long us);

void g_usleep(unsigned long us)
{
    usleep(us < 300000 ? 300000 : us);
}
