/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Branch traces: what was written is read; whatever is cut or flipped is noticed;
 * the comparison finds the first difference, and only in what both traces have.
 */
#include "trace/tt-trace.h"

#include <glib.h>

static const uint8_t uuid[16] = "traces of a test";

/* Entry @i of the traces of this test: it visits every size of a step. */
static TtBranch entry(unsigned i)
{
    return (TtBranch) {
        .pos = 1000 + (uint64_t)i * 3 + (i > 40000 ? 1ull << 50 : 0),
        .pc = (i % 7 ? 0x401000 : 0xffffffff81000000u) + i % 1000 * 16,
        .cpu = i / 500 % TT_TRACE_CPUS_MAX,
        .is_start = i % 700 == 699,
    };
}

typedef struct Maker {
    unsigned from, n;           /* entries */
    unsigned odd;               /* this one is another; 0: none */
    uint64_t nth;               /* operation that fails; 0: none */
} Maker;

static TtStatus make(Maker m, GByteArray *out, TtDiag *diag)
{
    TtIo *mem = tt_io_mem_new(NULL, 0);
    TtIo *io = m.nth ? tt_io_fault_new(mem, m.nth, TT_ERR_NOSPACE) : mem;
    const uint8_t *bytes;
    TtTraceWriter *w;
    TtStatus st;
    size_t len;

    st = tt_trace_writer_new(io, uuid, entry(m.from).pos, &w, diag);
    if (st != TT_OK) {
        return st;
    }
    for (unsigned i = m.from; i < m.from + m.n; i++) {
        TtBranch b = entry(i);

        b.pc += i && i == m.odd;
        tt_trace_put(w, &b);
    }
    g_assert_cmpuint(tt_trace_count(w), ==, m.n);
    st = tt_trace_finish(w, entry(m.from + m.n).pos, diag);
    bytes = tt_io_mem_data(mem, &len);
    g_assert_true(st != TT_OK || len == tt_trace_bytes(w));
    g_byte_array_append(out, bytes, len);
    tt_trace_writer_free(w);
    return st;
}

static GByteArray *made(Maker m)
{
    GByteArray *a = g_byte_array_new();

    g_assert_cmpint(make(m, a, NULL), ==, TT_OK);
    return a;
}

static TtTraceReader *opened(const GByteArray *a, size_t len)
{
    TtTraceReader *r;

    g_assert_cmpint(tt_trace_open(tt_io_mem_new(a->data, len), &r, NULL), ==,
                    TT_OK);
    return r;
}

static void test_round(void)
{
    static const unsigned sizes[] = { 0, 1, 2, 1000, 300000 };

    for (unsigned s = 0; s < G_N_ELEMENTS(sizes); s++) {
        g_autoptr(GByteArray) a = made((Maker) { 5, sizes[s], 0, 0 });
        TtTraceReader *r = opened(a, a->len);
        const TtTraceInfo *info = tt_trace_info(r);
        TtBranch b;

        g_assert_cmpmem(info->uuid, 16, uuid, 16);
        g_assert_cmpuint(info->from, ==, entry(5).pos);
        g_assert_cmpuint(info->to, ==, entry(5 + sizes[s]).pos);
        g_assert_cmpuint(info->n_branches, ==, sizes[s]);
        g_assert_false(info->is_torn);
        for (unsigned i = 5; i < 5 + sizes[s]; i++) {
            TtBranch want = entry(i);

            g_assert_cmpint(tt_trace_next(r, &b, NULL), ==, TT_OK);
            g_assert_true(b.pos == want.pos && b.pc == want.pc &&
                          b.cpu == want.cpu && b.is_start == want.is_start);
        }
        g_assert_cmpint(tt_trace_next(r, &b, NULL), ==, TT_END);
        g_assert_cmpint(tt_trace_next(r, &b, NULL), ==, TT_END);
        tt_trace_reader_free(r);
    }
}

/* Reads all there is. */
static TtStatus read_all(const GByteArray *a, size_t len, uint64_t *n,
                         bool *torn)
{
    TtTraceReader *r;
    TtDiag diag = { 0 };
    TtBranch b;
    TtStatus st = tt_trace_open(tt_io_mem_new(a->data, len), &r, &diag);

    *n = 0;
    *torn = false;
    if (st != TT_OK) {
        g_assert_true(!r && diag.text[0]);
        return st;
    }
    *torn = tt_trace_info(r)->is_torn;
    while ((st = tt_trace_next(r, &b, &diag)) == TT_OK) {
        ++*n;
    }
    g_assert_true(st == TT_END || diag.text[0]);
    g_assert_true(st != TT_END || *n == tt_trace_info(r)->n_branches);
    tt_trace_reader_free(r);
    return st;
}

