/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside of the log reader: shared by tt-log-scan.c, which finds the segments
 * and judges the tail when a log is opened, and tt-log-reader.c, the rest.
 *
 * I1: entry i describes segment first.segment + i; all of R3 and all limits hold
 *     for it, and its stored bytes lie inside the file as it was when opened.
 * I2: every TtSegment in the cache holds one reference.
 */
#ifndef TT_LOG_READER_H
#define TT_LOG_READER_H

#include "tt-log-format.h"

#include <assert.h>
#include <glib.h>

#define TT_LOG_CACHE_SEGMENTS 4

typedef struct TtLogSlot {
    uint64_t seq;
    uint64_t used;              /* clock of the last use */
    TtSegment *segment;         /* NULL: free */
} TtLogSlot;

typedef struct TtLogEntry {
    TtSegInfo info;
    uint64_t body_sum;
    uint32_t header_len;
    uint32_t flags;
} TtLogEntry;

struct TtLogReader {
    TtIo *io;
    uint64_t file_bytes;
    uint64_t seed;
    uint8_t uuid[16];
    TtLogPlace first;           /* where the log begins */
    bool is_part;               /* other parts may follow in the file (R11) */
    bool torn;
    TtDiag damage;              /* status TT_OK: none; see open_part */
    GArray *entries;            /* TtLogEntry */
    void *dctx;                 /* ZSTD_DCtx */
    uint64_t clock;
    TtLogSlot cache[TT_LOG_CACHE_SEGMENTS];
};

/* Of segment number @seq, which is there. */
static inline TtLogEntry *tt_log_entry(const TtLogReader *r, uint64_t seq)
{
    assert(seq >= r->first.segment &&
           seq - r->first.segment < r->entries->len);
    return &g_array_index(r->entries, TtLogEntry, seq - r->first.segment);
}

/*
 * tt_log_scan: read the head and walk over the segment headers of @r, whose io
 * and file_bytes are set. Fills uuid, seed, entries and torn.
 * Returns what tt_log_reader_open returns.
 */
TtStatus tt_log_scan(TtLogReader *r, TtDiag *diag);

/* As tt_fail, with the place in the file. */
TtStatus tt_fail_at(TtDiag *diag, TtStatus status, uint64_t offset,
                    const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Reads exactly @len bytes, which lie inside the file. */
TtStatus tt_log_read_all(TtLogReader *r, uint64_t offset, void *buf, size_t len,
                         TtDiag *diag);

/* Reads stored events and payload into @buf and compares their checksum.
 * TT_ERR_FORMAT when it is wrong. */
TtStatus tt_log_read_body(TtLogReader *r, const TtLogEntry *e, uint8_t *buf,
                          TtDiag *diag);

#endif
