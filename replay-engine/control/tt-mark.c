/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marks: names for positions. The recorder keeps them in the log; a replay adds
 * its own to the text file RUN/marks, one "POSITION NAME" per line. The last one
 * of a name counts, and those of the file before those of the log. The recorder's
 * part is record/tt-mark-log.c.
 */
#include "qemu/osdep.h"
#include "control/tt-mark.h"
#include "accel-tt/tt-position.h"
#include "io/tt-base.h"
#include "io/tt-io.h"
#include "record/tt-mark-log.h"
#include "record/tt-rundir.h"
#include "replay/tt-replay-log.h"
#include "run/tt-marks.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/cutils.h"

static bool append_to_file(const char *name, uint64_t pos, Error **errp)
{
    g_autofree char *path = g_build_filename(tt_session.dir, "marks", NULL);
    TtIo *io = NULL;
    TtDiag diag;
    TtStatus s;

    if (!tt_rundir_check(errp)) {       /* the past of a recording */
        return false;
    }
    if (!tt_marks_is_plain(path)) {
        error_setg(errp, "cannot add the mark: '%s' is not a regular file: "
                   "remove or replace it", tt_printable(path));
        return false;
    }
    s = g_file_test(path, G_FILE_TEST_EXISTS) ?
        tt_io_posix_open_append(path, &io, &diag) :
        tt_io_posix_create(path, &io, &diag);
    if (s == TT_OK) {
        s = tt_marks_append(io, name, pos, &diag);
    }
    tt_io_close(io);
    if (s != TT_OK) {
        error_setg(errp, "cannot add the mark: %s", diag.text);
    }
    return s == TT_OK;
}

bool tt_mark_add(const char *name, uint64_t *pos, Error **errp)
{
    if (!tt_is_live(errp)) {
        return false;
    }
    if (tt_travel_active()) {
        error_setg(errp, "a movement is under way: " TT_WAIT_OR_INTERRUPT);
        return false;
    }
    if (tt_recording()) {
        return tt_mark_record(name, pos, errp);
    }
    if (!tt_mark_check(name, errp)) {
        return false;
    }
    *pos = tt_position();
    return append_to_file(name, *pos, errp);
}

/* ---- looking ---- */

void tt_mark_each(TtMarkFound *found, void *opaque)
{
    if (tt_replaying()) {
        tt_marks_of_log(tt_replay_reader(), found, opaque);
    }
    tt_mark_each_recorded(found, opaque);
    tt_marks_of_file(tt_session.dir, found, opaque);
}

bool tt_mark_find(const char *name, uint64_t *pos, Error **errp)
{
    TtMarkSearch w = { .name = name };

    tt_mark_each(tt_mark_search, &w);
    if (!*name) {
        error_setg(errp, "the name of a mark is missing after '@'");
        return false;
    }
    if (!w.is_found) {
        error_setg(errp, "there is no mark '%s' in this run", name);
        return false;
    }
    *pos = w.pos;
    return true;
}
