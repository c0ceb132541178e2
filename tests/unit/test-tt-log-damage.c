/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of damaged logs: a torn tail is told from damage, at every byte;
 * failing operations are reported and leave what was whole.
 */
#include "tt-log-util.h"

/* Bytes up to the end of each segment; [0] is the head. */
static GArray *segment_offsets(TtLogReader *r, size_t len)
{
    GArray *ends = g_array_new(false, false, sizeof(uint64_t));
    uint64_t n = tt_log_reader_n_segments(r), end = len;

    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = tt_log_reader_info(r, i)->offset_bytes;
        g_array_append_val(ends, at);
    }
    g_array_append_val(ends, end);
    return ends;
}

static uint64_t offset_at(const GArray *ends, uint32_t i)
{
    return g_array_index(ends, uint64_t, i);
}

/* How many segments lie whole within the first @len bytes. */
static uint32_t whole_segments(const GArray *ends, uint64_t len)
{
    uint32_t n = 0;

    while (n + 1 < ends->len && offset_at(ends, n + 1) <= len) {
        n++;
    }
    return n;
}

static void test_a_log_cut_anywhere_keeps_what_is_whole(void)
{
    for (uint32_t seed = 1; seed < 8; seed++) {
        LogModel *m = log_model_small(seed, 5, 30);
        g_autoptr(GByteArray) bytes = log_model_write(m, true);
        TtLogReader *r = log_util_open(bytes->data, bytes->len, TT_OK);
        g_autoptr(GArray) ends = segment_offsets(r, bytes->len);

        tt_log_reader_free(r);
        for (size_t len = 0; len < bytes->len; len++) {
            r = log_util_open(bytes->data, len,
                           len < 64 ? TT_ERR_FORMAT : TT_END_TORN);
            if (len < 64) {
                g_assert_null(r);
                continue;
            }
            g_assert_true(tt_log_reader_is_torn(r));
            g_assert_cmpuint(tt_log_reader_bytes(r), ==, len);
            log_util_check_segments(r, m, whole_segments(ends, len));
            tt_log_reader_free(r);
        }
        log_model_free(m);
    }
}

/* What a flipped bit at @at must lead to. */
static void check_flipped(const uint8_t *bytes, const GArray *ends, size_t at)
{
    uint32_t n = ends->len - 1, hit;
    uint64_t len = offset_at(ends, n);
    TtLogReader *r;
    TtDiag d;
    TtStatus status = tt_log_reader_open(tt_io_mem_new(bytes, len), &r, &d);

    if (at < offset_at(ends, 0)) {
        g_assert_cmpint(status, ==, TT_ERR_FORMAT);
        return;
    }
    for (hit = 0; at >= offset_at(ends, hit + 1); hit++) {
    }
    if (at < offset_at(ends, hit) + 96) {   /* a header, also the last */
        g_assert_cmpint(status, ==, TT_ERR_FORMAT);
        g_assert_cmpuint(d.offset, ==, offset_at(ends, hit));
        return;
    }
    g_assert_cmpint(status, ==, TT_OK);     /* a body, also the last */
    for (uint32_t i = 0; i < n; i++) {
        TtSegment *seg;
        status = tt_log_reader_load(r, i, &seg, &d);
        g_assert_cmpint(status, ==, i == hit ? TT_ERR_FORMAT : TT_OK);
        if (i == hit) {
            g_assert_null(seg);
            g_assert_cmpuint(d.offset, ==, offset_at(ends, hit));
        }
        tt_segment_unref(seg);
    }
    tt_log_reader_free(r);
}

static void test_a_flipped_bit_anywhere_is_noticed(void)
{
    for (uint32_t seed = 1; seed < 6; seed++) {
        LogModel *m = log_model_small(seed, 4, 30);
        g_autoptr(GByteArray) bytes = log_model_write(m, true);
        TtLogReader *r = log_util_open(bytes->data, bytes->len, TT_OK);
        g_autoptr(GArray) ends = segment_offsets(r, bytes->len);

        tt_log_reader_free(r);
        for (size_t at = 0; at < bytes->len; at++) {
            uint8_t bit = 1 << (at + seed) % 8;
            bytes->data[at] ^= bit;
            check_flipped(bytes->data, ends, at);
            bytes->data[at] ^= bit;
        }
        log_model_free(m);
    }
}

