/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The run directory of a recording, and its removal when there was no run. */
#include "qemu/osdep.h"
#include "record/tt-rundir.h"
#include "hw-tt/state/tt-disks.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "log/tt-logparts.h"
#include "record/tt-flight.h"
#include "record/tt-record-options.h"
#include "run/tt-runlock.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt-record-tell-int.h"
#include "qapi/error.h"
#include "qemu/atomic.h"
#include "qemu/error-report.h"

#define PROBE_BYTES (1 << 20)       /* that a new run has to have room for */

static struct {
    bool made_dir, made_log;        /* they were not there before */
    bool has_dir;                   /* it is there now */
    bool told;                      /* that it, or a file of it, is not there */
    bool has_points;                /* RUN/pages and RUN/checkpoints: any thread */
    ino_t log;                      /* which file that is, if it is in one */
    int lock;                       /* readers see by it that we are at work */
} rd = { .lock = -1 };

void tt_rundir_forget(void)
{
    tt_runlock_drop(rd.lock);
    rd = (typeof(rd)) { .lock = -1 };
}

void tt_rundir_made_log(void)
{
    struct stat st;

    rd.made_log = true;
    rd.log = !tt_flight_is_on() && fstatat(rd.lock, "log", &st, 0) == 0 ?
        st.st_ino : 0;
}

void tt_rundir_has_points(bool has)
{
    qatomic_set(&rd.has_points, has);
}

/* Holds it something that is not a run's? */
static bool is_foreign(const char *dir)
{
    GDir *d = g_dir_open(dir, 0, NULL);
    const char *name = NULL;

    while (d && (name = g_dir_read_name(d)) && g_str_equal(name, "lost+found")) {
    }
    if (d) {
        g_dir_close(d);
    }
    return name;
}

/* Which option of -tt names the directory. The monitor's command has none. */
static const char *option(void)
{
    return tt_record_options.dir_option ?: " (dir=)";
}

/* Only the run's own directory is made: a name that is wrong makes no others. */
static void say_no_parent(const char *dir, Error **errp)
{
    g_autofree char *parent = g_path_get_dirname(dir);

    error_setg(errp, "cannot create the run directory '%s': there is no directory '%s'; "
               "create that first (mkdir -p)", tt_printable(dir), tt_printable(parent));
}

/* The directory that the option names. */
static bool make_named(Error **errp)
{
    g_autofree char *manifest = g_build_filename(tt_session.dir, "manifest", NULL);
    g_autofree char *log = tt_logparts_path(tt_session.dir, 0);

    if (!tt_path_is_outside(tt_session.dir, errp)) {
        return false;
    }
    if (mkdir(tt_session.dir, 0700) == 0) {
        rd.made_dir = true;
        return true;
    }
    if (errno == ENOENT) {
        say_no_parent(tt_session.dir, errp);
        return false;
    }
    if (errno != EEXIST || !g_file_test(tt_session.dir, G_FILE_TEST_IS_DIR)) {
        error_setg_errno(errp, errno == EEXIST ? ENOTDIR : errno,
                         "cannot create the run directory '%s': give another"
                         " directory%s", tt_printable(tt_session.dir), option());
        return false;
    }
    if (tt_runlock_is_held(tt_session.dir)) {
        error_setg(errp, "another process is recording into '%s': give another"
                   " directory%s",
                   tt_printable(tt_session.dir), option());
        return false;
    }
    if (g_file_test(manifest, G_FILE_TEST_EXISTS) ||
        g_file_test(log, G_FILE_TEST_EXISTS)) {
        error_setg(errp, "'%s' already contains a run: give another directory%s or "
                   "delete the run", tt_printable(tt_session.dir), option());
        return false;
    }
    if (is_foreign(tt_session.dir)) {
        error_setg(errp, "'%s' contains other files: give a directory%s "
                   "that is empty, or that does not exist",
                   tt_printable(tt_session.dir), option());
        return false;
    }
    return true;
}

bool tt_rundir_can_make(const char *dir, Error **errp)
{
    g_autofree char *probe = g_build_filename(dir, "probe", NULL);
    int fd, error = 0;

    if (mkdir(dir, 0700)) {
        if (errno == ENOENT) {
            say_no_parent(dir, errp);
        } else {
            error_setg_errno(errp, errno, "cannot create the run directory '%s'",
                             tt_printable(dir));
        }
        return false;
    }
    fd = qemu_create(probe, O_WRONLY | O_EXCL, 0600, NULL);
    error = fd < 0 ? errno : posix_fallocate(fd, 0, PROBE_BYTES);
    if (fd >= 0) {
        close(fd);
        unlink(probe);
    }
    rmdir(dir);
    if (error) {
        error_setg_errno(errp, error, "cannot write into a new run directory '%s'",
                         tt_printable(dir));
    }
    return !error;
}

