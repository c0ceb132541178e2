/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of files and directories, as users give them and as they are shown.
 *
 * A daemonized QEMU works in "/": names from a monitor are still relative to the
 * directory that it was started in. Context: any thread.
 */
#include "qemu/osdep.h"
#include "session/tt-paths.h"
#include "io/tt-base.h"
#include "io/tt-io.h"
#include "run/tt-runstore.h"
#include "qapi/error.h"
#include "system/os-posix.h"

static const char *started_in;          /* NULL: it had no name by then */

static void __attribute__((constructor)) note_start(void)
{
    started_in = getcwd(NULL, 0);
}

const char *tt_start_directory(void)
{
    return is_daemonized() ? started_in : NULL;
}

char *tt_path_absolute(const char *path)
{
    const char *start = g_path_is_absolute(path) ? NULL : tt_start_directory();
    g_autofree char *whole = start ? g_build_filename(start, path, NULL) :
        g_strdup(path);

    return tt_io_posix_absolute(whole) ?: g_steal_pointer(&whole);
}

bool tt_path_is_outside(const char *path, Error **errp)
{
    g_autofree char *run = tt_runstore_enclosing(path);

    if (run) {
        error_setg(errp, "'%s' would be inside the run '%s': give a path outside "
                   "it", tt_printable(path), tt_printable(run));
    }
    return !run;
}

const char *tt_printable(const char *text)
{
    g_autofree char *shown = tt_replace_controls(g_strdup(text ?: ""), '?');

    return g_intern_string(shown);
}