static void test_cut(void)
{
    g_autoptr(GByteArray) a = made((Maker) { 0, 400000, 0, 0 });
    uint64_t n, before = 0;
    bool torn;

    g_assert_cmpint(read_all(a, 63, &n, &torn), ==, TT_ERR_FORMAT);
    for (size_t len = 64; len < a->len; len += 97) {
        g_assert_cmpint(read_all(a, len, &n, &torn), ==, TT_END);
        g_assert_true(torn && n >= before && n < 400000);
        before = n;
    }
    g_assert_cmpuint(before, >, 100000);
}

static void test_goes_on(void)
{
    g_autoptr(GByteArray) a = made((Maker) { 0, 200, 0, 0 });
    uint64_t n;
    bool torn;

    g_assert_cmpint(read_all(a, a->len, &n, &torn), ==, TT_END);
    g_byte_array_append(a, (const uint8_t *)"", 1);
    g_assert_cmpint(read_all(a, a->len, &n, &torn), ==, TT_ERR_FORMAT);
}

static void test_flips(void)
{
    g_autoptr(GByteArray) a = made((Maker) { 0, 200, 0, 0 });
    uint64_t n;
    bool torn;

    for (size_t at = 0; at < a->len; at++) {
        a->data[at] ^= 1 << at % 8;
        /* A length beyond the end of the file looks like a cut. */
        g_assert_true(read_all(a, a->len, &n, &torn) < 0 || (torn && !n));
        a->data[at] ^= 1 << at % 8;
    }
    g_assert_cmpint(read_all(a, a->len, &n, &torn), ==, TT_END);
}

static void test_full_disk(void)
{
    for (uint64_t nth = 1; nth < 6; nth++) {
        g_autoptr(GByteArray) a = g_byte_array_new();
        TtDiag diag = { 0 };

        g_assert_cmpint(make((Maker) { 0, 1200000, 0, nth }, a, &diag), ==,
                        TT_ERR_NOSPACE);
        g_assert_cmpint(diag.text[0], !=, 0);
    }
}

static TtStatus compare(Maker x, Maker y, TtTraceDiff *d)
{
    g_autoptr(GByteArray) a = made(x), b = made(y);
    TtTraceReader *ra = opened(a, a->len), *rb = opened(b, b->len);
    TtDiag diag = { 0 };
    TtStatus st = tt_trace_compare(ra, rb, d, &diag);

    g_assert_true(st == TT_OK || st == TT_ERR_MISMATCH || diag.text[0]);
    tt_trace_reader_free(ra);
    tt_trace_reader_free(rb);
    return st;
}

static void test_compare(void)
{
    TtTraceDiff d;

    g_assert_cmpint(compare((Maker) { 0, 3000, 0, 0 },
                            (Maker) { 0, 3000, 0, 0 }, &d), ==, TT_OK);
    g_assert_cmpuint(d.n_same, ==, 3000);
    /* Parts that overlap. */
    g_assert_cmpint(compare((Maker) { 0, 3000, 0, 0 },
                            (Maker) { 1000, 9000, 0, 0 }, &d), ==, TT_OK);
    g_assert_true(d.n_same == 2000 && d.from == entry(1000).pos &&
                  d.to == entry(3000).pos);
    /* Parts that do not. */
    g_assert_cmpint(compare((Maker) { 0, 300, 0, 0 },
                            (Maker) { 1000, 90, 0, 0 }, &d), ==,
                    TT_ERR_INVALID);
}

/* A run in which nothing was executed. */
static void test_of_nothing(void)
{
    TtTraceDiff d;

    g_assert_cmpint(compare((Maker) { 5, 0, 0, 0 }, (Maker) { 5, 0, 0, 0 }, &d), ==,
                    TT_OK);
    g_assert_cmpuint(d.from, ==, d.to);
    g_assert_cmpint(compare((Maker) { 0, 0, 0, 0 }, (Maker) { 0, 9, 0, 0 }, &d), ==,
                    TT_ERR_INVALID);
}