/* One with a name of the time, here. */
static bool make_dated(Error **errp)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    g_autofree char *stamp = g_date_time_format(now, "tt-run-%Y%m%d-%H%M%S");

    for (int n = 0; n < 1000; n++) {
        g_autofree char *name = n ? g_strdup_printf("%s-%d", stamp, n) :
            g_strdup(stamp);
        g_autofree char *path = tt_path_absolute(name);

        if (!tt_path_is_outside(path, errp)) {
            return false;
        }
        if (mkdir(path, 0700) == 0) {
            tt_session.dir = g_intern_string(path);
            rd.made_dir = true;
            return true;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    error_setg_errno(errp, errno, "cannot create a run directory here: give one%s",
                     option());
    return false;
}

bool tt_record_directory(Error **errp)
{
    TtDiag diag;
    TtStatus st;

    if (rd.has_dir) {
        return true;
    }
    if (!(tt_session.dir ? make_named(errp) : make_dated(errp))) {
        return false;
    }
    st = tt_runlock_take(tt_session.dir, &rd.lock, &diag);
    if (st != TT_OK) {
        error_setg(errp, "%s", diag.text);
        if (st == TT_ERR_INVALID) {
            rd.made_dir = false;        /* it is the other's now */
        }
        return false;
    }
    rd.has_dir = true;
    return true;
}

bool tt_rundir_is_ours(void)
{
    return tt_runlock_is_at(rd.lock, tt_session.dir);
}

bool tt_rundir_check(Error **errp)
{
    if (!tt_rundir_is_ours()) {
        error_setg(errp, "'%s' was deleted or moved: move it back",
                   tt_printable(tt_session.dir));
        return false;
    }
    return true;
}

/* In our directory, whatever that is called now. True if it cannot be told. */
static bool has_file(const char *name)
{
    return rd.lock < 0 || faccessat(rd.lock, name, F_OK, 0) == 0 || errno != ENOENT;
}

/* The window's oldest go meanwhile, which is not to be told. */
static char *lost_part(void)
{
    TtLogPlace unused;
    uint32_t newest = tt_flight_newest_part(&unused);

    for (uint32_t i = MAX(tt_flight_oldest_part(), 1); i <= newest; i++) {
        g_autofree char *path = tt_logparts_path("", i);
        g_autofree char *name = g_path_get_basename(path);

        if (!has_file(name) && i >= tt_flight_oldest_part()) {
            return g_steal_pointer(&name);
        }
    }
    return NULL;
}

static char *lost_log(void)
{
    struct stat st;

    if (tt_flight_is_on()) {
        return lost_part();
    }
    return rd.log && (!has_file("log") || (fstatat(rd.lock, "log", &st, 0) == 0 &&
                                           st.st_ino != rd.log)) ?
        g_strdup("log") : NULL;
}

static bool lacks(const char *name)
{
    return !has_file(name) && qatomic_read(&rd.has_points);
}

char *tt_rundir_lost(void)
{
    char *log = lost_log();

    return log ?: lacks("pages") ? g_strdup("pages") :
        lacks("checkpoints") ? g_strdup("checkpoints") : NULL;
}

bool tt_rundir_is_there(void)
{
    g_autofree char *manifest = g_build_filename(tt_session.dir, "manifest", NULL);
    g_autofree char *log = lost_log();

    return g_file_test(manifest, G_FILE_TEST_EXISTS) && tt_rundir_is_ours() && !log;
}

static void watch_files(void)
{
    g_autofree char *file = tt_rundir_lost(), *disk = file ? NULL : tt_disks_lost();
    const char *lost = file ?: disk;

    if (lost) {
        rd.told = true;
        warn_report("tt: '%s' is no longer in the run directory '%s': it was "
                    "deleted or moved during the recording; move it back, or "
                    "start another recording",
                    lost, tt_printable(tt_session.dir));
    }
}

void tt_rundir_watch(void)
{
    if (!rd.told && tt_rundir_is_ours()) {
        watch_files();
    } else if (!rd.told) {
        rd.told = true;
        warn_report("tt: '%s' is no longer the run directory: it was deleted or "
                    "moved during the recording; move it back",
                    tt_printable(tt_session.dir));
    }
}

void tt_rundir_release(void)
{
    tt_runlock_release(rd.lock);
}

void tt_rundir_remove(void)
{
    tt_record_tell_removing();
    if (!tt_rundir_is_ours()) {
        return;                         /* not even a name of another's files */
    }
    if (rd.made_log) {
        g_autofree char *manifest = g_build_filename(tt_session.dir, "manifest", NULL);
        unsigned n;
        g_autofree uint32_t *part = tt_logparts_list(tt_session.dir, &n);

        unlink(manifest);
        if (!tt_flight_is_on()) {
            g_autofree char *log = tt_logparts_path(tt_session.dir, 0);

            unlink(log);
        }
        for (unsigned i = 0; i < n; i++) {
            g_autofree char *log = tt_logparts_path(tt_session.dir, part[i]);

            unlink(log);
        }
    }
    if (rd.made_dir) {
        rmdir(tt_session.dir);
    }
}
