/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of a log in parts: what is left of it reads as it was, whichever part
 * it begins with, and wherever it is cut off; what is missing inside is noticed.
 */
#include "tt-log-util.h"

#include <unistd.h>

#define N_SEGMENTS 13
#define EVERY 3

static const TtLogPlace at_zero;
static const TtLogPlace far = { 1ull << 40, 1ull << 50, 1ull << 60 };

/* Segment @s of the model is number @s above that of @first. */
static void check_segment(TtLogReader *r, const LogModel *m, uint32_t s,
                          const TtLogPlace *first)
{
    uint32_t at = s ? g_array_index(m->segment_ends, uint32_t, s - 1) : 0;
    uint32_t end = g_array_index(m->segment_ends, uint32_t, s);
    TtSegment *seg;
    TtDiag d;

    if (tt_log_reader_load(r, first->segment + s, &seg, &d) != TT_OK) {
        g_error("segment %u: %s", s, d.text);
    }
    g_assert_cmpuint(seg->info.seq, ==, first->segment + s);
    g_assert_cmpuint(seg->info.first_event, ==, first->event + at);
    g_assert_cmpuint(seg->n_events, ==, end - at);
    for (uint32_t i = 0; i < seg->n_events; i++) {
        TtEvent want = g_array_index(m->events, TtEvent, at + i);

        want.pos += first->pos;
        log_util_assert_same(&seg->events[i], &want);
    }
    tt_segment_unref(seg);
}

static void check_window(const GByteArray *bytes, size_t len, const LogModel *m,
                         const TtLogPlace *first, uint32_t from, uint32_t to,
                         TtStatus want)
{
    TtLogReader *r = log_util_open(bytes->data, len, want);
    TtSegment *none;

    g_assert_cmpuint(tt_log_reader_first(r), ==, first->segment + from);
    g_assert_cmpuint(tt_log_reader_end(r), ==, first->segment + to);
    g_assert_cmpuint(tt_log_reader_n_segments(r), ==, to - from);
    g_assert_cmpint(tt_log_reader_is_window(r), ==, first->segment + from > 0);
    for (uint32_t s = from; s < to; s++) {
        check_segment(r, m, s, first);
    }
    g_assert_cmpint(tt_log_reader_load(r, first->segment + to, &none, NULL), ==,
                    TT_ERR_INVALID);
    if (first->segment + from) {
        g_assert_cmpint(tt_log_reader_load(r, first->segment + from - 1, &none,
                                           NULL), ==, TT_ERR_INVALID);
    }
    for (uint32_t s = from; s < to; s++) {
        uint64_t pos = tt_log_reader_info(r, first->segment + s)->first_pos;
        uint64_t found = tt_log_reader_find(r, pos);

        g_assert_cmpuint(found, >=, first->segment + s);
        g_assert_cmpuint(tt_log_reader_info(r, found)->first_pos, ==, pos);
    }
    tt_log_reader_free(r);
}

static void test_it_begins_with_any_part(void)
{
    for (uint32_t seed = 0; seed < 40; seed++) {
        const TtLogPlace *first = seed % 2 ? &far : &at_zero;
        LogModel *m = log_model_small(seed, N_SEGMENTS, 40);
        g_autoptr(GPtrArray) parts =
            log_model_write_parts(m, 1 + seed % 5, first, seed % 3);

        for (unsigned p = 0; p < parts->len; p++) {
            g_autoptr(GByteArray) bytes = log_util_join(parts, p);

            check_window(bytes, bytes->len, m, first, p * (1 + seed % 5),
                         N_SEGMENTS, seed % 3 ? TT_OK : TT_END_TORN);
        }
        log_model_free(m);
    }
}

/* Where the segments end in @bytes; those of the heads of parts are before. */
static uint32_t n_whole(TtLogReader *whole, size_t len, uint64_t first)
{
    uint32_t n = 0;
    uint64_t seq = first;

    for (; seq < tt_log_reader_end(whole); seq++) {
        const TtSegInfo *i = tt_log_reader_info(whole, seq);

        if (i->offset_bytes + 96 + i->ev_stored + i->pl_stored > len) {
            break;
        }
        n++;
    }
    return n;
}

