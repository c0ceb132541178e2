/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt save: the window of a flight recorder becomes a run of its own, which is not
 * trimmed any more, and the recording goes on.
 *
 *   BQL: a note into the log; its part ends here --> checkpoint store's thread:
 *        links the parts up to there (old parts do not change any more; on
 *        another file system they are copied), closes the log with a part of its
 *        own, copies the checkpoints' files, and the manifest last
 *   --> main loop: says so
 *
 * Checkpoints wait meanwhile, so the window does not move. The VM does not stand for
 * any of it, unless that fills the log up to max-size.
 */
#include "qemu/osdep.h"
#include "flight/tt-save.h"
#include "checkpoint/tt-cpdisks.h"
#include "checkpoint/tt-cpfiles.h"
#include "checkpoint/tt-cpstore.h"
#include "io/tt-base.h"
#include "io/tt-io.h"
#include "log/tt-log.h"
#include "log/tt-logparts.h"
#include "record/tt-flight.h"
#include "record/tt-mark-log.h"
#include "record/tt-record-listener.h"
#include "record/tt-record.h"
#include "record/tt-rundir.h"
#include "session/tt-events.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt-save-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "block/aio.h"

static struct {
    bool busy;                  /* BQL */
    bool done;                  /* by the thread; then the rest is BQL's again */
    bool cancelled;             /* the thread is to give up */
    char *from;
    TtSaveDir dir;
    uint32_t first_part, end_part;      /* parts before the end are linked */
    TtLogPlace end;
    uint64_t host_ns;
    uint8_t uuid[16];
    TtStatus status;
    TtDiag diag;
    TtSaveDone *call;
    void *opaque;
} sv;

/* ---- files: checkpoint store's thread ---- */

/* @may_miss: it need not be there. */
static TtStatus copy_named(const char *name, bool may_miss)
{
    g_autofree char *from = g_build_filename(sv.from, name, NULL);
    g_autofree char *to = g_build_filename(sv.dir.making, name, NULL);

    return !may_miss || g_file_test(from, G_FILE_TEST_IS_REGULAR) ?
        tt_save_copy(from, to, &sv.cancelled, &sv.diag) : TT_OK;
}

static TtStatus link_part(uint32_t number)
{
    g_autofree char *from = tt_logparts_path(sv.from, number);
    g_autofree char *to = tt_logparts_path(sv.dir.making, number);

    return link(from, to) == 0 ? TT_OK :
        tt_save_copy(from, to, &sv.cancelled, &sv.diag);
}

static TtStatus end_log(void)
{
    g_autofree char *path = tt_logparts_path(sv.dir.making, sv.end_part);
    TtIo *io;
    TtStatus s = tt_io_posix_create(path, &io, &sv.diag);

    return s == TT_OK ? tt_log_write_end(io, sv.uuid, &sv.end, sv.host_ns,
                                         TT_FINISH_STOPPED, &sv.diag) : s;
}

/* A branch can start from a full checkpoint of the window, too: its images are
 * where they are. */
static void link_disks(void)
{
    g_autofree char *from = g_build_filename(sv.from, "disks", NULL);
    g_autofree char *to = g_build_filename(sv.dir.making, "disks", NULL);

    if (g_file_test(from, G_FILE_TEST_IS_DIR) && symlink(from, to)) {
        warn_report("tt: cannot link '%s': %s", to, g_strerror(errno));
    }
}

static TtStatus save_all(void)
{
    TtStatus s = TT_OK;

    for (uint32_t i = tt_flight_oldest_part(); i < sv.end_part && s == TT_OK;
         i++) {
        s = link_part(i);
    }
    if (s == TT_OK) {
        s = end_log();
    }
    link_disks();
    /* Versions before the records that name them: nobody writes, though. */
    s = s == TT_OK ? copy_named("pages", !tt_cpfiles_count()) : s;
    s = s == TT_OK ? copy_named("checkpoints", !tt_cpfiles_count()) : s;
    s = s == TT_OK ? copy_named("marks", true) : s;
    s = s == TT_OK ? copy_named("manifest", false) : s;
    tt_savedir_sync(sv.dir.making);
    if (s == TT_OK && qatomic_read(&sv.cancelled)) {     /* until it has its name */
        return tt_fail(&sv.diag, TT_ERR_IO, "it was cancelled");
    }
    s = s == TT_OK ? tt_savedir_name(&sv.dir, &sv.diag) : s;
    if (s == TT_OK) {
        tt_cpdisks_are_shared(sv.end.pos);
    }
    return s;
}

