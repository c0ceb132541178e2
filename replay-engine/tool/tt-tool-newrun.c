/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What QEMU would refuse of a recording that tt branch or tt term is to start: said before
 * that, and also where the command is only printed.
 */
#include "tt-tool.h"
#include "log/tt-logparts.h"
#include "run/tt-runfull.h"
#include "run/tt-runlock.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* One that is not there may be lost: then what can be done about none is of no use. */
static void complain_missing(const char *run, const TtPageStore *store, const TtDiag *why)
{
    const TtDiag *damage = tt_pagestore_damage(store, 0) ?: tt_pagestore_damage(store, 1);

    if (damage) {
        tool_complain("checkpoints of '%s' are lost, and perhaps this one: %s", run,
                      damage->text);
    } else {
        tool_problem(why);
    }
}

bool tool_has_full(const char *run, const TtManifest *m, const char *at)
{
    TtPageStore *store;
    uint32_t id;
    TtDiag diag;
    TtStatus st = tt_runstore_open(run, m, 0, &store, &diag);

    if (st != TT_OK) {
        tool_complain("no branch can start from '%s': %s", run, diag.text);
        return false;
    }
    st = tt_runfull_find(run, store, at, &id, &diag);
    if (st != TT_OK) {
        complain_missing(run, store, &diag);
    }
    tt_pagestore_free(store);
    return st == TT_OK;
}

static bool has_run(const char *dir)
{
    g_autofree char *manifest = g_build_filename(dir, "manifest", NULL);
    g_autofree char *log = tt_logparts_path(dir, 0);

    return g_file_test(manifest, G_FILE_TEST_EXISTS) || g_file_test(log, G_FILE_TEST_EXISTS);
}

/* As a file system just made has. */
static bool is_empty(const char *dir)
{
    GDir *d = g_dir_open(dir, 0, NULL);
    const char *name = NULL;

    while (d && (name = g_dir_read_name(d)) && !strcmp(name, "lost+found")) {
    }
    if (d) {
        g_dir_close(d);
    }
    return !name;
}

bool tool_can_record_into(const char *to)
{
    g_autofree char *dir = tool_whole_path(to);
    struct stat st;

    if (!dir || !tool_is_fit(dir)) {
        return false;
    }
    if (stat(dir, &st)) {
        if (errno == ENOENT) {          /* where it is to be, somebody may make till then */
            return true;
        }
        tool_complain("cannot create '%s': %s: give another directory with --to", dir,
                      g_strerror(errno));
    } else if (!S_ISDIR(st.st_mode)) {
        tool_complain("'%s' is not a directory: give another one with --to", dir);
    } else if (tt_runlock_is_held(dir)) {
        tool_complain("another process is recording into '%s': give another directory with "
                      "--to", dir);
    } else if (has_run(dir)) {
        tool_complain("'%s' already contains a run: give another directory with --to, or "
                      "delete the run", dir);
    } else if (!is_empty(dir)) {
        tool_complain("'%s' contains other files: give a directory with --to that is empty, "
                      "or that does not exist", dir);
    } else {
        return true;
    }
    return false;
}
