/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of a file of the page store: was its writer cut off there, or is it
 * damaged? (P3 and J1 of docs/reference/page-store-format.rst.)
 *
 * Context: one thread at a time. Blocks only in TtIo. Private to the page store.
 */
#ifndef TT_PAGETAIL_H
#define TT_PAGETAIL_H

#include "io/tt-io.h"

/* How the parts of the file begin. */
typedef struct TtPageTail {
    const char *name;           /* of the file, for the sentence */
    const char *magic;          /* 8 bytes */
    uint32_t header_bytes, header_bytes_max;
    uint32_t length_at, sum_at; /* offsets in the header */
    uint64_t seed;
    /* Bytes of the whole part that @header, which is right, begins. */
    uint64_t (*part_bytes)(const uint8_t *header);
} TtPageTail;

/*
 * tt_page_tail: what is after @end, where no whole part stands, up to @size
 * Returns TT_OK: nothing, or what a killed writer or a power cut leave;
 * TT_ERR_FORMAT with one sentence: damage; TT_ERR_IO. Reads up to 2 MiB of
 * zeros.
 */
TtStatus tt_page_tail(TtIo *io, uint64_t end, uint64_t size,
                      const TtPageTail *how, TtDiag *diag);

#endif
