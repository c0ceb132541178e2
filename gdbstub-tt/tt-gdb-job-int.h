/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The job of gdb's next resumption, in place of running the VM.
 *
 * Context: the BQL is held; main thread, but for the end of a job.
 */
#ifndef TT_GDB_JOB_INT_H
#define TT_GDB_JOB_INT_H

#include "travel/tt-travel.h"

/* Begins a movement, which calls @done. False: *errp says why it cannot. */
typedef bool TtGdbBegin(TtTravelDone *done, Error **errp);

void tt_gdb_post_job(TtGdbBegin *begin);
/* Once, at start: called in the vCPU thread whenever a job is over. */
void tt_gdb_on_job_end(void (*on_end)(void));
/* False: none was posted. */
bool tt_gdb_run_job(void);
/* The user thought better of it. */
void tt_gdb_break_job(void);
/* How the last movement for gdb ended, a job or one backwards: a TtStopReason. */
int tt_gdb_job_reason(void);
/* One backwards has ended. */
void tt_gdb_note_end(int reason);

#endif
