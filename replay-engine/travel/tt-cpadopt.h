/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder's checkpoints in a replay: what is asked of them at its start.
 *
 * Context: main thread, before the replay begins.
 */
#ifndef TT_CPADOPT_H
#define TT_CPADOPT_H

/* Somebody compares the start of the run page by page anyway, and says how damage is
 * told: the start is taken over unread. */
extern bool tt_checkpoints_start_is_verified;

#endif
