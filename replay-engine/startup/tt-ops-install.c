/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the time being: installs what the replayer does for the vCPU.
 */
#include "qemu/osdep.h"
#include "accel-tt/tcg/tt-tcg.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/screen/tt-screen.h"
#include "replay/tt-replay.h"
#include "session/tt-ops.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "hw/core/cpu.h"

static const TtOps replay_ops = {
    .answer = tt_replay_sync, .port_written = tt_replay_console,
    .prepare = tt_replay_prepare, .limit = tt_replay_limit,
    .boundary = tt_replay_boundary, .left = tt_replay_left,
    .is_moving = tt_travel_active, .is_blind = tt_travel_is_blind,
    .steps_over = tt_travel_steps_over, .stop_at = tt_travel_stop_at,
    .abort = tt_travel_abort,
};

static const TtScreenLog screen_log = {
    .sched = tt_replay_sched, .reader = tt_replay_reader,
};

static void install(void)
{
    tt_ops_register(TT_REPLAY, &replay_ops);
    tt_tcg_init();
    tt_memory_init();
    tt_memory_on_fill(tt_replay_fill);
    tt_screen_set_log(&screen_log);
}

opts_init(install);
