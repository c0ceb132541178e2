/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Helpers of the log tests: random events, and logs in memory made of them.
 */
#include "tt-log-util.h"

const uint8_t log_util_uuid[16] = {
    0x0f, 0x1e, 0x2d, 0x3c, 0x4b, 0x5a, 0x69, 0x78,
    0x87, 0x96, 0xa5, 0xb4, 0xc3, 0xd2, 0xe1, 0xf0,
};

static const uint8_t kinds[] = {
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18, 19, 20, 21, 22, 23, 24,
    25, 26, 27, 29, 30,
    32, 33, 34, 35, 36, 37, 38, 40, 41, 63,
};

LogModel *log_model_new(uint32_t seed)
{
    LogModel *m = g_new0(LogModel, 1);

    m->events = g_array_new(false, false, sizeof(TtEvent));
    m->segment_ends = g_array_new(false, false, sizeof(uint32_t));
    m->data = g_ptr_array_new_with_free_func(g_free);
    m->rand = g_rand_new_with_seed(seed);
    return m;
}

void log_model_free(LogModel *m)
{
    g_array_unref(m->events);
    g_array_unref(m->segment_ends);
    g_ptr_array_unref(m->data);
    g_rand_free(m->rand);
    g_free(m);
}

/* All magnitudes are equally likely; extremes often. */
static uint64_t random_number(GRand *r, unsigned bits_max)
{
    uint64_t v = (uint64_t)g_rand_int(r) << 32 | g_rand_int(r);
    uint64_t max = bits_max == 64 ? UINT64_MAX : (1ull << bits_max) - 1;

    switch (g_rand_int_range(r, 0, 8)) {
    case 0:
        return 0;
    case 1:
        return max;
    default:
        return (v & max) >> g_rand_int_range(r, 0, bits_max);
    }
}

TtEvent log_model_random_event(LogModel *m, uint32_t len_max)
{
    static const uint8_t sizes[] = { 0, 1, 2, 4, 8 };
    GRand *r = m->rand;
    TtEvent ev = {
        .kind = kinds[g_rand_int_range(r, 0, G_N_ELEMENTS(kinds))],
        .nested = g_rand_int_range(r, 0, 4) == 0,
        .size = sizes[g_rand_int_range(r, 0, G_N_ELEMENTS(sizes))],
        .pos = m->pos + random_number(r, 40),
        .addr = random_number(r, 64),
        .val = random_number(r, 64),
    };

    if (g_rand_int_range(r, 0, 8) == 0) {
        ev.cpu = random_number(r, 8);
    }
    if (g_rand_int_range(r, 0, 4) == 0) {
        ev.aux = random_number(r, 32);
    }
    if (len_max && g_rand_int_range(r, 0, 3) == 0) {
        ev.len = 1 + g_rand_int_range(r, 0, g_rand_boolean(r)
                                            ? MIN(len_max, 20) : len_max);
        uint8_t *data = g_malloc(ev.len);
        for (uint32_t i = 0; i < ev.len; i++) {
            data[i] = g_rand_int(r);
        }
        ev.data = data;
        g_ptr_array_add(m->data, data);
    } else if (m->events->len && g_rand_int_range(r, 0, 3) == 0) {
        /* A repetition, so that short forms occur. */
        TtEvent last = g_array_index(m->events, TtEvent, m->events->len - 1);
        if (!last.len) {
            last.pos = ev.pos;
            ev = last;
        }
    }
    return ev;
}

void log_model_add(LogModel *m, const TtEvent *ev)
{
    g_array_append_vals(m->events, ev, 1);
    m->pos = ev->pos + tt_event_step(ev);
}

void log_model_cut(LogModel *m)
{
    g_array_append_vals(m->segment_ends, &m->events->len, 1);
}

GByteArray *log_model_write(const LogModel *m, bool closed)
{
    TtIo *io = tt_io_mem_new(NULL, 0);
    TtLogEncoder *e = tt_log_encoder_new();
    TtSegBuf *sb = tt_segbuf_new();
    GByteArray *bytes = g_byte_array_new();
    uint32_t at = 0;
    uint64_t pos = 0;
    TtLogWriter *w;
    size_t len;

    g_assert_cmpint(tt_log_writer_new(io, log_util_uuid, &w, NULL), ==, TT_OK);
    for (uint32_t s = 0; s < m->segment_ends->len; s++) {
        uint32_t end = g_array_index(m->segment_ends, uint32_t, s);
        tt_log_encoder_begin(e, sb, pos, s * 1000);
        tt_log_encoder_code_alike(e, s % 2 == 0);
        for (; at < end; at++) {
            const TtEvent *ev = &g_array_index(m->events, TtEvent, at);
            g_assert_true(tt_log_encoder_fits(e, ev));
            tt_log_encoder_put(e, ev);
            pos = ev->pos + tt_event_step(ev);
        }
        tt_log_encoder_end(e, closed && s + 1 == m->segment_ends->len);
        g_assert_cmpint(tt_log_writer_seal(w, sb, NULL), ==, TT_OK);
    }
    const uint8_t *written = tt_io_mem_data(io, &len);
    g_assert_cmpuint(tt_log_writer_bytes(w), ==, len);
    g_byte_array_append(bytes, written, len);
    tt_log_writer_free(w);
    tt_log_encoder_free(e);
    tt_segbuf_free(sb);
    return bytes;
}

