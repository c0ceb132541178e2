/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vCPU's thread: its turns, where each of them ends, and where it is.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_VCPU_H
#define TT_VCPU_H

#include "qemu/notify.h"

void tt_vcpu_arm(CPUState *cpu);        /* budget up to the next stop */
/* tt_mode has changed and the vCPU is stopped: nothing that was made for the
 * mode before is used again. */
void tt_vcpu_mode_changed(void);
void tt_vcpu_wake(void);                /* look at what there is to do */
void tt_vcpu_plan_step(void);           /* another vCPU's turn has come */
bool tt_vcpu_is_ours(void);             /* its thread is in tt_vcpu_loop */

/* One turn, and the work of others; the thread of a backend calls it in a loop. */
void tt_vcpu_round(void);
void tt_vcpu_force_rcu(Notifier *notify, void *data);
/* In guest code: what has passed is added to tt_now.pos. */
void tt_vcpu_count(CPUState *cpu);
/* Ends a turn from inside an instruction; does not return. Replay. */
void G_NORETURN tt_vcpu_leave(CPUState *cpu);
/* After a sync point: the vCPU asks anew for the code where it stands. */
void tt_vcpu_fetch_again(CPUState *cpu);

#endif