static void test_bytes_after_the_end_are_damage(void)
{
    LogModel *m = log_model_small(3, 3, 30);
    g_autoptr(GByteArray) bytes = log_model_write(m, true);
    g_autoptr(GByteArray) open_end = log_model_write(m, false);

    g_byte_array_append(bytes, (const uint8_t *)"", 1);
    log_util_open(bytes->data, bytes->len, TT_ERR_FORMAT);
    /* Without the closing flag the same bytes are a torn tail. */
    g_byte_array_append(open_end, (const uint8_t *)"", 1);
    TtLogReader *r = log_util_open(open_end->data, open_end->len, TT_END_TORN);
    log_util_check_segments(r, m, 3);
    tt_log_reader_free(r);
    log_model_free(m);
}

static void test_a_tail_that_is_no_segment_is_damage(void)
{
    LogModel *m = log_model_small(3, 3, 30);
    g_autoptr(GByteArray) bytes = log_model_write(m, false);
    size_t len = bytes->len;

    g_byte_array_set_size(bytes, len + 96);
    memset(bytes->data + len, 0, 96);
    for (size_t at = len; at < len + 96; at++) {
        bytes->data[at] = 1;
        log_util_open(bytes->data, len + 96, TT_ERR_FORMAT);
        TtLogReader *r = log_util_open(bytes->data, len + 95, TT_END_TORN);
        log_util_check_segments(r, m, 3);
        tt_log_reader_free(r);
        bytes->data[at] = 0;
    }
    log_model_free(m);
}

static void test_a_long_tail_of_zeros_is_damage_a_short_one_is_torn(void)
{
    LogModel *m = log_model_small(3, 3, 30);
    g_autoptr(GByteArray) bytes = log_model_write(m, false);
    size_t len = bytes->len, longest = 4096 + (512 << 10) + (4 << 20);

    g_byte_array_set_size(bytes, len + longest + 1);
    memset(bytes->data + len, 0, longest + 1);
    log_util_open(bytes->data, len + longest + 1, TT_ERR_FORMAT);
    TtLogReader *r = log_util_open(bytes->data, len + longest, TT_END_TORN);
    log_util_check_segments(r, m, 3);
    tt_log_reader_free(r);
    log_model_free(m);
}

/* ---- failing operations ---- */

/* Writes @m through an io that fails at operation @nth. Returns false when
 * nothing failed. *@bytes is what had reached the file. */
static bool write_with_fault(const LogModel *m, uint64_t nth,
                             GByteArray *bytes)
{
    TtIo *mem = tt_io_mem_new(NULL, 0);
    TtIo *io = tt_io_fault_new(mem, nth, TT_ERR_NOSPACE);
    TtLogEncoder *e = tt_log_encoder_new();
    TtSegBuf *sb = tt_segbuf_new();
    TtStatus status = TT_OK;
    uint32_t at = 0;
    TtLogWriter *w;
    TtDiag d;
    size_t len;

    if (tt_log_writer_new(io, log_util_uuid, &w, &d) != TT_OK) {
        g_assert_cmpint(d.status, ==, TT_ERR_NOSPACE);
        g_assert_null(w);
        tt_segbuf_free(sb);
        tt_log_encoder_free(e);
        return true;
    }
    for (uint32_t s = 0; s < m->segment_ends->len && !status; s++) {
        uint32_t end = g_array_index(m->segment_ends, uint32_t, s);
        tt_log_encoder_begin(e, sb, at ? g_array_index(m->events, TtEvent,
                                                       at - 1).pos + 1 : 0, 0);
        for (; at < end; at++) {
            tt_log_encoder_put(e, &g_array_index(m->events, TtEvent, at));
        }
        tt_log_encoder_end(e, s + 1 == m->segment_ends->len);
        status = tt_log_writer_seal(w, sb, &d);
        if (status == TT_OK) {
            status = tt_log_writer_sync(w, &d);
        }
    }
    if (status != TT_OK) {      /* poisoned: nothing more reaches the file */
        uint64_t ops = tt_io_fault_count(io), size = tt_log_writer_bytes(w);
        g_assert_cmpint(status, ==, TT_ERR_NOSPACE);
        g_assert_cmpint(tt_log_writer_seal(w, sb, &d), ==, TT_ERR_NOSPACE);
        g_assert_cmpint(tt_log_writer_sync(w, NULL), ==, TT_ERR_NOSPACE);
        g_assert_cmpint(d.status, ==, TT_ERR_NOSPACE);
        g_assert_cmpuint(tt_io_fault_count(io), ==, ops);
        g_assert_cmpuint(tt_log_writer_bytes(w), ==, size);
    }
    const uint8_t *written = tt_io_mem_data(mem, &len);
    g_byte_array_set_size(bytes, 0);
    g_byte_array_append(bytes, written, len);
    tt_log_writer_free(w);
    tt_log_encoder_free(e);
    tt_segbuf_free(sb);
    return status != TT_OK;
}

