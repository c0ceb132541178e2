/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of several vCPUs runs next while they are recorded, and for how long.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_SCHEDULE_H
#define TT_SCHEDULE_H

void tt_schedule_start(void);            /* a recording begins */
bool tt_schedule_choose(void);             /* which vCPU runs next; false: none can */
uint64_t tt_schedule_end(void);            /* the position at which others are due */
void tt_schedule_note(bool yielded);       /* cpu_exec was left: for others? */

/* While recording: which vCPU runs when is left to chance. */
extern bool tt_schedule_chaos;

#endif
