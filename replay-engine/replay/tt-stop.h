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
/* The log is at its end, and the vCPU stands there: the VM stops, or the movement
 * does. vCPU thread. */
void tt_stop_at_end(void);

/* The process ends when the replay comes to an end. */
extern bool tt_at_end_exit;

#endif
