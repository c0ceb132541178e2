/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * -tt ...,trace=FILE[,trace-part=FROM-TO]: a branch trace of a part of the run. A
 * recording makes it on its way. A replay goes to FROM, makes it, and ends:
 *
 *   start --goto--> FROM --run, traced--> TO --> leave
 *
 * Context: main thread for the option, then the vCPU thread.
 */
#include "qemu/osdep.h"
#include "travel/tt-retrace.h"
#include "accel-tt/tt-branch-trace.h"
#include "record/tt-record-listener.h"
#include "replay/tt-replay-log.h"
#include "session/tt-paths.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "hw/core/cpu.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "system/runstate.h"
#include "system/system.h"

static struct {
    char *path;                 /* NULL: not asked for */
    uint64_t from, to;          /* UINT64_MAX: the end */
} want;

bool tt_part_parse(const char *text, uint64_t *from, uint64_t *to)
{
    const char *rest;

    *from = 0;
    *to = UINT64_MAX;
    if (!strcmp(text, "all")) {
        return true;
    }
    if (!g_ascii_isdigit(*text) ||
        qemu_strtou64(text, &rest, 10, from) || *rest++ != '-') {
        return false;
    }
    return !*rest || (g_ascii_isdigit(*rest) &&
                      qemu_strtou64(rest, NULL, 10, to) == 0 && *to > *from);
}

bool tt_retrace_is_on(void)
{
    return want.path && tt_replaying();
}

static bool started(CPUState *cpu, Error **errp)
{
    g_autofree char *path = g_steal_pointer(&want.path);

    return !path || (tt_path_is_outside(path, errp) &&
                     tt_trace_begin(path, want.from, want.to, errp));
}

void tt_retrace_init(void)
{
    static const TtRecordListener listener = { .started = started };

    tt_record_listen(&listener);
}

/* ---- a replay ---- */

static void leave(int reason, Error *err)
{
    int code = reason == TT_STOP_DIVERGED ? 3 :
        reason == TT_STOP_TARGET || reason == TT_STOP_END ? 0 : 1;

    tt_trace_end_and_tell();
    if (err) {
        error_reportf_err(err, "tt: ");
        code = 1;
    }
    if (!code && tt_trace_has_failed()) {
        code = 1;
    }
    qemu_system_shutdown_request_with_code(SHUTDOWN_CAUSE_HOST_QMP_QUIT, code);
}

static void at_end(void *opaque, uint64_t pos, int reason)
{
    leave(reason, NULL);
}

static void at_beginning(void *opaque, uint64_t pos, int reason)
{
    Error *err = NULL;

    if (reason != TT_STOP_TARGET ||
        !tt_trace_begin(want.path, pos, want.to, &err) ||
        !tt_travel_run(MIN(want.to, INT64_MAX), at_end, NULL, &err)) {
        leave(reason == TT_STOP_TARGET ? TT_STOP_NONE : reason, err);
    }
}

static void begin(void)
{
    Error *err = NULL;

    want.from = MAX(want.from, tt_replay_first());
    if (want.from >= tt_replay_end() && want.from > tt_replay_first()) {
        error_setg(&err, "the run ends at position %" PRIu64 ", before the part "
                   "that is to be traced", tt_replay_end());
    }
    if (err || !tt_travel_goto(want.from, at_beginning, NULL, &err)) {
        leave(TT_STOP_NONE, err);
    }
}

/* ---- the option ---- */

bool tt_trace_option(const char *path, const char *part)
{
    static const TtTravelTask task = { .begin = begin };

    want.path = tt_path_absolute(path);
    if (tt_replaying()) {
        tt_travel_set_task(&task);
    }
    return tt_part_parse(part ?: "all", &want.from, &want.to);
}
