/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Monitor commands that are an input of the guest.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_REFUSE_H
#define TT_REFUSE_H

void tt_monitor_refuse_input(bool on);  /* a replay takes none */

#endif
