/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt save: the window of a flight recorder becomes a run of its own, which nobody
 * trims any more, and the recording goes on.
 *
 *   BQL: a note into the log; its part ends here --> checkpoint store's thread:
 *        links the parts up to there (old parts do not change any more; on
 *        another file system they are copied), closes the log with a part of its
 *        own, copies the checkpoints' files, and the manifest last
 *   --> main loop: says so
 *
 * It is made as NAME.saving and gets its name at the end, so what has a name is whole.
 * It has a file "unfinished" in it, which goes last, and who makes it holds a lock on it:
 * one that is not locked was left by a process that was killed, and goes when the
 * next window is saved. Checkpoints wait meanwhile, so the window does not move. The VM
 * does not stand for any of it, unless that fills the log up to max-size.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* copy_file_range, SEEK_DATA */
#endif
#include "qemu/osdep.h"
#include "flight/tt-save.h"
#include "checkpoint/tt-cpstore.h"
#include "control/tt-mark.h"
#include "io/tt-base.h"
#include "io/tt-io.h"
#include "log/tt-log.h"
#include "log/tt-logparts.h"
#include "record/tt-flight.h"
#include "record/tt-record.h"
#include "record/tt-rundir.h"
#include "session/tt-events.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "block/aio.h"

#include <sys/file.h>

#define COPY_BYTES (1u << 20)
#define UNFINISHED "unfinished" /* a file in it until then: it may be removed */
#define SAVING ".saving"        /* behind the name, until it is whole */

static struct {
    bool busy;                  /* BQL */
    bool done;                  /* by the thread; then the rest is BQL's again */
    char *from, *to;
    char *making;               /* @to, until it is whole */
    int lock;                   /* on that directory */
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

static TtStatus fail_errno(const char *what, const char *path)
{
    int err = errno;

    return tt_fail(&sv.diag, err == ENOSPC || err == EDQUOT ? TT_ERR_NOSPACE :
                   TT_ERR_IO, "cannot %s '%s': %s", what, path,
                   g_strerror(err));
}

/* One piece of data; holes are between them. */
static bool copy_range(int in, int out, off_t at, off_t end)
{
    g_autofree char *buf = NULL;
    off_t to = at;

    while (at < end) {
        ssize_t n = copy_file_range(in, &at, out, &to, end - at, 0);

        if (n <= 0) {
            break;
        }
    }
    if (at < end) {                     /* a file system that cannot */
        buf = g_malloc(COPY_BYTES);
    }
    while (at < end) {
        ssize_t n = pread(in, buf, MIN(end - at, COPY_BYTES), at);

        n = n > 0 ? pwrite(out, buf, n, at) : n;
        if (n <= 0) {
            errno = n ? errno : ENOSPC;
            return false;
        }
        at += n;                    /* what did not fit fails the next time */
    }
    return true;
}

static bool copy_data(int in, int out, off_t size)
{
    off_t at = 0;

    while (at < size) {
        off_t data = lseek(in, at, SEEK_DATA), hole;

        if (data < 0 && errno == ENXIO) {
            break;                      /* a hole up to the end */
        }
        hole = data < 0 ? size : lseek(in, data, SEEK_HOLE);
        if (!copy_range(in, out, MAX(data, at), hole < 0 ? size :
                        MIN(hole, size))) {
            return false;
        }
        at = hole < 0 ? size : hole;
    }
    return ftruncate(out, size) == 0 && fsync(out) == 0;
}

/* As it is now; what has been given back stays holes. */
static TtStatus copy_file(const char *from, const char *to)
{
    TtStatus s = TT_OK;
    struct stat st;
    int in = open(from, O_RDONLY | O_CLOEXEC), out;

    if (in < 0) {
        return fail_errno("open", from);
    }
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0) {
        s = fail_errno("create", to);
    } else if (fstat(in, &st) || !copy_data(in, out, st.st_size)) {
        s = fail_errno("write to", to);
    }
    if (out >= 0) {
        close(out);
    }
    close(in);
    return s;
}

