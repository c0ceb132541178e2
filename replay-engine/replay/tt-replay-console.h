/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's serial console in a replay.
 *
 * Context: the vCPU thread, BQL held.
 */
#ifndef TT_REPLAY_CONSOLE_H
#define TT_REPLAY_CONSOLE_H

/* The guest wrote to @port. A movement, and the past of a recording, show nothing. */
void tt_replay_console(uint32_t port, uint32_t val, unsigned size);

#endif
