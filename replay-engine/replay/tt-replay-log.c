/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log that is replayed: opened, with a cursor that stands after the last event
 * that was applied, and with the positions where the replay begins and ends.
 */
#include "qemu/osdep.h"
#include "replay/tt-replay-log.h"
#include "io/tt-base.h"
#include "io/tt-io.h"
#include "log/tt-log.h"
#include "log/tt-logparts.h"
#include "log/tt-sched.h"
#include "run/tt-manifest.h"
#include "run/tt-runlock.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"

TtReplayer tt_replayer;

static struct {
    TtLogReader *reader;
    TtSched *sched;
    uint64_t first_pos, end_pos;    /* where the replay began, where it ends */
} rl;

TtSched *tt_replay_sched(void)
{
    return rl.sched;
}

TtLogReader *tt_replay_reader(void)
{
    return rl.reader;
}

uint64_t tt_replay_end(void)
{
    return rl.end_pos;
}

uint64_t tt_replay_first(void)
{
    return rl.first_pos;
}

void tt_replay_begins_at(uint64_t pos)
{
    rl.first_pos = pos;
}

void tt_replay_set_end(uint64_t pos)
{
    rl.end_pos = pos;
    tt_replayer.torn = tt_replayer.growing = false;
}

void tt_replay_cut_end(uint64_t pos)
{
    rl.end_pos = MIN(rl.end_pos, pos);
}

/* ---- opening ---- */

static void warn_of_gap(void)
{
    uint32_t oldest, before, behind;

    if (tt_logparts_gap(tt_session.dir, &oldest, &before, &behind)) {
        g_autofree char *path = tt_logparts_path(tt_session.dir, behind - 1);

        warn_report("tt: '%s' is missing: the replay begins after it", path);
    }
}

bool tt_replay_log_open(Error **errp)
{
    g_autofree char *manifest = g_build_filename(tt_session.dir, "manifest", NULL);
    TtStatus s;
    TtDiag diag;
    TtIo *io;

    if (tt_manifest_load(manifest, &tt_session.manifest, &diag) != TT_OK ||
        tt_manifest_check_rules(&tt_session.manifest, 1 << TT_HOOK_TLB_BITS,
                                &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    tt_like_hardware = tt_session.manifest.rules & TT_RULE_LIKE_HARDWARE;
    tt_replayer.growing = tt_runlock_is_held(tt_session.dir);
    if (tt_logparts_open(tt_session.dir, &io, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    warn_of_gap();
    s = tt_log_reader_open_part(io, &rl.reader, &diag);
    if (s < 0 && !rl.reader) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    tt_replayer.torn = s == TT_END_TORN;
    if (memcmp(tt_log_reader_uuid(rl.reader), tt_session.manifest.uuid, 16)) {
        error_setg(errp, "manifest and log in '%s' belong to different runs",
                   tt_printable(tt_session.dir));
        return false;
    }
    if (tt_log_reader_n_segments(rl.reader) == 0) {
        error_setg(errp, "the run '%s' is empty: %s", tt_printable(tt_session.dir),
                   tt_replayer.growing ?
                   "it is being recorded, and nothing can be replayed yet" :
                   "its recorder ended before it had written anything");
        return false;
    }
    if (tt_sched_new(rl.reader, &rl.sched, &diag) != TT_OK ||
        tt_sched_end_pos(rl.sched, &rl.end_pos, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    return true;
}

void tt_replay_log_close(void)
{
    tt_sched_free(rl.sched);
    tt_log_reader_free(rl.reader);
    memset(&rl, 0, sizeof(rl));
}