/* @may_miss: it need not be there. */
static TtStatus copy_named(const char *name, bool may_miss)
{
    g_autofree char *from = g_build_filename(sv.from, name, NULL);
    g_autofree char *to = g_build_filename(sv.making, name, NULL);

    return !may_miss || g_file_test(from, G_FILE_TEST_IS_REGULAR) ?
        copy_file(from, to) : TT_OK;
}

static TtStatus link_part(uint32_t number)
{
    g_autofree char *from = tt_logparts_path(sv.from, number);
    g_autofree char *to = tt_logparts_path(sv.making, number);

    return link(from, to) == 0 ? TT_OK : copy_file(from, to);
}

static TtStatus end_log(void)
{
    g_autofree char *path = tt_logparts_path(sv.making, sv.end_part);
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
    g_autofree char *to = g_build_filename(sv.making, "disks", NULL);

    if (g_file_test(from, G_FILE_TEST_IS_DIR) && symlink(from, to)) {
        warn_report("tt: cannot link '%s': %s", to, g_strerror(errno));
    }
}

static void sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

/* It gets its name. Somebody may have made another of that name meanwhile. */
static TtStatus give_name(void)
{
    g_autofree char *folder = g_path_get_dirname(sv.to);
    g_autofree char *sign = g_build_filename(sv.to, UNFINISHED, NULL);

    if (renameat2(AT_FDCWD, sv.making, AT_FDCWD, sv.to, RENAME_NOREPLACE) &&
        (errno != EINVAL || g_file_test(sv.to, G_FILE_TEST_EXISTS) ||
         rename(sv.making, sv.to))) {
        return fail_errno("give the window its name", sv.to);
    }
    unlink(sign);
    sync_directory(folder);
    return TT_OK;
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
    s = s == TT_OK ? copy_named("pages", !tt_cpstore_count()) : s;
    s = s == TT_OK ? copy_named("checkpoints", !tt_cpstore_count()) : s;
    s = s == TT_OK ? copy_named("marks", true) : s;
    s = s == TT_OK ? copy_named("manifest", false) : s;
    sync_directory(sv.making);
    return s == TT_OK ? give_name() : s;
}

/* What save_all makes, beside the parts of the log. */
static const char *const made[] = {
    "manifest", "marks", "checkpoints", "pages", "disks", UNFINISHED, NULL,
};

/* Only that. */
static void remove_again(const char *dir)
{
    unsigned n;
    g_autofree uint32_t *part = NULL;

    for (unsigned i = 0; made[i]; i++) {
        g_autofree char *path = g_build_filename(dir, made[i], NULL);

        unlink(path);
    }
    while ((part = tt_logparts_list(dir, &n))) {
        bool any = false;

        for (unsigned i = 0; i < n; i++) {
            g_autofree char *path = tt_logparts_path(dir, part[i]);

            any |= unlink(path) == 0;
        }
        g_clear_pointer(&part, g_free);
        if (!any) {
            break;
        }
    }
    rmdir(dir);
}

static void report(void *opaque);

bool tt_save_carry_out(void)
{
    bool ok;

    sv.status = save_all();
    ok = sv.status == TT_OK;
    if (!ok) {
        remove_again(sv.making);
    }
    close(sv.lock);
    qatomic_store_release(&sv.done, true);
    aio_bh_schedule_oneshot(qemu_get_aio_context(), report, NULL);
    return ok;
}

bool tt_save_is_busy(void)
{
    return sv.busy;
}

/* ---- BQL ---- */

static void report(void *opaque)
{
    g_autofree char *from = NULL, *to = NULL, *making = NULL;
    TtSaveDone *call = sv.call;
    TtDiag diag = sv.diag;
    TtStatus s = sv.status;

    if (!sv.busy || !qatomic_load_acquire(&sv.done)) {
        return;                         /* it was, by tt_save_settle */
    }
    opaque = sv.opaque;
    from = sv.from;
    to = sv.to;
    making = sv.making;
    memset(&sv, 0, sizeof(sv));
    if (s == TT_OK) {
        error_printf("tt: the window is saved in %s\n", tt_printable(to));
        tt_tell_saved(to);
    } else {
        warn_report("tt: the window cannot be saved in '%s': %s",
                    tt_printable(to), diag.text);
    }
    if (call) {
        call(opaque, to, s == TT_OK ? NULL : diag.text);
    }
}