/* What is no branch may be missing in the other. */
static void test_starts(void)
{
    const uint64_t pcs[] = { 1, 2, 3, 4, 5, 6 };
    TtIo *ios[2];
    TtTraceReader *r[2];
    TtTraceDiff d;

    for (unsigned side = 0; side < 2; side++) {
        TtTraceWriter *w;
        const uint8_t *bytes;
        size_t len;

        ios[side] = tt_io_mem_new(NULL, 0);
        g_assert_cmpint(tt_trace_writer_new(ios[side], uuid, side ? 0 : 2, &w,
                                            NULL), ==, TT_OK);
        for (unsigned i = side ? 0 : 2; i < 6; i++) {
            TtBranch b = { i, pcs[i], i % 2, i == 2 || i == 3 };

            if (!side || i != 3) {
                b.is_start &= !side;
                tt_trace_put(w, &b);
            }
        }
        g_assert_cmpint(tt_trace_finish(w, 6, NULL), ==, TT_OK);
        bytes = tt_io_mem_data(ios[side], &len);
        g_assert_cmpint(tt_trace_open(tt_io_mem_new(bytes, len), &r[side],
                                      NULL), ==, TT_OK);
        tt_trace_writer_free(w);
    }
    g_assert_cmpint(tt_trace_compare(r[0], r[1], &d, NULL), ==, TT_OK);
    g_assert_cmpuint(d.n_same, ==, 3);
    tt_trace_reader_free(r[0]);
    tt_trace_reader_free(r[1]);
}

static void test_difference(void)
{
    TtTraceDiff d;

    for (unsigned odd = 1; odd < 30; odd++) {
        g_assert_cmpint(compare((Maker) { 0, 30, odd, 0 },
                                (Maker) { 0, 900, 0, 0 }, &d), ==,
                        TT_ERR_MISMATCH);
        g_assert_cmpuint(d.n_same, ==, odd);
        g_assert_cmpuint(d.n_before, ==, MIN(odd, TT_TRACE_SHOWN));
        g_assert_cmpuint(d.before[d.n_before - 1].pos, ==, entry(odd - 1).pos);
        g_assert_cmpuint(d.a[0].pc, ==, entry(odd).pc + 1);
        g_assert_cmpuint(d.b[0].pc, ==, entry(odd).pc);
        g_assert_cmpuint(d.n_a, ==, MIN(30 - odd, TT_TRACE_SHOWN));
        g_assert_cmpuint(d.n_b, ==, d.n_a);
    }
}

static void test_other_run(void)
{
    g_autoptr(GByteArray) a = made((Maker) { 0, 3, 0, 0 });
    TtTraceReader *ra = opened(a, a->len), *rb;
    TtIo *mem = tt_io_mem_new(NULL, 0);
    const uint8_t *bytes;
    TtTraceWriter *w;
    TtTraceDiff d;
    size_t len;

    g_assert_cmpint(tt_trace_writer_new(mem, (const uint8_t *)
                                        "another test run", 0, &w, NULL), ==,
                    TT_OK);
    g_assert_cmpint(tt_trace_finish(w, 5000, NULL), ==, TT_OK);
    bytes = tt_io_mem_data(mem, &len);
    g_assert_cmpint(tt_trace_open(tt_io_mem_new(bytes, len), &rb, NULL), ==,
                    TT_OK);
    g_assert_cmpint(tt_trace_compare(ra, rb, &d, NULL), ==, TT_ERR_INVALID);
    tt_trace_writer_free(w);
    tt_trace_reader_free(ra);
    tt_trace_reader_free(rb);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/trace/reads-what-was-written", test_round);
    g_test_add_func("/tt/trace/a-cut-costs-the-tail", test_cut);
    g_test_add_func("/tt/trace/nothing-follows-its-end", test_goes_on);
    g_test_add_func("/tt/trace/of-nothing", test_of_nothing);
    g_test_add_func("/tt/trace/every-flip-is-noticed", test_flips);
    g_test_add_func("/tt/trace/a-full-disk-is-told", test_full_disk);
    g_test_add_func("/tt/trace/compares-what-both-have", test_compare);
    g_test_add_func("/tt/trace/a-start-is-no-branch", test_starts);
    g_test_add_func("/tt/trace/finds-the-first-difference", test_difference);
    g_test_add_func("/tt/trace/refuses-another-run", test_other_run);
    return g_test_run();
}
