/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All marks of a run: those of its log and those of RUN/marks.
 */
#include "log/tt-log.h"
#include "log/tt-logparts.h"
#include "run/tt-marks.h"

#include <errno.h>
#include <glib.h>
#include <sys/stat.h>

bool tt_marks_is_plain(const char *path)
{
    struct stat st;

    return lstat(path, &st) ? errno == ENOENT : S_ISREG(st.st_mode);
}

void tt_marks_of_file(const char *dir, TtMarkFound *found, void *opaque)
{
    g_autofree char *path = g_build_filename(dir, "marks", NULL);
    TtIo *io;

    if (tt_marks_is_plain(path) && tt_io_posix_open(path, &io, NULL) == TT_OK) {
        (void)tt_marks_load(io, found, opaque, NULL, NULL);
        tt_io_close(io);
    }
}

static void of_segment(TtSegment *s, TtMarkFound *found, void *opaque)
{
    for (uint32_t e = 0; e < s->n_events; e++) {
        const TtEvent *ev = &s->events[e];

        if (ev->kind == TT_EV_MARK && ev->len) {
            g_autofree char *name = g_strndup((const char *)ev->data, ev->len);

            found(opaque, name, ev->pos);
        }
    }
}

void tt_marks_of_log(TtLogReader *log, TtMarkFound *found, void *opaque)
{
    for (uint64_t i = tt_log_reader_first(log); i < tt_log_reader_end(log); i++) {
        TtSegment *s;

        if (tt_log_reader_load(log, i, &s, NULL) != TT_OK) {
            break;
        }
        of_segment(s, found, opaque);
        tt_segment_unref(s);
    }
}

void tt_mark_search(void *opaque, const char *name, uint64_t pos)
{
    TtMarkSearch *s = opaque;

    if (!strcmp(name, s->name)) {
        s->pos = pos;
        s->is_found = true;
    }
}

TtStatus tt_marks_of_run(const char *dir, TtMarkFound *found, void *opaque,
                         TtDiag *diag)
{
    TtLogReader *log = NULL;
    TtStatus status;
    TtIo *io;

    status = tt_logparts_open(dir, &io, diag);
    if (status != TT_OK) {
        return status;
    }
    status = tt_log_reader_open_part(io, &log, diag);
    if (status < 0 && !log) {
        return status;
    }
    tt_marks_of_log(log, found, opaque);
    tt_marks_of_file(dir, found, opaque);
    tt_log_reader_free(log);
    return TT_OK;
}