/* Segments with payload, so that each takes two appends. */
static LogModel *fault_model(void)
{
    LogModel *m = log_model_new(1);

    for (unsigned s = 0; s < 4; s++) {
        for (unsigned i = 0; i < 5; i++) {
            TtEvent ev = { .kind = TT_EV_RAM, .pos = m->pos, .addr = i,
                           .len = 100, .data = (const uint8_t *)
                           "0123456789012345678901234567890123456789"
                           "0123456789012345678901234567890123456789"
                           "0123456789012345678901234567890123456789" };
            log_model_add(m, &ev);
        }
        log_model_cut(m);
    }
    return m;
}

static void test_a_failed_write_leaves_a_readable_prefix(void)
{
    LogModel *m = fault_model();
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    uint64_t nth = 1;
    uint32_t most = 0;

    for (; write_with_fault(m, nth, bytes); nth++) {
        if (bytes->len < 64) {
            continue;           /* the head itself */
        }
        TtLogReader *r;
        TtStatus status = tt_log_reader_open(tt_io_mem_new(bytes->data,
                                                           bytes->len),
                                             &r, NULL);
        g_assert_cmpint(status, >=, 0);
        uint32_t n = tt_log_reader_n_segments(r);
        g_assert_cmpuint(n, >=, most);
        most = n;
        for (uint32_t i = 0; i < n; i++) {
            TtSegment *seg;
            TtDiag d = { 0 };
            status = tt_log_reader_load(r, i, &seg, &d);
            g_assert_cmpstr(d.text, ==, "");
            g_assert_cmpint(status, ==, TT_OK);
            log_util_assert_same(&seg->events[0], &g_array_index(m->events,
                                                                 TtEvent,
                                                                 i * 5));
            tt_segment_unref(seg);
        }
        tt_log_reader_free(r);
    }
    g_assert_cmpuint(nth, >, 1 + 4 * 2);    /* every operation failed once */
    g_assert_cmpuint(most, ==, 4);          /* the last sync was among them */
    log_model_free(m);
}

static void test_a_failed_read_is_reported_and_can_be_repeated(void)
{
    LogModel *m = fault_model();
    g_autoptr(GByteArray) bytes = log_model_write(m, true);
    bool failed = true;
    uint64_t nth;

    for (nth = 1; failed; nth++) {
        TtIo *io = tt_io_fault_new(tt_io_mem_new(bytes->data, bytes->len),
                                   nth, TT_ERR_IO);
        TtLogReader *r;
        TtDiag d = { 0 };
        TtStatus status = tt_log_reader_open(io, &r, &d);

        failed = status != TT_OK;
        if (failed) {
            g_assert_cmpint(status, ==, TT_ERR_IO);
            g_assert_nonnull(strstr(d.text, "test asked"));
            continue;
        }
        for (uint32_t i = 0; i < 4; i++) {
            TtSegment *seg;
            status = tt_log_reader_load(r, i, &seg, &d);
            if (status != TT_OK) {
                failed = true;
                g_assert_cmpint(status, ==, TT_ERR_IO);
                status = tt_log_reader_load(r, i, &seg, &d);
            }
            g_assert_cmpint(status, ==, TT_OK);
            g_assert_cmpuint(seg->n_events, ==, 5);
            tt_segment_unref(seg);
        }
        tt_log_reader_free(r);
    }
    g_assert_cmpuint(nth, >, 1 + 1 + 4 + 1 + 4);
    log_model_free(m);
}

/*
 * Blocks of a file that were not written when the power went are zeros, whichever
 * they are, and the file may end early: all segments before the first that lost
 * something are read as they were.
 */
