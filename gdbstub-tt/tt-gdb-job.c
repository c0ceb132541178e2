/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The job of gdb's next resumption, in place of running the VM: a packet of
 * scripts/tt-gdb.py has set it before. The stop is reported as that of a single step.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-vcpus.h"
#include "timeline/tt-timeline.h"
#include "tt-gdb-job-int.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "system/cpus.h"
#include "system/runstate.h"

static struct {
    TtGdbBegin *begin;          /* NULL: there is none */
    int reason;                 /* how the last movement for gdb ended */
    void (*on_end)(void);
} job;

void tt_gdb_post_job(TtGdbBegin *begin)
{
    job.begin = begin;
}

void tt_gdb_on_job_end(void (*on_end)(void))
{
    job.on_end = on_end;
}

int tt_gdb_job_reason(void)
{
    return job.reason;
}

void tt_gdb_note_end(int reason)
{
    job.reason = reason;
}

void tt_gdb_break_job(void)
{
    job.begin = NULL;
    job.reason = TT_STOP_INTERRUPTED;
}

/* The stop is reported as that of a single step. */
static void job_done(void *opaque, uint64_t pos, int reason)
{
    job.on_end();
    job.reason = reason;
    tt_vcpus_stop_for_gdb();
}

bool tt_gdb_run_job(void)
{
    TtGdbBegin *begin = job.begin;
    Error *err = NULL;
    bool begun;

    job.begin = NULL;
    job.reason = TT_STOP_NONE;
    if (!begin) {
        return false;
    }
    begun = begin(job_done, &err);
    vm_start();
    if (!begun) {               /* it could when gdb asked: seldom */
        error_report_err(err);
        vm_stop(RUN_STATE_PAUSED);
    }
    return true;
}