static void take_part(GPtrArray *parts, TtIo *io)
{
    GByteArray *bytes = g_byte_array_new();
    size_t len;
    const uint8_t *written = tt_io_mem_data(io, &len);

    g_byte_array_append(bytes, written, len);
    g_ptr_array_add(parts, bytes);
}

GPtrArray *log_model_write_parts(const LogModel *m, unsigned every,
                                 const TtLogPlace *first, bool closed)
{
    GPtrArray *parts =
        g_ptr_array_new_with_free_func((GDestroyNotify)g_byte_array_unref);
    TtIo *io = tt_io_mem_new(NULL, 0);
    TtLogEncoder *e = tt_log_encoder_new_at(first);
    TtSegBuf *sb = tt_segbuf_new();
    uint64_t pos = first->pos;
    uint32_t at = 0;
    TtLogWriter *w;

    g_assert_cmpint(tt_log_writer_new_part(io, log_util_uuid, first, &w, NULL),
                    ==, TT_OK);
    for (uint32_t s = 0; s < m->segment_ends->len; s++) {
        uint32_t end = g_array_index(m->segment_ends, uint32_t, s);

        if (s && s % every == 0) {
            TtLogPlace place = tt_log_writer_place(w);

            g_assert_cmpuint(place.segment, ==, first->segment + s);
            g_assert_cmpuint(place.event, ==, first->event + at);
            g_assert_cmpuint(place.pos, ==, pos);
            take_part(parts, io);
            io = tt_io_mem_new(NULL, 0);
            g_assert_cmpint(tt_log_writer_next_part(w, io, NULL), ==, TT_OK);
        }
        tt_log_encoder_begin(e, sb, pos, s * 1000);
        for (; at < end; at++) {
            TtEvent ev = g_array_index(m->events, TtEvent, at);

            ev.pos += first->pos;
            tt_log_encoder_put(e, &ev);
            pos = ev.pos + tt_event_step(&ev);
        }
        tt_log_encoder_end(e, closed && s + 1 == m->segment_ends->len);
        g_assert_cmpint(tt_log_writer_seal(w, sb, NULL), ==, TT_OK);
    }
    take_part(parts, io);
    tt_log_writer_free(w);
    tt_log_encoder_free(e);
    tt_segbuf_free(sb);
    return parts;
}

GByteArray *log_util_join(const GPtrArray *parts, unsigned from)
{
    GByteArray *all = g_byte_array_new();

    for (; from < parts->len; from++) {
        const GByteArray *part = parts->pdata[from];

        g_byte_array_append(all, part->data, part->len);
    }
    return all;
}

void log_util_assert_same(const TtEvent *a, const TtEvent *b)
{
    g_assert_cmpuint(a->kind, ==, b->kind);
    g_assert_cmpuint(a->nested, ==, b->nested);
    g_assert_cmpuint(a->size, ==, b->size);
    g_assert_cmpuint(a->cpu, ==, b->cpu);
    g_assert_cmpuint(a->aux, ==, b->aux);
    g_assert_cmpuint(a->pos, ==, b->pos);
    g_assert_cmpuint(a->addr, ==, b->addr);
    g_assert_cmpuint(a->val, ==, b->val);
    g_assert_cmpuint(a->len, ==, b->len);
    if (a->len) {
        g_assert_cmpmem(a->data, a->len, b->data, b->len);
    }
}

TtLogReader *log_util_open(const uint8_t *bytes, size_t len, TtStatus want)
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

void log_util_check_segments(TtLogReader *r, const LogModel *m,
                             uint32_t n_segments)
{
    g_assert_cmpuint(tt_log_reader_n_segments(r), ==, n_segments);
    log_util_check_segments_at_least(r, m, n_segments);
}

void log_util_check_segments_at_least(TtLogReader *r, const LogModel *m,
                                      uint32_t n_segments)
{
    uint32_t at = 0;

    g_assert_cmpuint(tt_log_reader_n_segments(r), >=, n_segments);
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

LogModel *log_model_small(uint32_t seed, unsigned n_segments,
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
