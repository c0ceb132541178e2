/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the log: what is put in comes out, whatever the cut; damage is
 * told from a torn tail.
 */
#include "tt-log-util.h"

static TtLogReader *open_bytes(const uint8_t *bytes, size_t len, TtStatus want)
{
    TtLogReader *r;
    TtDiag d = { 0 };
    TtStatus status = tt_log_reader_open(tt_io_mem_new(bytes, len), &r, &d);

    if (status != want) {
        g_test_message("%s: %s", tt_status_name(status), d.text);
    }
    g_assert_cmpint(status, ==, want);
    return r;
}

/* Compares the first @n_segments segments of @r with the model. */
static void check_segments(TtLogReader *r, const LogModel *m,
                           uint32_t n_segments)
{
    uint32_t at = 0;

    g_assert_cmpuint(tt_log_reader_n_segments(r), ==, n_segments);
    for (uint32_t s = 0; s < n_segments; s++) {
        uint32_t end = g_array_index(m->segment_ends, uint32_t, s);
        TtSegment *seg;
        TtDiag d;
        TtStatus status = tt_log_reader_load(r, s, &seg, &d);
        if (status != TT_OK) {
            g_error("segment %u: %s", s, d.text);
        }
        g_assert_cmpuint(seg->info.seq, ==, s);
        g_assert_cmpuint(seg->info.first_event, ==, at);
        g_assert_cmpuint(seg->info.host_ns, ==, s * 1000);
        g_assert_cmpuint(seg->n_events, ==, end - at);
        for (uint32_t i = 0; i < seg->n_events; i++, at++) {
            log_util_assert_same(&seg->events[i],
                                 &g_array_index(m->events, TtEvent, at));
        }
        tt_segment_unref(seg);
    }
}

static LogModel *small_model(uint32_t seed, unsigned n_segments,
                             uint32_t len_max)
{
    LogModel *m = log_model_new(seed);

    for (unsigned s = 0; s < n_segments; s++) {
        unsigned n = g_rand_int_range(m->rand, 0, 12);
        for (unsigned i = 0; i < n; i++) {
            TtEvent ev = log_model_random_event(m, len_max);
            log_model_add(m, &ev);
        }
        log_model_cut(m);
    }
    return m;
}

static void test_any_events_come_back(void)
{
    for (uint32_t seed = 0; seed < 300; seed++) {
        LogModel *m = small_model(seed, seed % 6, seed % 3 ? 100 : 65535);
        GByteArray *bytes = log_model_write(m, true);
        TtLogReader *r = open_bytes(bytes->data, bytes->len,
                                    seed % 6 ? TT_OK : TT_END_TORN);

        g_assert_cmpmem(tt_log_reader_uuid(r), 16, log_util_uuid, 16);
        g_assert_cmpint(tt_log_reader_is_torn(r), ==, seed % 6 == 0);
        check_segments(r, m, m->segment_ends->len);
        tt_log_reader_free(r);
        g_byte_array_unref(bytes);
        log_model_free(m);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/log/any-events-come-back", test_any_events_come_back);
    return g_test_run();
}
