/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of branch traces: any bytes; what is accepted keeps the rules, and
 * is the same as itself when it is compared.
 *
 * Input: a byte of choices, then the file. Choice 0: checksums are mended first.
 */
#include "trace/tt-trace.h"
#include "tt-trace-format.h"

#include <stdlib.h>
#include <glib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

static void mend(uint8_t *p, size_t len)
{
    uint64_t seed, seq = 0;
    size_t at;
    uint32_t n;

    if (len < TT_F_TRACE_BYTES) {
        return;
    }
    n = tt_get_le32(p + TT_F_TRACE_LENGTH);
    if (n >= TT_F_TRACE_BYTES && n <= MIN(len, TT_F_TRACE_BYTES_MAX)) {
        tt_put_le64(p + TT_F_TRACE_SUM,
                    tt_header_sum(p, n, TT_F_TRACE_SUM, 0));
    }
    seed = tt_get_le64(p + TT_F_TRACE_UUID);
    for (at = n; at + TT_F_CHUNK_BYTES <= len; ) {
        uint8_t *h = p + at;
        uint64_t stored = tt_get_le32(h + TT_F_CHUNK_STORED);

        n = tt_get_le32(h + TT_F_CHUNK_LENGTH);
        if (n < TT_F_CHUNK_BYTES || n > TT_F_CHUNK_BYTES_MAX ||
            n + stored > len - at) {
            return;
        }
        tt_put_le64(h + TT_F_CHUNK_SEQ, seq++);
        tt_put_le64(h + TT_F_CHUNK_BODY_SUM,
                    XXH3_64bits_withSeed(h + n, stored, seed));
        tt_put_le64(h + TT_F_CHUNK_SUM,
                    tt_header_sum(h, n, TT_F_CHUNK_SUM, seed));
        at += n + stored;
    }
}

static TtStatus read_all(TtTraceReader *r, uint64_t *n)
{
    uint64_t pos = tt_trace_info(r)->from;
    TtDiag diag = { 0 };
    TtBranch b;
    TtStatus st;

    for (*n = 0; (st = tt_trace_next(r, &b, &diag)) == TT_OK; ++*n) {
        CHECK(b.pos >= pos && b.pos <= tt_trace_info(r)->to &&
              b.cpu < TT_TRACE_CPUS_MAX);
        pos = b.pos;
    }
    CHECK(st == TT_END || (diag.text[0] && tt_trace_next(r, &b, NULL) == st));
    CHECK(st != TT_END || *n == tt_trace_info(r)->n_branches);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *copy = NULL;
    TtTraceReader *r, *a, *b;
    TtDiag diag = { 0 };
    TtTraceDiff d;
    TtStatus whole, st;
    uint64_t n;

    if (size < 1) {
        return 0;
    }
    copy = g_memdup2(data + 1, size - 1);
    if (data[0] & 1) {
        mend(copy, size - 1);
    }
    if (tt_trace_open(tt_io_mem_new(copy, size - 1), &r, &diag) != TT_OK) {
        CHECK(!r && diag.text[0]);
        return 0;
    }
    CHECK(tt_trace_open(tt_io_mem_new(copy, size - 1), &a, NULL) == TT_OK);
    CHECK(tt_trace_open(tt_io_mem_new(copy, size - 1), &b, NULL) == TT_OK);
    whole = read_all(r, &n);
    st = tt_trace_compare(a, b, &d, NULL);
    CHECK(st != TT_ERR_MISMATCH && (st != TT_OK || d.n_same <= n));
    /* It reads no further than the part that both have. */
    CHECK(st != TT_OK || whole == TT_END || d.n_same <= n);
    tt_trace_reader_free(r);
    tt_trace_reader_free(a);
    tt_trace_reader_free(b);
    return 0;
}