static void test_cut_anywhere_it_keeps_what_is_whole(void)
{
    for (uint32_t seed = 1; seed < 5; seed++) {
        LogModel *m = log_model_small(seed, N_SEGMENTS, 30);
        g_autoptr(GPtrArray) parts = log_model_write_parts(m, EVERY, &far, true);
        g_autoptr(GByteArray) bytes = log_util_join(parts, 1);
        TtLogReader *whole = log_util_open(bytes->data, bytes->len, TT_OK);

        for (size_t len = 0; len < bytes->len; len++) {
            uint32_t n = n_whole(whole, len, far.segment + EVERY);
            TtLogReader *r;

            if (len < 96) {
                r = log_util_open(bytes->data, len, TT_ERR_FORMAT);
                g_assert_null(r);
                continue;
            }
            r = log_util_open(bytes->data, len, TT_END_TORN);
            g_assert_cmpuint(tt_log_reader_n_segments(r), ==, n);
            for (uint32_t s = 0; s < n; s++) {
                check_segment(r, m, EVERY + s, &far);
            }
            tt_log_reader_free(r);
        }
        tt_log_reader_free(whole);
        log_model_free(m);
    }
}

static void test_a_flipped_bit_anywhere_is_noticed(void)
{
    LogModel *m = log_model_small(7, N_SEGMENTS, 30);
    g_autoptr(GPtrArray) parts = log_model_write_parts(m, EVERY, &far, true);
    g_autoptr(GByteArray) bytes = log_util_join(parts, 1);

    for (size_t at = 0; at < bytes->len; at++) {
        bool found = false;
        TtLogReader *r;
        TtDiag d;

        bytes->data[at] ^= 1 << at % 8;
        found = tt_log_reader_open(tt_io_mem_new(bytes->data, bytes->len), &r,
                                   &d) < 0;
        for (uint64_t s = r ? tt_log_reader_first(r) : 0;
             r && s < tt_log_reader_end(r); s++) {
            TtSegment *seg;

            found |= tt_log_reader_load(r, s, &seg, &d) != TT_OK;
            tt_segment_unref(seg);
        }
        g_assert_true(found);
        g_assert_true(*d.text);
        tt_log_reader_free(r);
        bytes->data[at] ^= 1 << at % 8;
    }
    log_model_free(m);
}

static void append(GByteArray *to, const GByteArray *from)
{
    g_byte_array_append(to, from->data, from->len);
}

/* In each of them something is not where it should be: damage, never an end. */
static void test_parts_that_do_not_follow_are_damage(void)
{
    LogModel *m = log_model_small(9, N_SEGMENTS, 30);
    g_autoptr(GPtrArray) parts = log_model_write_parts(m, EVERY, &far, false);
    g_autoptr(GPtrArray) others = log_model_write_parts(m, EVERY, &at_zero,
                                                        false);
    g_autoptr(GByteArray) plain = log_model_write(m, false);
    static const int orders[][3] = { { 0, 2, 3 }, { 0, 1, 1 }, { 1, 0, 2 },
                                     { 0, 1, 3 } };
    TtLogReader *r;
    TtDiag d;

    for (unsigned i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autoptr(GByteArray) bytes = g_byte_array_new();

        for (unsigned k = 0; k < 3; k++) {
            append(bytes, parts->pdata[orders[i][k]]);
        }
        g_assert_cmpint(tt_log_reader_open_part(
            tt_io_mem_new(bytes->data, bytes->len), &r, &d), ==,
            TT_ERR_FORMAT);
        g_assert_nonnull(r);            /* what is before that is usable */
        g_assert_nonnull(tt_log_reader_damage(r));
        tt_log_reader_free(r);
    }
    for (unsigned i = 0; i < 3; i++) {
        g_autoptr(GByteArray) bytes = g_byte_array_new();

        append(bytes, i == 2 ? plain : parts->pdata[0]);
        append(bytes, i == 0 ? others->pdata[1] : i == 1 ? plain :
               parts->pdata[0]);
        r = log_util_open(bytes->data, bytes->len, TT_ERR_FORMAT);
        g_assert_null(r);
    }
    log_model_free(m);
}