static void report(void *opaque);

static bool carry_out(void)
{
    bool ok;

    sv.status = save_all();
    ok = sv.status == TT_OK;
    if (!ok) {
        tt_savedir_discard(&sv.dir);
    }
    tt_savedir_close(&sv.dir);
    qatomic_store_release(&sv.done, true);
    aio_bh_schedule_oneshot(iohandler_get_aio_context(), report, NULL);
    return ok;
}

bool tt_save_is_busy(void)
{
    return sv.busy;
}

/* ---- BQL ---- */

static void report(void *opaque)
{
    g_autofree char *from = NULL;
    TtSaveDir dir;
    TtSaveDone *call = sv.call;
    TtDiag diag = sv.diag;
    TtStatus s = sv.status;

    if (!sv.busy || !qatomic_load_acquire(&sv.done)) {
        return;                         /* it was, when the recording ended */
    }
    opaque = sv.opaque;
    from = sv.from;
    dir = sv.dir;
    memset(&sv, 0, sizeof(sv));
    if (s == TT_OK) {
        error_printf("tt: the window is saved in %s\n", tt_printable(dir.to));
        tt_tell_saved(dir.to);
    } else {
        warn_report("tt: the window cannot be saved in '%s': %s",
                    tt_printable(dir.to), diag.text);
    }
    if (call) {
        call(opaque, dir.to, s == TT_OK ? NULL : diag.text);
    }
    tt_savedir_free(&dir);
}

const char *tt_save_dir(void)
{
    return sv.dir.to;
}

void tt_save_cancel(void)
{
    qatomic_set(&sv.cancelled, true);
}

static void settle(void)
{
    report(NULL);
}

static bool may_save(const char *name, Error **errp)
{
    if (tt_past) {
        error_setg(errp, "the past of the recording is shown: " TT_RETURN_FIRST);
    } else if (!tt_is_live(errp)) {
        /* said */
    } else if (!tt_recording()) {
        error_setg(errp, "only a recording with last= has a window to save, and this is "
                   "a replay");
    } else if (!tt_flight_is_on()) {
        error_setg(errp, "this recording keeps everything, so there is no window to "
                   "save: only a recording with last= has one");
    } else if (sv.busy) {
        error_setg(errp, "a window is being saved: wait until it is finished");
    } else {
        return !name || strchr(name, '/') || tt_mark_check(name, errp);
    }
    return false;
}

/* The log up to here is in parts that do not change any more. */
static bool cut(const char *to, Error **errp)
{
    g_autofree char *name = g_path_get_basename(to);        /* a log may be shared */
    g_autofree char *text = g_strdup_printf("a window ends here, for %s", name);
    TtEvent ev = {
        .kind = TT_EV_NOTE, .data = (const uint8_t *)text,
        .len = MIN(strlen(text), TT_LOG_DATA_MAX),
    };
    uint64_t seq;

    tt_record_event(&ev);
    if (!tt_record_cut(&seq, errp)) {
        return false;
    }
    sv.end_part = tt_flight_newest_part(&sv.end);
    if (sv.end.segment != seq) {
        error_setg(errp, "cannot start a new part of the log in '%s'",
                   tt_printable(tt_session.dir));
        return false;
    }
    return true;
}

bool tt_save_begin(const char *name, bool is_marked, TtSaveDone *done,
                   void *opaque, Error **errp)
{
    g_autofree char *mark = NULL;
    uint64_t pos;

    if (!may_save(name, errp)) {
        return false;
    }
    if (!tt_rundir_check(errp)) {
        return false;
    }
    tt_savedir_remove_leftovers();
    if (!tt_savedir_make(name, is_marked, &sv.dir, &mark, errp)) {
        return false;
    }
    if ((mark && !is_marked && !tt_mark_record(mark, &pos, errp)) ||
        !cut(sv.dir.to, errp)) {
        tt_savedir_discard(&sv.dir);
        tt_savedir_close(&sv.dir);
        tt_savedir_free(&sv.dir);
        return false;
    }
    sv.busy = true;
    sv.from = g_strdup(tt_session.dir);
    sv.host_ns = tt_record_ns();
    memcpy(sv.uuid, tt_session.manifest.uuid, sizeof(sv.uuid));
    sv.call = done;
    sv.opaque = opaque;
    tt_cpstore_save();
    return true;
}

void tt_save_init(void)
{
    static const TtRecordListener listener = { .finishing = settle };

    tt_record_listen(&listener);
    tt_cpstore_on_save(carry_out);
}
