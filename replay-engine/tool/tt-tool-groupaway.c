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

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORIES_MAX 16          /* that are open at a time */
#define LOCK_NAME       ".live"     /* no member is called so */
#define LOCK_SECONDS    10          /* members whose parent was killed end soon */

/* A member that stood still all the time has recorded nothing. */
static bool has_recorded(const char *run)
{
    TtLogReader *r = NULL;
    ToolTotals t;
    TtIo *io;
    bool has;

    if (tt_logparts_open(run, &io, NULL) != TT_OK) {
        return false;
    }
    if (tt_log_reader_open_part(io, &r, NULL) < 0 && !r) {
        return true;                        /* nobody knows */
    }
    t = tool_totals(r);
    has = t.end_pos > t.first_pos;
    tt_log_reader_free(r);
    return has;
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
    for (unsigned i = 0; i < p->runs->len; i++) {
        if (has_recorded(p->runs->pdata[i])) {
            if (!is_quiet) {
                tool_complain("'%s' has recorded something, so '%s' stays as it is: delete it "
                              "if you do not need it", (const char *)p->runs->pdata[i],
                              p->dir);
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
    remove_empty_files(p->dir);     /* also the lock */
    if (rmdir(p->dir)) {
        tool_complain("'%s' stays, since there is something in it that this command has not "
                      "made", p->dir);
        return false;
    }
    return true;
}

/* ---- the directory ---- */

/* Members inherit it, and so hold it until they have ended. */
static int open_lock(const GroupPlace *p, int flags)
{
    g_autofree char *path = g_build_filename(p->dir, LOCK_NAME, NULL);

    return open(path, O_RDWR | O_NOFOLLOW | flags, 0600);
}

static bool is_locked_within(int fd, int seconds)
{
    int64_t end_us = g_get_monotonic_time() + seconds * G_USEC_PER_SEC;

    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK || g_get_monotonic_time() > end_us) {
            return false;
        }
        g_usleep(50000);
    }
    return true;
}

/* Is it gone now, or was it left by nobody that is known? False: said why. */
static bool take_away_left(const GroupPlace *p)
{
    int fd = open_lock(p, O_CLOEXEC);
    bool is_gone;

    if (fd < 0) {
        return true;
    }
    if (!is_locked_within(fd, LOCK_SECONDS)) {
        close(fd);
        tool_complain("another tt group live is at work in '%s'", p->dir);
        return false;
    }
    is_gone = take_away(p, false);
    close(fd);
    if (is_gone) {
        tool_complain("an earlier tt group live into '%s' was killed: what it had left is "
                      "deleted", p->dir);
    }
    return is_gone;
}

bool group_place_make(GroupPlace *p)
{
    bool is_made = mkdir(p->dir, 0700) == 0;

    if (!is_made && errno == EEXIST) {
        if (!take_away_left(p)) {
            return false;
        }
        is_made = mkdir(p->dir, 0700) == 0;
    }
    if (!is_made) {
        tool_complain("cannot create the directory '%s': %s", p->dir, errno == ENOENT ?
                      "the one that it would be in does not exist; create that first "
                      "(mkdir -p)" : g_strerror(errno));
        return false;
    }
    p->lock = open_lock(p, O_CREAT | O_EXCL);
    if (p->lock < 0 || flock(p->lock, LOCK_EX | LOCK_NB)) {
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
