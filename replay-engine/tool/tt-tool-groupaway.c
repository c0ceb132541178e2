/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt group live that could not begin: takes away what it has made in its directory, so that
 * the same command can be given again. What was recorded stays.
 */
#define _GNU_SOURCE                 /* nftw */
#include "tt-tool-group.h"
#include "log/tt-logparts.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORIES_MAX 16          /* that are open at a time */

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

void group_take_away(const char *dir, const GPtrArray *runs, const GPtrArray *files)
{
    for (unsigned i = 0; i < runs->len; i++) {
        if (has_recorded(runs->pdata[i])) {
            tool_complain("'%s' has recorded something, so '%s' stays as it is: delete it if "
                          "you do not need it", (const char *)runs->pdata[i], dir);
            return;
        }
    }
    for (unsigned i = 0; i < runs->len; i++) {
        if (!remove_all(runs->pdata[i])) {
            tool_complain("cannot delete '%s': %s", (const char *)runs->pdata[i],
                          g_strerror(errno));
        }
    }
    for (unsigned i = 0; i < files->len; i++) {
        unlink(files->pdata[i]);
    }
    remove_empty_files(dir);
    if (rmdir(dir)) {
        tool_complain("'%s' stays, since there is something in it that this command has not "
                      "made", dir);
    }
}
