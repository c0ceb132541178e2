/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group live: its directory. If the group could not begin, what was made there is taken
 * away, so that the same command can be given again; if it was killed, the next one does so.
 * What was recorded stays.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE                 /* nftw */
#endif
#include "tt-tool-group.h"
#include "log/tt-logparts.h"
#include "run/tt-manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORIES_MAX 16          /* that are open at a time */
#define LOCK_NAME       ".live"     /* no member is called so */
#define LOCK_NEW        ".live.new" /* until it is locked, and says what it is */
#define LOCK_TEXT       "tt group live\n"
#define LOCK_SECONDS    10          /* members whose parent was killed end soon */

/* What a recorder makes before it records. */
static bool is_of_beginning(const char *name)
{
    static const char *const names[] = { "pages", "checkpoints", "disks", "marks", NULL };

    return g_str_has_prefix(name, "manifest") || g_strv_contains(names, name);
}

/* Is there no log, and nothing else that only a run has that recorded? */
static bool is_just_begun(const char *run)
{
    g_autofree char *path = g_build_filename(run, "manifest", NULL);
    g_autoptr(GDir) d = NULL;
    TtManifest m = { 0 };
    const char *name = NULL;
    bool is;

    if (g_access(run, F_OK) && errno == ENOENT) {
        return true;
    }
    d = g_dir_open(run, 0, NULL);
    while (d && (name = g_dir_read_name(d)) && is_of_beginning(name)) {
    }
    if (!d || name) {
        return false;
    }
    is = !g_file_test(path, G_FILE_TEST_EXISTS) ||
        (tt_manifest_load(path, &m, NULL) == TT_OK && m.features & TT_FEATURE_PARENT);
    tt_manifest_cleanup(&m);
    return is;
}

/* A member that stood still all the time has recorded nothing. NULL: that is sure; or why what
 * is there stays. */
static char *why_stays(const char *run, bool *is_known)
{
    TtLogReader *r = NULL;
    ToolTotals t;
    TtDiag diag = { 0 };
    TtStatus st;
    TtIo *io;

    st = tt_logparts_open(run, &io, &diag);
    if (st != TT_OK && diag.os_errno == ENOENT && is_just_begun(run)) {
        return NULL;
    }
    st = st == TT_OK ? tt_log_reader_open_part(io, &r, &diag) : st;
    *is_known = st >= 0;
    if (st < 0) {
        tt_log_reader_free(r);
        return g_strdup_printf("it is not known whether '%s' has recorded something (%s)", run,
                               diag.text);
    }
    t = tool_totals(r);
    tt_log_reader_free(r);
    return t.end_pos > t.first_pos ? g_strdup_printf("'%s' has recorded something", run) :
        NULL;
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at)
{
    return remove(path);
}

/* Symbolic links are not followed. */
static bool remove_all(const char *path)
{
    return nftw(path, remove_one, DIRECTORIES_MAX, FTW_DEPTH | FTW_PHYS) == 0 ||
        errno == ENOENT;
}

/* What the user's options of QEMU have let it make, and nothing has come into. */
static void remove_empty_files(const char *dir)
{
    GDir *d = g_dir_open(dir, 0, NULL);
    const char *entry;

    while (d && (entry = g_dir_read_name(d))) {
        g_autofree char *path = g_build_filename(dir, entry, NULL);
        struct stat st;

        if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && !st.st_size) {
            unlink(path);
        }
    }
    if (d) {
        g_dir_close(d);
    }
}

/* False: one has recorded something, or it cannot be deleted. */
static bool take_away(const GroupPlace *p, bool is_quiet)
{
    g_autofree char *lock = g_build_filename(p->dir, LOCK_NAME, NULL);
    g_autofree char *own = g_build_filename(p->dir, GROUP_FRAMES, NULL);

    for (unsigned i = 0; i < p->runs->len; i++) {
        bool is_known;
        g_autofree char *why = why_stays(p->runs->pdata[i], &is_known);

        if (why) {
            if (!is_quiet || !is_known) {
                tool_complain("%s, so '%s' stays as it is: delete it if you do not need it",
                              why, p->dir);
            }
            return false;
        }
    }
    for (unsigned i = 0; i < p->runs->len; i++) {
        if (!remove_all(p->runs->pdata[i])) {
            tool_complain("cannot delete '%s': %s", (const char *)p->runs->pdata[i],
                          g_strerror(errno));
        }
    }
    for (unsigned i = 0; i < p->files->len; i++) {
        unlink(p->files->pdata[i]);
    }
    remove_empty_files(p->dir);
    if (!p->had_frames) {
        rmdir(p->frames ?: own);        /* nobody has sent anything */
    }
    unlink(lock);
    if (rmdir(p->dir)) {
        tool_complain("'%s' stays, since there is something in it that this command has not "
                      "made", p->dir);
        return false;
    }
    return true;
}

/* ---- the directory ---- */

