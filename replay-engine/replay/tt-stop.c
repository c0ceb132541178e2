/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the VM of a replay stops, and when the process ends with it.
 */
#include "qemu/osdep.h"
#include "replay/tt-stop.h"
#include "accel-tt/tt-position.h"
#include "replay/tt-replay-driver.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "session/tt-events.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "system/runstate.h"
#include "system/cpus.h"

bool tt_at_end_exit;

static void leave_process(int reason)
{
    bool ok = reason == TT_STOP_END;

    if (ok) {
        error_printf("tt: replay exact: %" PRIu64 " positions, %" PRIu64
                     " events, %" PRIu64 " digests equal\n", tt_now.pos,
                     tt_session.events, tt_replay_digests());
    }
    qemu_system_shutdown_request_with_code(SHUTDOWN_CAUSE_HOST_QMP_QUIT,
                                           ok ? 0 : tt_replayer.damaged ? 1 : 3);
    tt_at_end_exit = false;         /* once is enough */
}

void tt_stop_vm(int reason)
{
    tt_session.last_stop = reason;
    tt_tell_stopped(tt_position(), reason);
    if (tt_at_end_exit && (reason == TT_STOP_END ||
                           reason == TT_STOP_DIVERGED ||
                           reason == TT_STOP_DAMAGED)) {
        leave_process(reason);
    }
    qemu_system_vmstop_request_prepare();
    qemu_system_vmstop_request(RUN_STATE_PAUSED);
    cpu_stop_current();
}

void tt_stop_at_end(void)
{
    if (!tt_session.finished) {
        tt_session.finished = true;
        if (tt_replayer.torn) {
            error_printf("tt: the log ends here, at position %" PRIu64
                         ": %s\n", tt_now.pos, tt_replayer.growing ?
                         "the run was still being recorded when this replay began" :
                         "the recorder was cut off");
        }
    }
    if (tt_replay_driver->is_active()) {
        tt_replay_driver->ended(TT_STOP_END);
    } else {
        tt_stop_vm(TT_STOP_END);
    }
}
