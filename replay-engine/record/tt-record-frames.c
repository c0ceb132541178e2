/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording with frame stores: their directory, which the members of a group share.
 */
#include "qemu/osdep.h"
#include "tt-record-frames-int.h"
#include "record/tt-record-options.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "qapi/error.h"

/* The runs of a group and its stores may be moved together. */
static char *path_from_run(const char *dir)
{
    g_autofree char *run = tt_path_absolute(tt_session.dir);
    g_autofree char *folder = g_path_get_dirname(run);
    size_t len = strlen(folder);

    return g_str_has_prefix(dir, folder) && dir[len] == '/' ?
        g_build_filename("..", dir + len + 1, NULL) : g_strdup(dir);
}

/* Of what need not be there yet; g_free. */
static char *real_path(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path), *name = g_path_get_basename(path);
    char *real = realpath(path, NULL), *above = real ? NULL : realpath(folder, NULL);
    char *whole = real ? g_strdup(real) : above ? g_build_filename(above, name, NULL) :
        g_strdup(path);

    free(real);
    free(above);
    return whole;
}

/* The run that is about to be recorded; tt_path_is_outside knows those that are there. */
static bool is_in_own_run(const char *dir)
{
    g_autofree char *path = tt_session.dir ? tt_path_absolute(tt_session.dir) : NULL;
    g_autofree char *run = path ? real_path(path) : NULL, *stores = real_path(dir);
    size_t len = run ? strlen(run) : 0;

    return run && g_str_has_prefix(stores, run) && (!stores[len] || stores[len] == '/');
}

bool tt_record_frames_check(Error **errp)
{
    const char *dir = tt_record_options.frames;
    int error;

    if (!dir) {
        return true;
    }
    if (!tt_path_is_outside(dir, errp)) {
        return false;
    }
    if (is_in_own_run(dir)) {
        error_setg(errp, "the frame stores cannot be in the run's own directory, '%s': give a "
                   "directory beside the runs of the group (frames=)",
                   tt_printable(tt_session.dir));
        return false;
    }
    error = mkdir(dir, 0700) ? errno : 0;
    if (error && (error != EEXIST || !g_file_test(dir, G_FILE_TEST_IS_DIR))) {
        error_setg_errno(errp, error == EEXIST ? ENOTDIR : error, "cannot create the "
                         "directory of the frame stores '%s': %s (frames=)",
                         tt_printable(dir), error == ENOENT ? "create first the one that it "
                         "is to be in" : "give another one");
        return false;
    }
    if (access(dir, W_OK | X_OK)) {
        error_setg_errno(errp, errno, "cannot write to the directory of the frame stores "
                         "'%s': give another one (frames=)", tt_printable(dir));
        return false;
    }
    return true;
}

void tt_record_frames_note(TtManifest *m)
{
    if (tt_record_options.names_frames) {
        m->features |= TT_FEATURE_FRAMES;
        m->frames = path_from_run(tt_record_options.frames);
    }
}
