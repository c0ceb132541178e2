/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Helpers of the log tests: random events, and logs in memory made of them.
 */
#ifndef TT_LOG_UTIL_H
#define TT_LOG_UTIL_H

#include "log/tt-log.h"

#include <glib.h>

extern const uint8_t log_util_uuid[16];

/* What was put into a log, to compare with what comes out. Owns the data. */
typedef struct LogModel {
    GArray *events;             /* TtEvent */
    GArray *segment_ends;       /* uint32: events before the end of segment */
    GPtrArray *data;            /* g_free */
    GRand *rand;
    uint64_t pos;               /* position so far */
} LogModel;

LogModel *log_model_new(uint32_t seed);
void log_model_free(LogModel *m);
/* Any event a writer may put, of a random kind, with values of all sizes. */
TtEvent log_model_random_event(LogModel *m, uint32_t len_max);
/* Appends a copy. */
void log_model_add(LogModel *m, const TtEvent *ev);
/* The segment that is being filled ends here. */
void log_model_cut(LogModel *m);
/* The file: all segments, the last one marked as such if @closed. */
GByteArray *log_model_write(const LogModel *m, bool closed);

/* The same in parts, of which one begins at each segment that is a multiple of
 * @every: their files. The last segment is at number @first + n - 1. */
GPtrArray *log_model_write_parts(const LogModel *m, unsigned every,
                                 const TtLogPlace *first, bool closed);
/* All of @parts from the one at @from on, one after another. */
GByteArray *log_util_join(const GPtrArray *parts, unsigned from);

/* @n_segments of up to 11 random events each, some empty. */
LogModel *log_model_small(uint32_t seed, unsigned n_segments,
                          uint32_t len_max);

/* Opens @bytes, which must lead to the status @want. */
TtLogReader *log_util_open(const uint8_t *bytes, size_t len, TtStatus want);
/* Compares the first @n_segments segments of @r with the model. */
void log_util_check_segments(TtLogReader *r, const LogModel *m,
                             uint32_t n_segments);
/* ... which may have more. */
void log_util_check_segments_at_least(TtLogReader *r, const LogModel *m,
                                      uint32_t n_segments);
void log_util_assert_same(const TtEvent *a, const TtEvent *b);

#endif