void tt_save_settle(void)
{
    report(NULL);
}

/* A lock on directory @path, which ends with this process; -1: another one has it,
 * or there is no such directory. @may_fail: where there are no locks, without. */
static int lock_directory(const char *path, bool may_fail)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) &&
        (!may_fail || errno == EWOULDBLOCK)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Was it being made, and has it nothing in it but what save_all makes? */
static bool is_ours(const char *dir)
{
    g_autofree char *sign = g_build_filename(dir, UNFINISHED, NULL);
    GDir *d = g_dir_open(dir, 0, NULL);
    bool ours = d, is_empty = true;
    const char *name;

    while (d && (name = g_dir_read_name(d))) {
        ours &= g_strv_contains(made, name) || g_str_has_prefix(name, "log.");
        is_empty = false;
    }
    ours &= is_empty || g_file_test(sign, G_FILE_TEST_IS_REGULAR);
    if (d) {
        g_dir_close(d);
    }
    return ours;
}

/* A process that was killed while it saved into @making left it? Then it goes. */
static bool remove_leftover(const char *making)
{
    int fd = lock_directory(making, false);
    bool gone = false;

    if (fd >= 0 && is_ours(making)) {
        remove_again(making);
        gone = !g_file_test(making, G_FILE_TEST_EXISTS);
    }
    if (fd >= 0) {
        close(fd);
    }
    return gone;
}

/* Those of this run. */
static void remove_leftovers(void)
{
    g_autofree char *folder = g_path_get_dirname(tt_session.dir);
    g_autofree char *run = g_path_get_basename(tt_session.dir);
    g_autofree char *head = g_strconcat(run, "-", NULL);
    GDir *d = g_dir_open(folder, 0, NULL);
    const char *name;

    while (d && (name = g_dir_read_name(d))) {
        g_autofree char *path = g_build_filename(folder, name, NULL);

        if (g_str_has_prefix(name, head) && g_str_has_suffix(name, SAVING)) {
            remove_leftover(path);
        }
    }
    if (d) {
        g_dir_close(d);
    }
}

static bool put_sign(const char *making)
{
    g_autofree char *sign = g_build_filename(making, UNFINISHED, NULL);
    int fd = open(sign, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0) {
        int why = errno;

        close(sv.lock);
        rmdir(making);
        errno = why;
        return false;
    }
    close(fd);
    return true;
}

/* Makes the directory that is to become @dir. False: errno. */
static bool begin_making(const char *dir)
{
    char *making = g_strconcat(dir, SAVING, NULL);
    struct stat st;

    if (lstat(dir, &st) == 0) {
        errno = EEXIST;
    } else if (mkdir(making, 0700) == 0 ||
               (errno == EEXIST && remove_leftover(making) &&
                mkdir(making, 0700) == 0)) {
        sv.lock = lock_directory(making, true);
        if (sv.lock >= 0 && put_sign(making)) {
            sv.making = making;
            return true;
        }
        errno = sv.lock < 0 ? EBUSY : errno;
    } else if (g_file_test(making, G_FILE_TEST_EXISTS)) {
        errno = EEXIST;
    }
    g_free(making);
    return false;
}

/* A directory in a run would go, or be copied, with it. */
static bool is_in_run(const char *dir)
{
    g_autofree char *folder = g_path_get_dirname(dir);
    g_autofree char *real = realpath(folder, NULL);
    g_autofree char *run = realpath(tt_session.dir, NULL);
    size_t len = run ? strlen(run) : 0;

    return run && real && !strncmp(real, run, len) &&
        (!real[len] || real[len] == '/');
}

static bool has_control(const char *name)
{
    while (*name && !g_ascii_iscntrl(*name)) {
        name++;
    }
    return *name;
}

