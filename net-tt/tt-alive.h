/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is the host of a peer still there? What the sockets of links are asked, by a netdev, by a
 * hub and by tt group live --exact. TCP alone would go on for a quarter of an hour.
 *
 * Context: any thread, no state, never blocks. On a Unix socket nothing happens: there the
 * kernel tells at once. Errors: none; a socket that cannot be asked counts as alive.
 */
#ifndef TT_ALIVE_H
#define TT_ALIVE_H

#include <stdbool.h>

/* How often to ask tt_alive_is_silent, in seconds. */
#define TT_ALIVE_ASK_S 10

/* From now on a host that is gone is noticed within half a minute, unless bytes are on their
 * way to it. A process that stands still stays. */
void tt_alive_keep(int fd);
/* Do bytes wait for it, or were sent again and again, and its host has said nothing for 40 s,
 * so that it is gone? A peer that does not read is not silent: its host is there, and Linux
 * answers (from 6.6 on always). */
bool tt_alive_is_silent(int fd);
/* Has whoever listened at the Unix socket @path gone? Then a connection is refused. One whose
 * queue is full is in use, and not waited for. */
bool tt_alive_is_left(const char *path);

#endif