static void lose_power(const LogModel *m, const GByteArray *bytes,
                       const GArray *ends, GRand *rand)
{
    g_autofree uint8_t *left = g_memdup2(bytes->data, bytes->len);
    unsigned block = 1u << g_rand_int_range(rand, 4, 10);
    size_t from = g_rand_int_range(rand, 64, bytes->len), len = bytes->len;
    size_t first_lost = len;
    TtDiag diag = { 0 };
    TtLogReader *r;
    TtStatus st;

    for (size_t at = (from + block - 1) / block * block; at < len;
         at += block) {
        if (g_rand_int_range(rand, 0, 3) == 0) {
            memset(left + at, 0, MIN(block, len - at));
        }
    }
    if (g_rand_boolean(rand)) {
        len = g_rand_int_range(rand, from, len + 1);
    }
    for (first_lost = 0; first_lost < len &&
         left[first_lost] == bytes->data[first_lost]; first_lost++) {
    }
    st = tt_log_reader_open_part(tt_io_mem_new(left, len), &r, &diag);
    g_assert_true(st >= 0 || diag.text[0]);
    if (!r) {
        g_assert_cmpuint(whole_segments(ends, first_lost), ==, 0);
        return;
    }
    g_assert_true((st < 0) == !!tt_log_reader_damage(r));
    log_util_check_segments_at_least(r, m, whole_segments(ends, first_lost));
    for (uint64_t k = 0; k < tt_log_reader_n_segments(r); k++) {
        TtSegment *seg;

        if (tt_log_reader_load(r, k, &seg, &diag) == TT_OK) {
            tt_segment_unref(seg);
        }
    }
    tt_log_reader_free(r);
}

static void test_a_power_cut_costs_the_tail_only(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(20261122);

    for (uint32_t seed = 1; seed < 6; seed++) {
        LogModel *m = log_model_small(seed, 12, 200);
        g_autoptr(GByteArray) bytes = log_model_write(m, seed % 2);
        TtLogReader *r = log_util_open(bytes->data, bytes->len,
                                       seed % 2 ? TT_OK : TT_END_TORN);
        g_autoptr(GArray) ends = segment_offsets(r, bytes->len);

        tt_log_reader_free(r);
        for (unsigned i = 0; i < 2000; i++) {
            lose_power(m, bytes, ends, rand);
        }
        log_model_free(m);
    }
}

static void test_what_lies_before_damage_can_be_read(void)
{
    LogModel *m = log_model_small(3, 6, 30);
    g_autoptr(GByteArray) bytes = log_model_write(m, true);
    TtLogReader *r = log_util_open(bytes->data, bytes->len, TT_OK);
    g_autoptr(GArray) ends = segment_offsets(r, bytes->len);
    TtDiag diag;

    tt_log_reader_free(r);
    for (uint32_t i = 0; i < 6; i++) {          /* a header is damaged */
        size_t at = offset_at(ends, i) + 20;

        bytes->data[at] ^= 1;
        g_assert_cmpint(tt_log_reader_open_part(
            tt_io_mem_new(bytes->data, bytes->len), &r, &diag), ==,
            TT_ERR_FORMAT);
        g_assert_true((r != NULL) == (i > 0));
        if (r) {
            g_assert_cmpuint(tt_log_reader_n_segments(r), ==, i);
            g_assert_cmpstr(tt_log_reader_damage(r)->text, ==, diag.text);
            g_assert_false(tt_log_reader_is_torn(r));
            log_util_check_segments(r, m, i);
            tt_log_reader_free(r);
        }
        bytes->data[at] ^= 1;
    }
    log_model_free(m);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/log/a-log-cut-anywhere-keeps-what-is-whole",
                    test_a_log_cut_anywhere_keeps_what_is_whole);
    g_test_add_func("/tt/log/a-flipped-bit-anywhere-is-noticed",
                    test_a_flipped_bit_anywhere_is_noticed);
    g_test_add_func("/tt/log/bytes-after-the-end-are-damage",
                    test_bytes_after_the_end_are_damage);
    g_test_add_func("/tt/log/a-tail-that-is-no-segment-is-damage",
                    test_a_tail_that_is_no_segment_is_damage);
    g_test_add_func("/tt/log/"
                    "a-long-tail-of-zeros-is-damage-a-short-one-is-torn",
                    test_a_long_tail_of_zeros_is_damage_a_short_one_is_torn);
    g_test_add_func("/tt/log/a-failed-write-leaves-a-readable-prefix",
                    test_a_failed_write_leaves_a_readable_prefix);
    g_test_add_func("/tt/log/a-failed-read-is-reported-and-can-be-repeated",
                    test_a_failed_read_is_reported_and_can_be_repeated);
    g_test_add_func("/tt/log/damage/a-power-cut-costs-the-tail-only",
                    test_a_power_cut_costs_the_tail_only);
    g_test_add_func("/tt/log/damage/what-lies-before-damage-can-be-read",
                    test_what_lies_before_damage_can_be_read);
    return g_test_run();
}
