/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vCPU's thread under TCG: its loop, its budget and where it is.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_VCPU_H
#define TT_VCPU_H

void tt_vcpu_arm(CPUState *cpu);        /* budget up to the next stop */
/* tt_mode has changed and the vCPU is stopped: nothing that was made for the
 * mode before is used again. */
void tt_vcpu_mode_changed(void);
/* Ends a turn of the vCPU from inside a helper; does not return. */
void G_NORETURN tt_vcpu_leave(CPUState *cpu);
void tt_vcpu_wake(void);                /* look at what there is to do */
void tt_vcpu_plan_step(void);           /* another vCPU's turn has come */
bool tt_vcpu_is_ours(void);             /* its thread is in tt_vcpu_loop */

/* The position now: O(1), exact under the BQL. */
uint64_t tt_position(void);

#endif