static bool is_fit(const char *name, const char *dir, Error **errp)
{
    g_autofree char *last = g_path_get_basename(name);

    if (has_control(name)) {
        error_setg(errp, "the name has a line break or another control character: "
                   "give another one");
    } else if (g_str_has_suffix(name, SAVING)) {
        error_setg(errp, "'%s' is what a window is named until it is whole: give "
                   "another name", name);
    } else if (!last[strspn(last, "./")]) {
        error_setg(errp, "'%s' is no name for a new directory: give one that does "
                   "not exist yet", name);
    } else if (is_in_run(dir)) {
        error_setg(errp, "'%s' is inside of the recording's own directory: give a "
                   "place beside it", name);
    } else {
        return tt_path_is_outside(dir, errp);
    }
    return false;
}

/* @name: beside the recording's directory; with a slash, anywhere. NULL: save-1,
 * save-2, ...; that is then *@mark. What is made is sv.making. */
static char *make_directory(const char *name, char **mark, Error **errp)
{
    for (unsigned n = 1; n < 100000; n++) {
        g_autofree char *fresh = g_strdup_printf("save-%u", n);
        const char *suffix = name ?: fresh;
        g_autofree char *dir = strchr(suffix, '/') ?
            tt_path_absolute(suffix) :
            g_strdup_printf("%s-%s", tt_session.dir, suffix);

        if (!is_fit(suffix, dir, errp)) {
            return NULL;
        }
        if (begin_making(dir)) {
            *mark = strchr(suffix, '/') ? NULL : g_strdup(suffix);
            return g_steal_pointer(&dir);
        }
        if (name || errno != EEXIST) {
            error_setg_errno(errp, errno, "cannot make the directory '%s' for "
                             "the window: %s", tt_printable(dir), errno == ENOENT ?
                             "make the directory that it is to lie in" :
                             "give another name");
            return NULL;
        }
    }
    error_setg(errp, "there are too many saved windows beside '%s'",
               tt_printable(tt_session.dir));
    return NULL;
}

static bool may_save(const char *name, Error **errp)
{
    if (tt_past) {
        error_setg(errp, "the past is shown: go to the present first ('tt goto "
                   "end')");
    } else if (!tt_is_live(errp)) {
        /* said */
    } else if (!tt_recording()) {
        error_setg(errp, "tt save keeps the window of a recording: this is a "
                   "replay");
    } else if (!tt_flight_is_on()) {
        error_setg(errp, "this recording keeps everything, there is no window "
                   "to save: see last= of -tt record");
    } else if (sv.busy) {
        error_setg(errp, "a window is being saved: wait for its end");
    } else {
        return !name || strchr(name, '/') || tt_mark_check(name, errp);
    }
    return false;
}

/* The log up to here is in parts that do not change any more. */
static bool cut(const char *to, Error **errp)
{
    g_autofree char *text = g_strdup_printf("a window ends here, for %s", to);
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
        error_setg(errp, "the log could not be cut here: no new part of it can "
                   "be made in '%s'", tt_printable(tt_session.dir));
        return false;
    }
    return true;
}

bool tt_save_begin(const char *name, bool is_marked, TtSaveDone *done,
                   void *opaque, Error **errp)
{
    g_autofree char *mark = NULL;
    uint64_t pos;
    char *to;

    if (!may_save(name, errp)) {
        return false;
    }
    if (!tt_rundir_check(errp)) {
        return false;
    }
    remove_leftovers();
    to = make_directory(name, &mark, errp);
    if (!to) {
        return false;
    }
    if ((mark && !is_marked && !tt_mark_add(mark, &pos, errp)) ||
        !cut(to, errp)) {
        remove_again(sv.making);
        close(sv.lock);
        g_clear_pointer(&sv.making, g_free);
        g_free(to);
        return false;
    }
    sv.busy = true;
    sv.from = g_strdup(tt_session.dir);
    sv.to = to;
    sv.host_ns = tt_record_ns();
    memcpy(sv.uuid, tt_session.manifest.uuid, sizeof(sv.uuid));
    sv.call = done;
    sv.opaque = opaque;
    tt_cpstore_save();
    return true;
}
