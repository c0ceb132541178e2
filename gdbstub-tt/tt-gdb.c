/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb: the reverse packets (bs, bc), the ends of history, and the answer to a
 * write into it. The stop itself is reported by gdbstub, as for any breakpoint.
 */
#include "tt/engine.h"
#include "tt/timeline.h"
#include "system/cpus.h"
#include "system/runstate.h"

const char tt_gdb_refusal[] =
    "E.this is a replay, and history cannot be changed";

static bool wanted;

bool tt_gdb_wanted(void)
{
    return wanted;
}

bool tt_gdb_note(const char *device, Error **errp)
{
    wanted = true;
    return true;
}

static void arrived(void *opaque, uint64_t pos, int reason)
{
    tt.last_stop = reason;
    tt_vcpus_stop_for_gdb();
}

static bool step_wanted;

/* The past of a recording begins at its end. */
static void reverse_from_end(void *opaque, uint64_t pos, int reason)
{
    if ((reason != TT_STOP_TARGET && reason != TT_STOP_END) ||
        !tt_travel_reverse(step_wanted, arrived, NULL, NULL)) {
        arrived(opaque, pos, reason);
    }
}

bool tt_gdb_reverse(bool step)
{
    if (!tt_recording()) {
        return tt_travel_reverse(step, arrived, NULL, NULL);
    }
    step_wanted = step;
    return tt_past_enter(NULL) &&
        tt_travel_goto(tt_replay_end(), reverse_from_end, NULL, NULL);
}

const char *tt_gdb_stop_suffix(void)
{
    int reason = tt.last_stop;

    tt.last_stop = TT_STOP_NONE;
    switch (reason) {
    case TT_STOP_START:
        return "replaylog:begin;";
    case TT_STOP_END:
        return "replaylog:end;";
    default:
        return "";
    }
}
