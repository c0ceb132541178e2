/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The past of the VM that this process records.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_PAST_H
#define TT_PAST_H

/* Before the options. @settle: waits until all checkpoints that were taken are in the
 * run's files; called in the vCPU thread, when the past is about to be shown. */
void tt_past_init(void (*settle)(void));
/*
 * Main thread, not in a coroutine, the VM is stopped. enter: the start of the
 * run is shown, and movements begin there; the present stays as it is. leave: the
 * present is shown again; `cont` goes on recording. One to two tenths of a
 * second, and as much host memory again as the guest has RAM.
 */
bool tt_past_enter(Error **errp);
void tt_past_leave(void);
/* In the past: where the guest stood, before its vCPUs' state was logged for this. */
uint64_t tt_past_stand(void);

#endif