static void test_an_end_can_be_put_behind_any_part(void)
{
    LogModel *m = log_model_small(11, N_SEGMENTS, 30);
    g_autoptr(GPtrArray) parts = log_model_write_parts(m, EVERY, &far, false);

    for (unsigned n = 1; n < parts->len; n++) {
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        TtIo *io = tt_io_mem_new(NULL, 0);
        TtLogPlace at;
        TtLogReader *r;
        TtSegment *seg;
        uint64_t end;

        for (unsigned i = 0; i < n; i++) {
            append(bytes, parts->pdata[i]);
        }
        r = log_util_open(bytes->data, bytes->len, TT_END_TORN);
        end = tt_log_reader_end(r);
        at = (TtLogPlace) {
            .segment = end,
            .event = tt_log_reader_info(r, end - 1)->first_event +
                     tt_log_reader_info(r, end - 1)->n_events,
            .pos = tt_log_reader_info(r, end - 1)->end_pos,
        };
        tt_log_reader_free(r);
        /* it closes the file: look at what a second one has written */
        g_assert_cmpint(tt_log_write_end(tt_io_fault_new(io, 1, TT_ERR_IO),
                                         log_util_uuid, &at, 5,
                                         TT_FINISH_STOPPED, NULL), ==,
                        TT_ERR_IO);
        g_autofree char *path = NULL;
        int fd = g_file_open_tmp("tt-log-XXXXXX", &path, NULL);
        g_autofree char *text = NULL;
        gsize len;

        g_assert_cmpint(fd, >=, 0);
        close(fd);
        unlink(path);
        g_assert_cmpint(tt_io_posix_create(path, &io, NULL), ==, TT_OK);
        g_assert_cmpint(tt_log_write_end(io, log_util_uuid, &at, 5,
                                         TT_FINISH_STOPPED, NULL), ==, TT_OK);
        g_assert_true(g_file_get_contents(path, &text, &len, NULL));
        unlink(path);
        g_byte_array_append(bytes, (uint8_t *)text, len);
        r = log_util_open(bytes->data, bytes->len, TT_OK);
        g_assert_cmpuint(tt_log_reader_end(r), ==, end + 1);
        g_assert_cmpint(tt_log_reader_load(r, end, &seg, NULL), ==, TT_OK);
        g_assert_cmpuint(seg->n_events, ==, 1);
        g_assert_cmpuint(seg->events[0].kind, ==, TT_EV_FINISH);
        g_assert_cmpuint(seg->events[0].pos, ==, at.pos);
        tt_segment_unref(seg);
        tt_log_reader_free(r);
    }
    log_model_free(m);
}

static bool loads(TtLogReader *r)
{
    for (uint64_t seq = tt_log_reader_first(r); seq < tt_log_reader_end(r);
         seq++) {
        TtSegment *seg;

        if (tt_log_reader_load(r, seq, &seg, NULL) != TT_OK) {
            return false;
        }
        tt_segment_unref(seg);
    }
    return true;
}

/* A segment that lacks as much as the head of the next part is long is noticed when
 * it is loaded. */
static void test_a_part_that_is_cut_before_others_is_damage(void)
{
    LogModel *m = log_model_small(3, N_SEGMENTS, 30);
    g_autoptr(GPtrArray) parts = log_model_write_parts(m, EVERY, &far, true);

    for (unsigned p = 0; p + 1 < parts->len; p++) {
        GByteArray *part = g_ptr_array_index(parts, p);
        guint len = part->len;

        for (guint cut = 96; cut < len; cut++) {
            g_autoptr(GByteArray) bytes = NULL;
            TtStatus status;
            TtLogReader *r;

            part->len = cut;
            bytes = log_util_join(parts, 0);
            status = tt_log_reader_open(tt_io_mem_new(bytes->data, bytes->len),
                                        &r, NULL);
            g_assert_true(status == TT_ERR_FORMAT ||
                          (status == TT_OK && cut + 96 == len && !loads(r)));
            if (r) {
                tt_log_reader_free(r);
            }
        }
        part->len = len;
    }
    log_model_free(m);
}

