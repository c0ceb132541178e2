/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes of the vCPUs of a recording by others: their state is an input then.
 *
 * Context: the BQL is held.
 */
#ifndef TT_RECORD_VCPUS_H
#define TT_RECORD_VCPUS_H

/* All forgotten, as before a recording. */
void tt_record_vcpus_forget(void);
/* Their state goes into the log; what was done to them before does not count. */
void tt_record_vcpus_begin(void);
/* The vCPU was reset; in cpu_exec or outside. */
void tt_record_vcpus_was_reset(CPUState *cpu);
/* Before guest code runs: logs the state of those that are not as they were. */
void tt_record_vcpus_resync(void);

/* The token is given away: from now on others may change them. */
void tt_record_release(void);
/* The TLB is empty here, in every replay too: logs the vCPU's state, so that a
 * replay can begin at this position. The vCPU is outside cpu_exec; the position
 * moves by one. */
void tt_record_renew(void);
/* The vCPU is as the log has it, whatever was done to it; the token is given away.
 */
void tt_record_took_note(void);

#endif
