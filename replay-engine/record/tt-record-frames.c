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

bool tt_record_frames_check(Error **errp)
{
    const char *dir = tt_record_options.frames;

    if (!dir) {
        return true;
    }
    if (!tt_path_is_outside(dir, errp)) {
        return false;
    }
    if (mkdir(dir, 0700) && (errno != EEXIST || !g_file_test(dir, G_FILE_TEST_IS_DIR))) {
        int error = errno;

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
