/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt save: the window of a flight recorder becomes a run of its own, which nobody
 * trims any more, and the recording goes on.
 *
 *   BQL: a note into the log; its part ends here --> shelf's thread:
 *        links the parts up to there (old parts do not change any more; on
 *        another file system they are copied), closes the log with a part of its
 *        own, copies the checkpoints' files, and the manifest last
 *   --> main loop: says so
 *
 * A directory without a manifest is no run, so a kill on the way leaves nothing that
 * looks like one. The VM does not stand for any of it; checkpoints wait meanwhile.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* copy_file_range, SEEK_DATA */
#endif
#include "tt-save.h"
#include "tt-flight.h"
#include "tt-shelf.h"
#include "tt/logparts.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "block/aio.h"

#define COPY_BYTES (1u << 20)

static struct {
    bool busy;                  /* BQL */
    bool done;                  /* by the thread; then the rest is BQL's again */
    char *from, *to;
    uint32_t first_part, end_part;      /* parts before the end are linked */
    TtLogPlace end;
    uint64_t host_ns;
    uint8_t uuid[16];
    TtStatus status;
    TtDiag diag;
    TtSaveDone *call;
    void *opaque;
} sv;

/* ---- files: shelf's thread ---- */

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

static TtStatus copy_named(const char *name)
{
    g_autofree char *from = g_build_filename(sv.from, name, NULL);
    g_autofree char *to = g_build_filename(sv.to, name, NULL);

    return g_file_test(from, G_FILE_TEST_IS_REGULAR) ? copy_file(from, to)
        : TT_OK;
}

static TtStatus link_part(uint32_t number)
{
    g_autofree char *from = tt_logparts_path(sv.from, number);
    g_autofree char *to = tt_logparts_path(sv.to, number);

    return link(from, to) == 0 ? TT_OK : copy_file(from, to);
}

static TtStatus end_log(void)
{
    g_autofree char *path = tt_logparts_path(sv.to, sv.end_part);
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
    g_autofree char *to = g_build_filename(sv.to, "disks", NULL);

    if (g_file_test(from, G_FILE_TEST_IS_DIR) && symlink(from, to)) {
        warn_report("tt: cannot link '%s': %s", to, g_strerror(errno));
    }
}

static void sync_directory(void)
{
    int fd = open(sv.to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
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
    s = s == TT_OK ? copy_named("pages") : s;
    s = s == TT_OK ? copy_named("checkpoints") : s;
    s = s == TT_OK ? copy_named("marks") : s;
    s = s == TT_OK ? copy_named("manifest") : s;
    sync_directory();
    return s;
}

/* Only what save_all makes. */
static void remove_again(void)
{
    static const char *const names[] = {
        "manifest", "marks", "checkpoints", "pages", "disks",
    };
    unsigned n;
    g_autofree uint32_t *part = tt_logparts_list(sv.to, &n);

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(sv.to, names[i], NULL);

        unlink(path);
    }
    for (unsigned i = 0; i < n; i++) {
        g_autofree char *path = tt_logparts_path(sv.to, part[i]);

        unlink(path);
    }
    rmdir(sv.to);
}

static void report(void *opaque);

void tt_save_carry_out(void)
{
    sv.status = save_all();
    if (sv.status != TT_OK) {
        remove_again();
    }
    qatomic_store_release(&sv.done, true);
    aio_bh_schedule_oneshot(qemu_get_aio_context(), report, NULL);
}

/* ---- BQL ---- */

static void report(void *opaque)
{
    g_autofree char *from = NULL, *to = NULL;
    TtSaveDone *call = sv.call;
    TtDiag diag = sv.diag;
    TtStatus s = sv.status;

    if (!sv.busy || !qatomic_load_acquire(&sv.done)) {
        return;                         /* it was, by tt_save_settle */
    }
    opaque = sv.opaque;
    from = sv.from;
    to = sv.to;
    memset(&sv, 0, sizeof(sv));
    if (s == TT_OK) {
        error_printf("tt: the window is saved in %s\n", to);
        tt_event_saved(to);
    } else {
        warn_report("tt: the window cannot be saved in '%s': %s", to,
                    diag.text);
    }
    if (call) {
        call(opaque, to, s == TT_OK ? NULL : diag.text);
    }
}

void tt_save_settle(void)
{
    report(NULL);
}

/* @name: beside the recording's directory; with a slash, anywhere. NULL: save-1,
 * save-2, ...; that is then *@mark. */
static char *make_directory(const char *name, char **mark, Error **errp)
{
    for (unsigned n = 1; n < 100000; n++) {
        g_autofree char *fresh = g_strdup_printf("save-%u", n);
        const char *suffix = name ?: fresh;
        char *dir = strchr(suffix, '/') ?
            g_canonicalize_filename(suffix, NULL) :
            g_strdup_printf("%s-%s", tt.dir, suffix);

        if (mkdir(dir, 0700) == 0) {
            *mark = strchr(suffix, '/') ? NULL : g_strdup(suffix);
            return dir;
        }
        if (name || errno != EEXIST) {
            error_setg_errno(errp, errno, "cannot make the directory '%s' for "
                             "the window: give another name", dir);
            g_free(dir);
            return NULL;
        }
        g_free(dir);
    }
    error_setg(errp, "there are too many saved windows beside '%s'", tt.dir);
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
                   "be made in '%s'", tt.dir);
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
    to = make_directory(name, &mark, errp);
    if (!to) {
        return false;
    }
    if ((mark && !is_marked && !tt_mark_add(mark, &pos, errp)) ||
        !cut(to, errp)) {
        rmdir(to);
        g_free(to);
        return false;
    }
    sv.busy = true;
    sv.from = g_strdup(tt.dir);
    sv.to = to;
    sv.host_ns = tt_record_ns();
    memcpy(sv.uuid, tt.manifest.uuid, sizeof(sv.uuid));
    sv.call = done;
    sv.opaque = opaque;
    tt_shelf_save();
    return true;
}
