/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marks: names for positions. The recorder keeps them in the log; a replay adds
 * its own to the text file RUN/marks, one "POSITION NAME" per line. The last one
 * of a name counts, and those of the file before those of the log. A recorder
 * remembers its own.
 */
#include "qemu/osdep.h"
#include "control/tt-mark.h"
#include "accel-tt/tt-position.h"
#include "io/tt-base.h"
#include "io/tt-io.h"
#include "log/tt-log.h"
#include "log/tt-logparts.h"
#include "record/tt-flight.h"
#include "record/tt-record.h"
#include "record/tt-rundir.h"
#include "replay/tt-replay-log.h"
#include "run/tt-marks.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/cutils.h"

#define MARK_MAX 64

static GHashTable *recorded;        /* name -> position; of this process */
static const char *recorded_dir;    /* the run they belong to */

static gboolean is_before_window(gpointer name, gpointer pos, gpointer opaque)
{
    return *(uint64_t *)pos < tt_flight_start();
}

static void remember(const char *name, uint64_t pos)
{
    uint64_t *p = g_new(uint64_t, 1);

    if (!recorded) {
        recorded = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                         g_free);
    }
    if (recorded_dir != tt_session.dir) {
        g_hash_table_remove_all(recorded);
        recorded_dir = tt_session.dir;
    }
    g_hash_table_foreach_remove(recorded, is_before_window, NULL);
    *p = pos;
    g_hash_table_replace(recorded, g_strdup(name), p);
}

static void each_recorded(TtMarkSeen *seen, void *opaque)
{
    GHashTableIter it;
    gpointer name, pos;

    if (!recorded || recorded_dir != tt_session.dir) {
        return;
    }
    g_hash_table_iter_init(&it, recorded);
    while (g_hash_table_iter_next(&it, &name, &pos)) {
        if (*(uint64_t *)pos < tt_flight_start()) {
            g_hash_table_iter_remove(&it);      /* no longer in the window */
            continue;
        }
        seen(opaque, name, *(uint64_t *)pos);
    }
}

bool tt_mark_check(const char *name, Error **errp)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz"
                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
    uint64_t number;

    if (!n || n > MARK_MAX || name[n] || *name == '-') {
        error_setg(errp, "'%s' is no name for a mark: use up to %d letters, "
                   "digits, '-', '_' and '.', no '-' in front", tt_printable(name),
                   MARK_MAX);
        return false;
    }
    if (!strcmp(name, "start") || !strcmp(name, "end") ||
        qemu_strtou64(name, NULL, 0, &number) == 0) {
        error_setg(errp, "'%s' is no name for a mark: tt goto knows it as "
                   "another place; take a name that is no number, start or end",
                   name);
        return false;
    }
    return true;
}

/* A regular file, or none yet: in someone else's run it may lead anywhere. */
static bool is_plain(const char *path)
{
    struct stat st;

    return lstat(path, &st) ? errno == ENOENT : S_ISREG(st.st_mode);
}

static bool append_to_file(const char *name, uint64_t pos, Error **errp)
{
    g_autofree char *path = g_build_filename(tt_session.dir, "marks", NULL);
    TtIo *io = NULL;
    TtDiag diag;
    TtStatus s;

    if (!tt_rundir_check(errp)) {       /* the past of a recording */
        return false;
    }
    if (!is_plain(path)) {
        error_setg(errp, "cannot add the mark: '%s' is no regular file: remove it, or "
                   "put one there", tt_printable(path));
        return false;
    }
    s = g_file_test(path, G_FILE_TEST_EXISTS) ?
        tt_io_posix_open_append(path, &io, &diag) :
        tt_io_posix_create(path, &io, &diag);
    if (s == TT_OK) {
        s = tt_marks_append(io, name, pos, &diag);
    }
    tt_io_close(io);
    if (s != TT_OK) {
        error_setg(errp, "cannot add the mark: %s", diag.text);
    }
    return s == TT_OK;
}

bool tt_mark_add(const char *name, uint64_t *pos, Error **errp)
{
    TtEvent ev = {
        .kind = TT_EV_MARK, .data = (const uint8_t *)name, .len = strlen(name),
    };

    if (!tt_is_live(errp)) {
        return false;
    }
    if (tt_travel_active()) {
        error_setg(errp, "a movement is under way: wait until the VM stands");
        return false;
    }
    if (!tt_mark_check(name, errp)) {
        return false;
    }
    *pos = tt_position();
    if (tt_recording()) {
        tt_record_event(&ev);
        remember(name, *pos);
        return true;
    }
    return append_to_file(name, *pos, errp);
}

/* ---- looking ---- */

static void each_of_file(const char *dir, TtMarkSeen *seen, void *opaque)
{
    g_autofree char *path = g_build_filename(dir, "marks", NULL);
    TtIo *io;

    if (is_plain(path) && tt_io_posix_open(path, &io, NULL) == TT_OK) {
        (void)tt_marks_load(io, seen, opaque, NULL, NULL);
        tt_io_close(io);
    }
}

static void each_of_segment(TtSegment *s, TtMarkSeen *seen, void *opaque)
{
    for (uint32_t e = 0; e < s->n_events; e++) {
        const TtEvent *ev = &s->events[e];

        if (ev->kind == TT_EV_MARK && ev->len) {
            g_autofree char *name = g_strndup((const char *)ev->data, ev->len);

            seen(opaque, name, ev->pos);
        }
    }
}

static void each_of_log(TtLogReader *r, TtMarkSeen *seen, void *opaque)
{
    for (uint64_t i = tt_log_reader_first(r); i < tt_log_reader_end(r); i++) {
        TtSegment *s;

        if (tt_log_reader_load(r, i, &s, NULL) != TT_OK) {
            break;
        }
        each_of_segment(s, seen, opaque);
        tt_segment_unref(s);
    }
}

void tt_mark_each(TtMarkSeen *seen, void *opaque)
{
    if (tt_replaying()) {
        each_of_log(tt_replay_reader(), seen, opaque);
    }
    each_recorded(seen, opaque);
    each_of_file(tt_session.dir, seen, opaque);
}

typedef struct Wanted {
    const char *name;
    uint64_t pos;
    bool found;
} Wanted;

static void compare(void *opaque, const char *name, uint64_t pos)
{
    Wanted *w = opaque;

    if (!strcmp(name, w->name)) {
        w->pos = pos;
        w->found = true;
    }
}

bool tt_mark_find_in(const char *dir, const char *name, uint64_t *pos,
                     Error **errp)
{
    Wanted w = { .name = name };
    TtLogReader *r = NULL;
    TtDiag diag;
    TtIo *io;

    if (tt_logparts_open(dir, &io, &diag) != TT_OK ||
        (tt_log_reader_open_part(io, &r, &diag) < 0 && !r)) {
        error_setg(errp, "%s", diag.text);
        return false;
    }
    each_of_log(r, compare, &w);
    each_of_file(dir, compare, &w);
    tt_log_reader_free(r);
    if (!w.found) {
        error_setg(errp, "there is no mark '%s' in the run '%s'", name, dir);
        return false;
    }
    *pos = w.pos;
    return true;
}

bool tt_mark_find(const char *name, uint64_t *pos, Error **errp)
{
    Wanted w = { .name = name };

    tt_mark_each(compare, &w);
    if (!*name) {
        error_setg(errp, "the name of a mark is missing behind '@'");
        return false;
    }
    if (!w.found) {
        error_setg(errp, "there is no mark '%s' in this run", name);
        return false;
    }
    *pos = w.pos;
    return true;
}
