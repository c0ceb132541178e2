/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file RUN/marks: names that replays gave to positions, a line each:
 * "POSITION NAME". It may come from anybody.
 *
 * A line counts when it is whole, its newline included: a part of one, left by a full
 * disk or a power cut, does not. Lines that make no sense are skipped.
 *
 * Context: one thread at a time. Stability: the text format is public.
 */
#ifndef TT_MARKS_H
#define TT_MARKS_H

#include "io/tt-base.h"
#include "io/tt-io.h"
#include "log/tt-log.h"

#define TT_MARKS_BYTES_MAX  (1u << 20)
#define TT_MARK_NAME_BYTES_MAX 200
#define TT_MARK_NAME_MAX 64             /* of a mark that is added now */

typedef enum TtMarkName {
    TT_MARK_NAME_FIT,
    TT_MARK_NAME_BAD,           /* too long, or it has other characters */
    TT_MARK_NAME_TAKEN,         /* another place is named so, or it is a number */
} TtMarkName;

/* May a new mark have this name? Up to TT_MARK_NAME_MAX letters, digits, '-', '_'
 * and '.', no '-' in front; no number, "start" or "end". O(length). */
TtMarkName tt_mark_name_check(const char *name);

/* @name: ended by 0, valid during the call; any bytes but 0 and newline. */
typedef void TtMarkFound(void *opaque, const char *name, uint64_t pos);

/* Every line that counts, in order. Returns the number of the first one, from 1 on,
 * that makes no sense or is not whole; 0: there is none. O(len). */
unsigned tt_marks_parse(const char *text, size_t len, TtMarkFound *found,
                        void *opaque);
/* The same of a file. TT_OK, or what @io failed with; TT_ERR_LIMIT: no file of
 * marks is that long. @bad may be NULL. */
TtStatus tt_marks_load(TtIo *io, TtMarkFound *found, void *opaque,
                       unsigned *bad, TtDiag *diag);
/*
 * tt_marks_append: add a line, and flush it to disk
 * An incomplete line at the end of the file is cut off first. When it fails,
 * the file has the lines it had, and perhaps a part of one; TT_ERR_LIMIT: it is
 * full.
 */
TtStatus tt_marks_append(TtIo *io, const char *name, uint64_t pos,
                         TtDiag *diag);

/* One name among them: a TtMarkFound whose @opaque is such a search. The last one of a
 * name counts. */
typedef struct TtMarkSearch {
    const char *name;
    uint64_t pos;
    bool is_found;
} TtMarkSearch;
void tt_mark_search(void *opaque, const char *name, uint64_t pos);

/* ---- of a whole run (tt-marks-of-run.c): the last one of a name counts ---- */

/* A regular file, or none yet: in someone else's run it may lead anywhere. */
bool tt_marks_is_plain(const char *path);
/* Those of @dir/marks; none, if that cannot be read. */
void tt_marks_of_file(const char *dir, TtMarkFound *found, void *opaque);
/* Those of the log, as far as it can be read. Reads all of it. */
void tt_marks_of_log(TtLogReader *log, TtMarkFound *found, void *opaque);
/* Both, of the run in @dir: the file's come last. What the log cannot be opened
 * for. */
TtStatus tt_marks_of_run(const char *dir, TtMarkFound *found, void *opaque,
                         TtDiag *diag);

#endif
