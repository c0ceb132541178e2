/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of a run that is converted: their names, and the lock of the process that may
 * change them. */
#include "qemu/osdep.h"
#include "convert/tt-convert-files.h"
#include "convert/tt-convert.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "replay/tt-replay-log.h"
#include "run/tt-manifest.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include <sys/file.h>

char *tt_convert_path(const char *name)
{
    return g_build_filename(tt_session.dir, name, NULL);
}

static bool exists(const char *name)
{
    g_autofree char *path = tt_convert_path(name);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static bool move(const char *from, const char *to, Error **errp)
{
    g_autofree char *a = tt_convert_path(from), *b = tt_convert_path(to);

    if (rename(a, b)) {
        error_setg_errno(errp, errno, "cannot rename '%s'", a);
        return false;
    }
    return true;
}

static void discard(const char *name)
{
    g_autofree char *path = tt_convert_path(name);

    unlink(path);
}

static void discard_parts(void)
{
    GDir *dir = g_dir_open(tt_session.dir, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        if (g_str_has_prefix(name, TT_CONVERT_PART)) {
            discard(name);
        }
    }
    if (dir) {
        g_dir_close(dir);
    }
}

/* ---- who may ---- */

/* The log of exits itself is locked: it stays, under another name in the end. A file
 * system that cannot lock says nothing. */
static int lock_fd = -1;

bool tt_convert_lock(Error **errp)
{
    struct stat ours, there;
    g_autofree char *path = NULL;

    do {
        g_free(path);
        path = tt_convert_path(exists(TT_CONVERT_EXITS) ? TT_CONVERT_EXITS : "log");
        close(lock_fd);
        lock_fd = qemu_open_old(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (lock_fd < 0 || fstat(lock_fd, &ours) || !S_ISREG(ours.st_mode)) {
            return true;            /* opening it reports why */
        }
        if (flock(lock_fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
            error_setg(errp, "another process is converting '%s': wait for it to "
                       "finish", tt_printable(tt_session.dir));
            return false;
        }
    } while (fstat(lock_fd, &ours) == 0 && stat(path, &there) == 0 &&
             ours.st_ino != there.st_ino);      /* it got its new name meanwhile */
    return true;
}

void tt_convert_unlock(void)
{
    close(lock_fd);
    lock_fd = -1;
}

/* The run stays locked for as long as a process lives that converts a part. */
void tt_convert_lock_inherit(void)
{
    fcntl(lock_fd, F_SETFD, 0);
}

bool tt_convert_is_possible(Error **errp)
{
    const char *name = tt_printable(tt_session.dir);

    if (!(tt_session.manifest.features & TT_FEATURE_EXITS)) {
        error_setg(errp, "the run '%s' needs no conversion", name);
    } else if (tt_convert_is_installing()) {
        error_setg(errp, "another process converted '%s' and ended before the new log "
                   "was in its place: replay the run again", name);
    } else if (tt_replayer.growing) {
        error_setg(errp, "the run '%s' is being recorded under KVM: it can be replayed "
                   "when its recording has ended", name);
    } else if (tt_log_reader_is_window(tt_replay_reader())) {
        error_setg(errp, "the run '%s' was recorded under KVM, and the beginning of its "
                   "log is missing: it cannot be converted", name);
    }
    return !*errp;
}

bool tt_convert_is_installing(void)
{
    return exists(TT_CONVERT_EXITS);
}

bool tt_convert_install(Error **errp)
{
    g_autofree char *path = tt_convert_path("manifest");
    g_autofree char *point = tt_convert_path(TT_CONVERT_POINT);
    TtManifest m = { 0 };
    TtDiag diag;

    if (!exists(TT_CONVERT_EXITS) && !move("log", TT_CONVERT_EXITS, errp)) {
        return false;
    }
    if (exists(TT_CONVERT_NEW)) {
        discard("checkpoints");     /* these are the recorder's: they have other positions */
        discard("pages");
    }
    if ((exists(TT_CONVERT_NEW) && !move(TT_CONVERT_NEW, "log", errp)) ||
        (exists(TT_CONVERT_PAGES) && !move(TT_CONVERT_PAGES, "pages", errp)) ||
        (exists(TT_CONVERT_CHECKPOINTS) &&
         !move(TT_CONVERT_CHECKPOINTS, "checkpoints", errp))) {
        return false;
    }
    unlink(point);
    discard_parts();
    if (tt_manifest_load(path, &m, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    m.features &= ~TT_FEATURE_EXITS;
    if (tt_manifest_save(&m, path, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
    }
    tt_manifest_cleanup(&m);
    return !*errp;
}

bool tt_convert_install_parts(const uint64_t *starts, unsigned n, Error **errp)
{
    g_autofree char *path = tt_convert_path("manifest");
    TtManifest m = { 0 };
    TtDiag diag;

    if (tt_manifest_load(path, &m, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    g_free(m.sync_starts);
    m.sync_starts = g_memdup2(starts, n * sizeof(*starts));
    m.n_sync_starts = n;
    m.features &= ~TT_FEATURE_SYNC_STARTS;
    m.features |= n ? TT_FEATURE_SYNC_STARTS : 0;
    if (tt_manifest_save(&m, path, &diag) != TT_OK) {
        error_setg(errp, "%s", diag.text);
    }
    tt_manifest_cleanup(&m);
    return !*errp && tt_convert_install(errp);
}

/* ---- what is not whole ---- */

void tt_convert_discard_points(void)
{
    discard(TT_CONVERT_POINT);          /* the one that says what the others are */
    discard(TT_CONVERT_POINT_PART);
    discard(TT_CONVERT_CHECKPOINTS);
    discard(TT_CONVERT_PAGES);
}

void tt_convert_discard_all(void)
{
    tt_convert_discard_points();
    discard(TT_CONVERT_NEW);
}

bool tt_convert_has_point(void)
{
    return exists(TT_CONVERT_POINT);
}

void tt_convert_discard_unfinished(bool is_wrong)
{
    if (is_wrong || !tt_convert_has_point()) {
        tt_convert_discard_all();
    }
}
