/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hook of the main loop (util/main-loop.c, which tools have as well).
 */
#ifndef TT_HOOKS_POLL_H
#define TT_HOOKS_POLL_H

#include <glib.h>

/* Waits for the descriptors of the main loop, as qemu_poll_ns, which it is until
 * accel-tt/tt-poll.h has something to do. No lock is held. */
extern int (*tt_main_loop_poll)(GPollFD *fds, guint n, int64_t timeout_ns);

#endif
