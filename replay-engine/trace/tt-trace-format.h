/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Places in a branch trace: docs/reference/trace-format.rst is the authority.
 */
#ifndef TT_TRACE_FORMAT_H
#define TT_TRACE_FORMAT_H

#include "trace/tt-trace.h"
#include "io/tt-bytes.h"

#define TT_F_TRACE_MAGIC        "TTVMBRT\n"
#define TT_F_TRACE_BYTES        64u
#define TT_F_TRACE_BYTES_MAX    4096u
enum {
    TT_F_TRACE_LENGTH = 8, TT_F_TRACE_MUST_KNOW = 16, TT_F_TRACE_FROM = 24,
    TT_F_TRACE_UUID = 40, TT_F_TRACE_SUM = 56,
};

#define TT_F_CHUNK_MAGIC        "TTVMBRC\n"
#define TT_F_CHUNK_BYTES        64u
#define TT_F_CHUNK_BYTES_MAX    4096u
enum {
    TT_F_CHUNK_LENGTH = 8, TT_F_CHUNK_FLAGS = 12, TT_F_CHUNK_SEQ = 16,
    TT_F_CHUNK_COUNT = 24, TT_F_CHUNK_RAW = 28, TT_F_CHUNK_STORED = 32,
    TT_F_CHUNK_TO = 40, TT_F_CHUNK_BODY_SUM = 48, TT_F_CHUNK_SUM = 56,
};
#define TT_F_CHUNK_LAST         1u
#define TT_F_CHUNK_MUST_KNOW    0xfffeu     /* flags that a reader must know */
#define TT_F_CHUNK_STORED_MAX   (TT_TRACE_CHUNK_MAX + (64u << 10))

/* An entry at its longest: two varints and the vCPU. */
#define TT_F_BRANCH_BYTES_MAX   (2 * TT_VARINT_MAX + 1)

#endif
