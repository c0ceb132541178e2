/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stops the VM at a position, with a reason.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_STOP_H
#define TT_STOP_H

/* The VM stands at tt_now.pos; @reason is a TtStopReason. vCPU thread. */
void tt_stop_vm(int reason);

/* The process ends when the replay comes to an end. */
extern bool tt_at_end_exit;

#endif