/* Members inherit it, and so hold it until they have ended. -1: errno says why. */
static int make_lock(const GroupPlace *p)
{
    g_autofree char *path = g_build_filename(p->dir, LOCK_NAME, NULL);
    g_autofree char *new = g_build_filename(p->dir, LOCK_NEW, NULL);
    int fd = open(new, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600), err;
    ssize_t n;

    if (fd < 0) {
        return -1;
    }
    n = write(fd, LOCK_TEXT, strlen(LOCK_TEXT));
    if (n == (ssize_t)strlen(LOCK_TEXT) && !flock(fd, LOCK_EX | LOCK_NB) &&
        !rename(new, path)) {
        return fd;
    }
    err = n < 0 || n == (ssize_t)strlen(LOCK_TEXT) ? errno : ENOSPC;
    unlink(new);
    close(fd);
    errno = err;
    return -1;
}

/* That of an earlier command, of the same user. -1: there is none. */
static int open_lock(const char *path)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char text[sizeof(LOCK_TEXT)];
    struct stat st;

    if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
                    pread(fd, text, sizeof(text), 0) != (ssize_t)strlen(LOCK_TEXT) ||
                    memcmp(text, LOCK_TEXT, strlen(LOCK_TEXT)))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* False: said why. */
static bool is_locked(const GroupPlace *p, int fd)
{
    int64_t end_us = g_get_monotonic_time() + LOCK_SECONDS * G_USEC_PER_SEC;

    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (p->is_told && *p->is_told) {
            tool_complain("the group does not go on: this command was told to end");
            return false;
        }
        if (errno != EWOULDBLOCK && errno != EINTR) {
            tool_complain("cannot lock '%s/" LOCK_NAME "': %s", p->dir, g_strerror(errno));
            return false;
        }
        if (g_get_monotonic_time() > end_us) {
            tool_complain("another tt group live is at work in '%s'", p->dir);
            return false;
        }
        g_usleep(50000);
    }
    return true;
}

/* Another command may have deleted it by now, or even made a new one. */
static bool is_there(int fd, const char *path)
{
    struct stat ours, there;

    return !fstat(fd, &ours) && !lstat(path, &there) && ours.st_dev == there.st_dev &&
        ours.st_ino == there.st_ino;
}

/* What a command that was killed has left is taken away. True also if there is no such thing.
 * False: it stays, said why. */
static bool take_away_left(const GroupPlace *p)
{
    g_autofree char *path = g_build_filename(p->dir, LOCK_NAME, NULL);
    bool is_gone;
    int fd;

    while ((fd = open_lock(path)) >= 0) {
        if (!is_locked(p, fd)) {
            close(fd);
            return false;
        }
        if (is_there(fd, path)) {
            break;
        }
        close(fd);
    }
    if (fd < 0) {
        return true;
    }
    is_gone = take_away(p, false);
    close(fd);
    if (is_gone) {
        tool_complain("an earlier tt group live into '%s' was killed: what it had left is "
                      "deleted", p->dir);
    }
    return is_gone;
}

/* Has a command like this one made it, and has its group gone on? */
static bool has_made(const GroupPlace *p)
{
    for (unsigned i = 0; i < p->runs->len; i++) {
        g_autofree char *path = g_build_filename(p->runs->pdata[i], "manifest", NULL);

        if (g_file_test(path, G_FILE_TEST_EXISTS)) {
            return true;
        }
    }
    return false;
}

static void complain_make(const GroupPlace *p, int error)
{
    g_autofree char *parent = g_path_get_dirname(p->dir);
    const char *why = g_strerror(error);

    if (error == EEXIST) {
        why = has_made(p) ? "it exists, with runs in it that an earlier tt group live has "
            "made; delete it if you do not need them, or give the name of a new one" :
            "it exists; give the name of a new one";
    } else if (error == ENOENT) {
        why = g_file_test(parent, G_FILE_TEST_IS_DIR) ?
            "its file system has no place for it; choose another one" :
            "the one that it would be in does not exist; create that first (mkdir -p)";
    }
    tool_complain("cannot create the directory '%s': %s", p->dir, why);
}

/* Did @path exist before p->dir did? */
static bool was_there(const GroupPlace *p, const char *path)
{
    size_t len = strlen(p->dir);

    return g_file_test(path, G_FILE_TEST_EXISTS) &&
        !(g_str_has_prefix(path, p->dir) && path[len] == '/');
}

bool group_place_make(GroupPlace *p)
{
    bool is_made;

    p->had_frames = p->frames && was_there(p, p->frames);
    is_made = mkdir(p->dir, 0700) == 0;
    if (!is_made && errno == EEXIST) {
        if (!take_away_left(p)) {
            return false;
        }
        is_made = mkdir(p->dir, 0700) == 0;
    }
    if (!is_made) {
        complain_make(p, errno);
        return false;
    }
    p->lock = make_lock(p);
    if (p->lock < 0) {
        tool_complain("cannot write to the directory '%s': %s", p->dir, g_strerror(errno));
        group_place_drop(p, false);
        return false;
    }
    return true;
}

void group_place_keep(GroupPlace *p)
{
    g_autofree char *path = g_build_filename(p->dir, LOCK_NAME, NULL);

    if (p->lock >= 0) {
        unlink(path);
        close(p->lock);
        p->lock = -1;
    }
}

bool group_place_drop(GroupPlace *p, bool is_quiet)
{
    bool is_gone = take_away(p, is_quiet);
    int lock = p->lock;

    p->lock = -1;
    if (!is_gone) {
        g_autofree char *path = g_build_filename(p->dir, LOCK_NAME, NULL);

        unlink(path);
    }
    if (lock >= 0) {
        close(lock);
    }
    return is_gone;
}
