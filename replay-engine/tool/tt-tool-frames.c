/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the frame stores of a run's group are now: runs and stores may have been moved or
 * copied together, and those of a copy are not those of the original.
 */
#include "tt-tool.h"
#include "net-tt/tt-framestore.h"

/* What -tt was followed by; g_free. NULL: it was not, or that is not known. */
static char *recorded_option(const TtManifest *m)
{
    g_auto(GStrv) args = NULL;
    char *value = NULL;

    if (!*m->directory || !g_shell_parse_argv(m->command_line, NULL, &args, NULL)) {
        return NULL;
    }
    for (char **a = args; a[0] && a[1]; a++) {
        if (!strcmp(*a + g_str_has_prefix(*a, "--"), "-tt")) {
            g_free(value);
            value = g_strdup(a[1]);
        }
    }
    return value;
}

/* Beside the run, or below its parent directory, it is there now, too: the rule of
 * path_from_run in record/tt-record-frames.c. A link is not where the run is. */
static char *moved(const char *frames, const char *recorded_run, const char *run)
{
    g_autofree char *was = g_path_get_dirname(recorded_run);
    g_autofree char *up = g_build_filename(run, "..", NULL);
    g_autofree char *is = tt_io_posix_absolute(up) ?: g_path_get_dirname(run);
    size_t len = strlen(was);

    return g_str_has_prefix(frames, was) && frames[len] == '/' ?
        g_build_filename(is, frames + len + 1, NULL) : g_strdup(frames);
}

char *tool_frames_dir(const char *run, const TtManifest *m)
{
    g_autofree char *option = NULL, *frames = NULL, *to = NULL, *whole = NULL;

    if (m->features & TT_FEATURE_FRAMES) {
        g_autofree char *dir = tt_runstore_frames(m, run);

        return tt_io_posix_absolute(dir) ?: g_steal_pointer(&dir);
    }
    option = recorded_option(m);
    frames = option ? tool_option_key(option, "frames") : NULL;
    if (!frames) {
        return NULL;
    }
    to = tool_option_key(option, g_str_has_prefix(option, "branch") ? "to" : "dir");
    whole = g_canonicalize_filename(frames, m->directory);
    if (to) {
        g_autofree char *recorded = g_canonicalize_filename(to, m->directory);

        return moved(whole, recorded, run);
    }
    return g_steal_pointer(&whole);
}

int tool_choose_frames(const ToolArgs *a, const char *run, const TtManifest *m, char **dir)
{
    const char *given = tool_value(a, "--frames");

    *dir = tool_frames_dir(run, m);
    if (!given) {
        return TOOL_FINE;
    }
    if (!*given || !*dir) {
        return tool_usage(a->command, *given ? "--frames: the recording has no frame stores" :
                          "--frames is empty: give the directory of the frame stores");
    }
    g_free(*dir);
    *dir = tool_whole_path(given);
    return *dir ? TOOL_FINE : TOOL_PROBLEM;
}

/* ---- what nobody has any more ---- */

static bool has_sent(TtLogReader *r)
{
    bool has = false;

    for (uint64_t s = tt_log_reader_first(r); !has && s < tt_log_reader_end(r); s++) {
        TtSegment *seg;

        if (tt_log_reader_load(r, s, &seg, NULL) == TT_OK) {
            for (uint32_t i = 0; !has && i < seg->n_events; i++) {
                has = seg->events[i].kind == TT_EV_FRAME_OUT;
            }
            tt_segment_unref(seg);
        }
    }
    return has;
}

char *tool_frames_note(const char *run, const TtManifest *m, TtLogReader *r)
{
    g_autofree char *dir = m->features & TT_FEATURE_FRAMES ? tool_frames_dir(run, m) : NULL;
    g_autofree char *own = dir ? tt_framestores_path(dir, m->uuid) : NULL;

    if (!own || g_file_test(own, G_FILE_TEST_EXISTS) || !has_sent(r)) {
        return NULL;
    }
    return g_file_test(dir, G_FILE_TEST_EXISTS) ?
        g_strdup_printf("the frame store of this run is missing in '%s': runs that got its "
                        "frames may need it", dir) :
        g_strdup_printf("the frame stores '%s' are missing: runs that got frames of this one "
                        "may need them", dir);
}