static void test_a_failing_disk_poisons_the_next_part(void)
{
    for (uint64_t nth = 1; nth < 3; nth++) {
        TtIo *first = tt_io_mem_new(NULL, 0), *next = tt_io_mem_new(NULL, 0);
        TtLogWriter *w;
        TtDiag d;

        if (nth == 1) {                 /* the flush of the one before */
            first = tt_io_fault_new(first, 2, TT_ERR_IO);
        } else {
            next = tt_io_fault_new(next, 1, TT_ERR_NOSPACE);
        }
        g_assert_cmpint(tt_log_writer_new_part(first, log_util_uuid, &far, &w,
                                               &d), ==, TT_OK);
        g_assert_cmpint(tt_log_writer_next_part(w, next, &d), ==,
                        nth == 1 ? TT_ERR_IO : TT_ERR_NOSPACE);
        g_assert_cmpint(tt_log_writer_sync(w, &d), <, 0);
        tt_log_writer_free(w);
    }
}

/* A writer that was killed: another one goes on behind what is known to be whole. */
static void test_a_log_goes_on_where_it_was_whole(void)
{
    LogModel *m = log_model_small(7, 3, 40);
    GByteArray *bytes = log_model_write(m, false);
    TtLogPlace at = { 3, m->events->len, m->pos };
    size_t whole = bytes->len, len;
    TtLogEncoder *e = tt_log_encoder_new_at(&at);
    TtSegBuf *sb = tt_segbuf_new();
    const uint8_t *data;
    TtLogReader *r;
    TtLogWriter *w;
    TtDiag d;
    TtIo *io;

    g_byte_array_append(bytes, (const uint8_t *)"half a segment", 14);
    io = tt_io_mem_new(bytes->data, bytes->len);
    g_assert_cmpint(tt_log_writer_go_on(io, log_util_uuid, &at, whole, &w, &d), ==,
                    TT_OK);
    g_assert_cmpuint(tt_log_writer_bytes(w), ==, whole);
    tt_log_encoder_begin(e, sb, m->pos, 1);
    tt_log_encoder_put(e, &(TtEvent) { .kind = TT_EV_FINISH, .pos = m->pos, .val = 1 });
    tt_log_encoder_end(e, true);
    g_assert_cmpint(tt_log_writer_seal(w, sb, &d), ==, TT_OK);
    data = tt_io_mem_data(io, &len);
    r = log_util_open(data, len, TT_OK);
    g_assert_cmpuint(tt_log_reader_n_segments(r), ==, 4);
    log_util_check_segments_at_least(r, m, 3);
    tt_log_reader_free(r);
    tt_log_writer_free(w);
    io = tt_io_mem_new(bytes->data, whole - 1);
    g_assert_cmpint(tt_log_writer_go_on(io, log_util_uuid, &at, whole, &w, &d), ==,
                    TT_ERR_FORMAT);
    tt_segbuf_free(sb);
    tt_log_encoder_free(e);
    g_byte_array_unref(bytes);
    log_model_free(m);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/log-parts/a-part-that-is-cut-before-others-is-damage",
                    test_a_part_that_is_cut_before_others_is_damage);
    g_test_add_func("/tt/log-parts/it-begins-with-any-part",
                    test_it_begins_with_any_part);
    g_test_add_func("/tt/log-parts/cut-anywhere-it-keeps-what-is-whole",
                    test_cut_anywhere_it_keeps_what_is_whole);
    g_test_add_func("/tt/log-parts/a-flipped-bit-anywhere-is-noticed",
                    test_a_flipped_bit_anywhere_is_noticed);
    g_test_add_func("/tt/log-parts/parts-that-do-not-follow-are-damage",
                    test_parts_that_do_not_follow_are_damage);
    g_test_add_func("/tt/log-parts/an-end-can-be-put-behind-any-part",
                    test_an_end_can_be_put_behind_any_part);
    g_test_add_func("/tt/log-parts/a-failing-disk-poisons-the-next-part",
                    test_a_failing_disk_poisons_the_next_part);
    g_test_add_func("/tt/log-parts/a-log-goes-on-where-it-was-whole",
                    test_a_log_goes_on_where_it_was_whole);
    return g_test_run();
}
