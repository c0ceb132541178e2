/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Branch traces: where control went in a part of a run. Format:
 * docs/reference/trace-format.rst.
 *
 * Model: between two entries instructions were executed one after the other; an
 * entry says at which position, and where, execution went on elsewhere. So two
 * traces of the same run are the same bytes of fact, whatever blocks TCG made,
 * and the first entry that differs is the first wrong branch. (XenTT 3.6.)
 *
 * Context: one thread per writer or reader. Blocks in TtIo only.
 * Stability: on-disk format through the document; this API is internal.
 */
#ifndef TT_TRACE_H
#define TT_TRACE_H

#include "io/tt-base.h"
#include "io/tt-io.h"

#define TT_TRACE_CPUS_MAX       8u
#define TT_TRACE_CHUNK_MAX      (1u << 20)  /* bytes of a chunk, decoded */
#define TT_TRACE_CHUNKS_MAX     (1u << 24)
#define TT_TRACE_POS_MAX        (1ull << 60)

typedef struct TtBranch {
    uint64_t pos;               /* position of the first instruction there */
    uint64_t pc;                /* its linear address */
    uint8_t cpu;
    bool is_start;              /* no branch: here the trace of this vCPU begins */
} TtBranch;

/* ---- writing ---- */
typedef struct TtTraceWriter TtTraceWriter;

/* @io is empty and owned from here on, also on failure. @from: the first
 * position that is traced. Returns TT_OK, or what @io failed with. */
TtStatus tt_trace_writer_new(TtIo *io, const uint8_t uuid[16], uint64_t from,
                             TtTraceWriter **out, TtDiag *diag);
/*
 * Appends; asserts that positions do not go back, and the number of the vCPU.
 * Some 5 ns; each hundred thousandth or so compresses a chunk and appends it (10
 * ms). After a failure nothing more is written, and tt_trace_finish says so.
 */
void tt_trace_put(TtTraceWriter *w, const TtBranch *b);
/* The trace is whole up to @to. Returns TT_OK or the first failure; call
 * tt_trace_writer_free all the same. */
TtStatus tt_trace_finish(TtTraceWriter *w, uint64_t to, TtDiag *diag);
uint64_t tt_trace_count(const TtTraceWriter *w);
uint64_t tt_trace_bytes(const TtTraceWriter *w);
void tt_trace_writer_free(TtTraceWriter *w);        /* NULL is fine */

/* ---- reading ---- */
typedef struct TtTraceInfo {
    uint8_t uuid[16];           /* of the run */
    uint64_t from, to;          /* positions; it says nothing of @to itself */
    uint64_t n_branches;
    bool is_torn;               /* the writer was cut off: @to is less than was
                                   asked for */
} TtTraceInfo;

typedef struct TtTraceReader TtTraceReader;

/*
 * tt_trace_open: look through the headers of @io (owned, also on failure)
 * Returns TT_OK, also for one that was cut off; TT_ERR_FORMAT, _VERSION, _LIMIT,
 * _IO, _NOMEM. Cost: a small read for each MiB that was traced.
 */
TtStatus tt_trace_open(TtIo *io, TtTraceReader **out, TtDiag *diag);
const TtTraceInfo *tt_trace_info(const TtTraceReader *r);
/* The entry after the last one; TT_END after all. After an error, which it
 * repeats, only to be freed. */
TtStatus tt_trace_next(TtTraceReader *r, TtBranch *b, TtDiag *diag);
void tt_trace_reader_free(TtTraceReader *r);        /* NULL is fine */

/* ---- comparing ---- */
#define TT_TRACE_SHOWN 8

typedef struct TtTraceDiff {
    uint64_t from, to;          /* the part that both have */
    uint64_t n_same;            /* entries there that are alike, up to the first
                                   that is not */
    unsigned n_before, n_a, n_b;
    TtBranch before[TT_TRACE_SHOWN];        /* the last ones alike */
    TtBranch a[TT_TRACE_SHOWN], b[TT_TRACE_SHOWN];  /* from the difference on;
                                   fewer when one ends */
} TtTraceDiff;

/*
 * tt_trace_compare: the first difference of two fresh readers
 * Returns TT_OK: none; TT_ERR_MISMATCH; TT_ERR_INVALID: not of one run, or no part
 * in common; or what reading failed with, @diag then says of which (its text
 * begins with "the first trace" or "the second trace").
 */
TtStatus tt_trace_compare(TtTraceReader *a, TtTraceReader *b, TtTraceDiff *d,
                          TtDiag *diag);

#endif
