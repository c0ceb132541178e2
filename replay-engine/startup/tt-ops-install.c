/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the time being: installs what the recorder does for the vCPU.
 */
#include "qemu/osdep.h"
#include "accel-tt/tcg/tt-tcg.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpu.h"
#include "branch/tt-branch.h"
#include "checkpoint/tt-checkpointer.h"
#include "flight/tt-crash.h"
#include "hw-tt/memory/tt-memory.h"
#include "record/tt-record.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "hw/core/cpu.h"

static void begin(void)
{
    Error *err = NULL;

    if (!tt_record_start(&err)) {
        error_reportf_err(err, "-tt record: ");
        exit(1);
    }
}

static void releasing(void)
{
    if (tt_session.live) {
        tt_record_release();
    }
}

static bool record_prepare(void)
{
    if (tt_session.live) {
        tt_record_resync();
    }
    return true;
}

static uint64_t record_limit(void)
{
    return tt_now.check_next;
}

static bool record_boundary(CPUState *cpu)
{
    if (tt_now.pos >= tt_now.sync_next) {
        tt_record_sync_point(cpu);
        tt_vcpu_arm(cpu);
    } else if (tt_now.pos >= tt_now.check_next) {
        tt_record_check();
        tt_vcpu_arm(cpu);
    }
    return false;
}

static bool record_left(CPUState *cpu, int why)
{
    tt_checkpointer_turn(cpu);
    return false;
}

static void record_port(uint32_t port, uint32_t val, unsigned size)
{
    tt_crash_console(port, val);
}

static const TtOps record_ops = {
    .event = tt_record_event, .answer = tt_record_event,
    .port_written = record_port, .was_reset = tt_record_reset, .begin = begin,
    .releasing = releasing, .prepare = record_prepare, .limit = record_limit,
    .boundary = record_boundary, .left = record_left,
};

static void install(void)
{
    tt_ops_register(TT_RECORD, &record_ops);
    tt_tcg_init();
    tt_memory_init();
    tt_memory_on_compare(tt_branch_compare);
}

opts_init(install);
