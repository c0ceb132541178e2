/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unit tests of the log: what is put in comes out, up to every limit.
 */
#include "tt-log-util.h"
#include "io/tt-bytes.h"

static void test_any_events_come_back(void)
{
    for (uint32_t seed = 0; seed < 300; seed++) {
        LogModel *m = log_model_small(seed, seed % 6, seed % 3 ? 100 : 65535);
        GByteArray *bytes = log_model_write(m, true);
        TtLogReader *r = log_util_open(bytes->data, bytes->len,
                                    seed % 6 ? TT_OK : TT_END_TORN);

        g_assert_cmpmem(tt_log_reader_uuid(r), 16, log_util_uuid, 16);
        g_assert_cmpint(tt_log_reader_is_torn(r), ==, seed % 6 == 0);
        log_util_check_segments(r, m, m->segment_ends->len);
        tt_log_reader_free(r);
        g_byte_array_unref(bytes);
        log_model_free(m);
    }
}

/* Places on disks: any comes back, and one that is damaged is none. */
static void test_places_on_disks(void)
{
    static const TtDiskRef refs[] = {
        { 0, 1, 0, 0 }, { 3, 70, 12345678, 0xdeadbeef },
        { UINT32_MAX, UINT32_MAX, INT64_MAX / 1024, UINT32_MAX },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(refs); i++) {
        uint8_t data[TT_DISK_REF_BYTES_MAX];
        TtEvent ev = { .kind = TT_EV_DISK, .aux = 4096, .data = data };
        TtDiskRef back;

        ev.len = tt_disk_ref_encode(&refs[i], data);
        g_assert_cmpuint(ev.len, <=, sizeof(data));
        g_assert_cmpuint(tt_event_bytes(&ev), ==, 4096);
        g_assert_true(tt_disk_ref_decode(&ev, &back));
        g_assert_cmpuint(back.disk, ==, refs[i].disk);
        g_assert_cmpuint(back.version, ==, refs[i].version);
        g_assert_cmpuint(back.sector, ==, refs[i].sector);
        g_assert_cmpuint(back.sum, ==, refs[i].sum);
        ev.len--;
        g_assert_false(tt_disk_ref_decode(&ev, &back));
        ev.len = 3;
        g_assert_false(tt_disk_ref_decode(&ev, &back));
        ev.len = tt_disk_ref_encode(&refs[i], data);
        ev.aux = 100;
        g_assert_false(tt_disk_ref_decode(&ev, &back));
        ev.aux = TT_LOG_DATA_MAX + 512;
        g_assert_false(tt_disk_ref_decode(&ev, &back));
    }
}

/* A part of the frame that was delivered last has no data in the log, and all of it for a
 * reader; any other part has its own. */
static void test_parts_of_frames(void)
{
    LogModel *m = log_model_new(4);
    uint8_t in[30], part[3][64];
    uint32_t len[3];
    GByteArray *bytes;
    TtLogReader *r;
    TtEvent ev;

    for (unsigned i = 0; i < 3; i++) {
        for (unsigned k = 0; k < sizeof(in); k++) {
            in[k] = g_rand_int(m->rand);
        }
        ev = (TtEvent) { .kind = TT_EV_FRAME_IN, .val = 1ull << (20 * i), .aux = 1514,
                         .data = g_memdup2(in, sizeof(in)), .len = sizeof(in), .pos = m->pos };
        g_ptr_array_add(m->data, (void *)ev.data);
        log_model_add(m, &ev);
        memcpy(part[i], in, 24);
        len[i] = tt_put_varint(part[i] + 24, ev.val) - part[i];
        part[i][len[i]++] = 0;
        ev = (TtEvent) { .kind = TT_EV_RAM, .addr = 3, .val = 4096 * i, .data = in,
                         .len = 12, .pos = m->pos };
        log_model_add(m, &ev);
        for (unsigned k = 0; k <= i; k++) {
            ev = (TtEvent) { .kind = TT_EV_PAYLOAD, .addr = 3, .val = 4096 * i, .aux = 1514,
                             .data = part[i - k], .len = len[i - k], .pos = m->pos };
            log_model_add(m, &ev);
        }
    }
    log_model_cut(m);                   /* nothing is told across segments */
    ev = (TtEvent) { .kind = TT_EV_PAYLOAD, .aux = 1514, .data = part[2], .len = len[2],
                     .pos = m->pos };
    log_model_add(m, &ev);
    log_model_cut(m);
    bytes = log_model_write(m, true);
    r = log_util_open(bytes->data, bytes->len, TT_OK);
    log_util_check_segments(r, m, 2);
    tt_log_reader_free(r);
    g_byte_array_unref(bytes);
    log_model_free(m);
}

/* Events of all lengths that name bytes; told: the frame of @in. */
static TtEvent named_or_not(LogModel *m, TtEvent *in, uint8_t part[64], unsigned *n)
{
    uint32_t what = g_rand_int_range(m->rand, 0, 8);
    TtEvent ev = { .pos = m->pos, .addr = g_rand_int(m->rand), .data = part, .len = 30 };

    switch (what) {
    case 0:
        ++*n;
        memset((void *)in->data, *n, 24);
        *in = (TtEvent) { .kind = TT_EV_FRAME_IN, .pos = m->pos, .val = *n, .aux = 64,
                          .data = in->data, .len = 24 };
        return *in;
    case 1:
        ev.kind = TT_EV_DISK;
        ev.aux = 512;
        ev.val = (uint64_t)g_rand_int(m->rand) << 31;
        return ev;
    case 2:
        ev.kind = TT_EV_RAM;
        ev.addr = g_rand_boolean(m->rand);
        ev.val = g_rand_int(m->rand);
        return ev;
    default:
        ev.kind = TT_EV_PAYLOAD;
        ev.aux = 64 + what;
        if (what > 3) {                 /* the whole of it, behind the last bytes */
            memcpy(part, in->data, 24);
            ev.len = tt_put_varint(part + 24, in->val) - part + 1;
            part[ev.len - 1] = 0;
            ev.addr = 0;
        }
        return ev;
    }
}

/* ... also if events have been left out, and those behind refer to others then. */
static void test_what_is_named_fits(void)
{
    g_autofree uint8_t *zeros = g_malloc0(TT_LOG_DATA_MAX);

    for (unsigned seed = 0; seed < 6; seed++) {
        LogModel *m = log_model_new(seed);
        TtLogEncoder *e = tt_log_encoder_new(), *filled = tt_log_encoder_new();
        TtSegBuf *sb = tt_segbuf_new(), *other = tt_segbuf_new();
        uint8_t first[24] = { 0 }, part[64] = { 1 };
        TtEvent in = { .kind = TT_EV_FRAME_IN, .data = first, .len = 24, .aux = 64 };
        TtEvent ev = in, seldom = { .kind = TT_EV_PIO_IN, .size = 4 };
        unsigned n = 0, puts = 0;

        tt_log_encoder_begin(e, sb, 0, 0);
        tt_log_encoder_begin(filled, other, 0, 0);
        while (tt_log_encoder_fits(e, &ev)) {
            TtEvent copy = ev;

            tt_log_encoder_put(e, &ev);
            if (tt_event_is_named(ev.kind)) {
                copy.kind = TT_EV_RAM;
                copy.len = ev.aux;
                copy.aux = 0;
                copy.data = zeros;
            }
            g_assert_true(tt_log_encoder_fits(filled, &copy));
            tt_log_encoder_put(filled, &copy);
            m->pos = ev.pos + tt_event_step(&ev);
            puts++;
            seldom.pos = m->pos;
            seldom.addr = puts;
            ev = seed % 2 && puts % 16 ? seldom : named_or_not(m, &in, part, &n);
        }
        g_assert_cmpuint(puts, >, 5000);
        tt_log_encoder_end(e, true);
        tt_log_encoder_end(filled, true);
        tt_log_encoder_free(e);
        tt_log_encoder_free(filled);
        tt_segbuf_free(sb);
        tt_segbuf_free(other);
        log_model_free(m);
    }
}

/* How many of @n events have room in one segment. */
static uint32_t n_that_fit(const TtEvent *events, uint32_t n, bool is_ram_by_len, TtSegBuf *sb)
{
    TtLogEncoder *e = tt_log_encoder_new();
    uint32_t i = 0;

    tt_log_encoder_begin(e, sb, 0, 0);
    tt_log_encoder_code_alike(e, is_ram_by_len);
    while (i < n && tt_log_encoder_fits(e, &events[i])) {
        tt_log_encoder_put(e, &events[i++]);
    }
    tt_log_encoder_end(e, true);
    tt_log_encoder_free(e);
    return i;
}

/* A copy of a segment that was full, of a log from before R14, has room in one. */
static void test_copies_have_room(void)
{
    uint8_t zeros[16] = { 0 };
    uint32_t n = 40000, n_fit;
    g_autofree TtEvent *events = g_new0(TtEvent, n);
    TtIo *io = tt_io_mem_new(NULL, 0);
    TtSegBuf *sb = tt_segbuf_new();
    TtLogWriter *w;
    TtLogReader *r;
    TtSegment *seg;
    const uint8_t *bytes;
    size_t len;

    for (uint32_t i = 0; i < n; i++) {
        events[i] = (TtEvent) { .kind = TT_EV_RAM, .pos = i, .data = zeros, .len = 15 + i % 2,
                                .val = i ? events[i - 1].val + events[i - 1].len : 0 };
    }
    n_fit = n_that_fit(events, n, false, sb);
    g_assert_cmpuint(n_fit, <, n);
    g_assert_cmpuint(n_that_fit(events, n_fit, true, sb), <, n_fit);    /* so it matters */
    n_that_fit(events, n_fit, false, sb);
    g_assert_cmpint(tt_log_writer_new(io, log_util_uuid, &w, NULL), ==, TT_OK);
    g_assert_cmpint(tt_log_writer_seal(w, sb, NULL), ==, TT_OK);
    bytes = tt_io_mem_data(io, &len);
    r = log_util_open(bytes, len, TT_OK);
    g_assert_cmpint(tt_log_reader_load(r, 0, &seg, NULL), ==, TT_OK);
    g_assert_cmpuint(seg->n_events, ==, n_fit);
    g_assert_false(seg->info.is_ram_by_len);
    g_assert_cmpuint(n_that_fit(seg->events, n_fit, seg->info.is_ram_by_len, sb), ==, n_fit);
    tt_segment_unref(seg);
    tt_log_reader_free(r);
    tt_log_writer_free(w);
    tt_segbuf_free(sb);
}

/* A segment has room for what it only names: with it put in, it is still one. */
static void test_named_bytes_fill_a_segment(void)
{
    TtLogEncoder *e = tt_log_encoder_new();
    TtSegBuf *sb = tt_segbuf_new();
    uint8_t data[TT_DISK_REF_BYTES_MAX];
    TtEvent ev = { .kind = TT_EV_DISK, .aux = TT_LOG_DATA_MAX, .data = data };
    uint32_t n = 0;

    ev.len = tt_disk_ref_encode(&(TtDiskRef) { .version = 1 }, data);
    tt_log_encoder_begin(e, sb, 0, 0);
    while (tt_log_encoder_fits(e, &ev)) {
        tt_log_encoder_put(e, &ev);
        ev.pos++;
        n++;
    }
    g_assert_cmpuint(n, ==, TT_SEG_PAYLOAD_MAX / TT_LOG_DATA_MAX);
    g_assert_cmpuint(tt_log_encoder_end(e, false)->named_bytes, ==, TT_SEG_PAYLOAD_MAX);
    tt_log_encoder_free(e);
    tt_segbuf_free(sb);
}

/* ---- limits ---- */

static void check_full_segment(const TtEvent *model, bool advance)
{
    TtIo *io = tt_io_mem_new(NULL, 0);
    TtLogEncoder *e = tt_log_encoder_new();
    TtSegBuf *sb = tt_segbuf_new();
    TtEvent ev = *model;
    TtLogWriter *w;
    uint32_t n = 0;

    g_assert_cmpint(tt_log_writer_new(io, log_util_uuid, &w, NULL), ==, TT_OK);
    tt_log_encoder_begin(e, sb, 0, 0);
    while (tt_log_encoder_fits(e, &ev)) {
        tt_log_encoder_put(e, &ev);
        if (advance) {
            ev.addr = ~ev.addr;
            ev.val += ev.val >> 63 ? INT64_MAX : (uint64_t)INT64_MIN;
        }
        n++;
    }
    tt_log_encoder_end(e, true);
    g_assert_cmpuint(sb->n_events, ==, n);
    g_assert_cmpuint(sb->ev_len, <=, TT_SEG_EVENTS_MAX);
    g_assert_true(sb->ev_len > TT_SEG_EVENTS_MAX - 100 ||
                  sb->pl_len > TT_SEG_PAYLOAD_MAX - TT_LOG_DATA_MAX);
    g_assert_cmpuint(sb->kind_count[ev.kind], ==, n);
    g_assert_cmpuint(sb->kind_bytes[ev.kind], ==, sb->ev_len);
    g_assert_cmpuint(sb->kind_payload[ev.kind], ==, sb->pl_len);
    g_assert_cmpint(tt_log_writer_seal(w, sb, NULL), ==, TT_OK);

    size_t len;
    const uint8_t *bytes = tt_io_mem_data(io, &len);
    TtLogReader *r = log_util_open(bytes, len, TT_OK);
    TtSegment *seg;
    g_assert_cmpint(tt_log_reader_load(r, 0, &seg, NULL), ==, TT_OK);
    g_assert_cmpuint(seg->n_events, ==, n);
    g_assert_cmpuint(seg->events[n - 1].len, ==, ev.len);
    tt_segment_unref(seg);
    tt_log_reader_free(r);
    tt_log_writer_free(w);
    tt_log_encoder_free(e);
    tt_segbuf_free(sb);
}

static void test_a_segment_is_filled_to_its_limits(void)
{
    g_autofree uint8_t *data = g_malloc0(TT_LOG_DATA_MAX);
    /* smallest, largest, in-line and payload-bound events */
    TtEvent small = { .kind = TT_EV_UNHALT, .nested = true };
    TtEvent tsc = { .kind = TT_EV_TSC, .val = UINT64_MAX / 2 };
    TtEvent large = { .kind = TT_EV_RAM, .nested = true, .size = 8,
                      .cpu = 255, .aux = UINT32_MAX, .addr = UINT64_MAX / 2,
                      .val = UINT64_MAX / 2, .len = TT_LOG_INLINE_MAX,
                      .data = data };
    TtEvent bulky = { .kind = TT_EV_RAM, .nested = true,
                      .len = TT_LOG_DATA_MAX, .data = data };
    TtEvent odd = bulky;

    odd.len = 65000;
    check_full_segment(&small, false);
    check_full_segment(&tsc, true);
    check_full_segment(&large, true);
    check_full_segment(&bulky, false);
    check_full_segment(&odd, false);
}

static void test_payload_comes_back_compressible_or_not(void)
{
    static const uint32_t lengths[] = { 17, 100, 16384, 16385, 65536 };
    GRand *rand = g_rand_new_with_seed(1);

    for (unsigned i = 0; i < 3 * G_N_ELEMENTS(lengths); i++) {
        LogModel *m = log_model_new(i);
        uint32_t len = lengths[i / 3];
        uint8_t *data = g_malloc0(len);
        TtEvent ev = { .kind = TT_EV_RAM, .len = len, .data = data };

        /* zeros; noise; noise and zeros by turns */
        for (uint32_t k = 0; k < len && i % 3; k++) {
            data[k] = i % 3 == 1 || k / 1000 % 2 ? g_rand_int(rand) : 0;
        }
        g_ptr_array_add(m->data, data);
        for (unsigned k = 0; k < 3; k++) {
            ev.pos = m->pos;
            log_model_add(m, &ev);
        }
        log_model_cut(m);
        g_autoptr(GByteArray) bytes = log_model_write(m, true);
        TtLogReader *r = log_util_open(bytes->data, bytes->len, TT_OK);
        const TtSegInfo *info = tt_log_reader_info(r, 0);
        log_util_check_segments(r, m, 1);
        g_assert_cmpuint(info->pl_raw, ==, 3 * len);
        g_assert_cmpuint(info->pl_stored, <=, info->pl_raw);
        if (i % 3 == 0) {
            g_assert_cmpuint(info->pl_stored, <, 60);
        }
        tt_log_reader_free(r);
        log_model_free(m);
    }
    g_rand_free(rand);
}

static void test_find_names_the_last_segment_that_starts_in_time(void)
{
    for (uint32_t seed = 0; seed < 60; seed++) {
        LogModel *m = log_model_new(seed);
        for (unsigned s = 0; s < 1 + seed % 9; s++) {
            for (int i = g_rand_int_range(m->rand, 0, 3); i > 0; i--) {
                TtEvent ev = { .kind = TT_EV_INTR, .pos = m->pos };
                ev.pos += g_rand_int_range(m->rand, 0, 3);
                log_model_add(m, &ev);
            }
            log_model_cut(m);
        }
        g_autoptr(GByteArray) bytes = log_model_write(m, true);
        TtLogReader *r = log_util_open(bytes->data, bytes->len, TT_OK);
        uint64_t n = tt_log_reader_n_segments(r);

        for (uint64_t pos = 0; pos < m->pos + 3; pos++) {
            uint64_t want = 0;
            for (uint64_t i = 0; i < n; i++) {
                if (tt_log_reader_info(r, i)->first_pos <= pos) {
                    want = i;
                }
            }
            g_assert_cmpuint(tt_log_reader_find(r, pos), ==, want);
        }
        g_assert_cmpuint(tt_log_reader_find(r, UINT64_MAX), ==, n - 1);
        tt_log_reader_free(r);
        log_model_free(m);
    }
}

static void test_a_segment_outlives_its_place_in_the_cache(void)
{
    LogModel *m = log_model_small(4, 40, 30);
    g_autoptr(GByteArray) bytes = log_model_write(m, true);
    TtLogReader *r = log_util_open(bytes->data, bytes->len, TT_OK);
    TtSegment *kept[40];
    TtSegment *none;

    for (unsigned i = 0; i < 40; i++) {
        g_assert_cmpint(tt_log_reader_load(r, i, &kept[i], NULL), ==, TT_OK);
    }
    g_assert_cmpint(tt_log_reader_load(r, 40, &none, NULL),
                    ==, TT_ERR_INVALID);
    g_assert_null(none);
    for (unsigned i = 0, at = 0; i < 40; i++) {
        for (uint32_t k = 0; k < kept[i]->n_events; k++, at++) {
            log_util_assert_same(&kept[i]->events[k],
                                 &g_array_index(m->events, TtEvent, at));
        }
    }
    tt_log_reader_free(r);      /* the segments may outlive it, too */
    for (unsigned i = 0; i < 40; i++) {
        tt_segment_unref(tt_segment_ref(kept[i]));
        tt_segment_unref(kept[i]);
    }
    log_model_free(m);
}

/* ---- our own mistakes are asserts ---- */

static void put_two(uint64_t first, uint64_t second, uint8_t kind,
                    uint8_t size)
{
    TtLogEncoder *e = tt_log_encoder_new();
    TtSegBuf *sb = tt_segbuf_new();
    TtEvent ev = { .kind = TT_EV_INTR, .pos = first };

    tt_log_encoder_begin(e, sb, 0, 0);
    tt_log_encoder_put(e, &ev);
    ev = (TtEvent) { .kind = kind, .pos = second, .size = size };
    tt_log_encoder_put(e, &ev);
    tt_segbuf_free(tt_log_encoder_end(e, true));
    tt_log_encoder_free(e);
}

static void test_the_encoder_asserts_order_and_ranges(void)
{
    if (g_test_subprocess()) {
        return;
    }
    static const char *const names[] = { "back", "kind", "size", "limit" };
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_strdup_printf(
            "/tt/log/subprocess/%s", names[i]);
        g_test_trap_subprocess(path, 0, 0);
        g_test_trap_assert_failed();
    }
    put_two(5, 6, TT_EV_TSC, 8);        /* what is right does pass */
}

static void run_back(void) { put_two(5, 5, TT_EV_TSC, 0); }
static void bad_kind(void) { put_two(5, 6, 14, 0); }
static void bad_size(void) { put_two(5, 6, TT_EV_PIO_IN, 3); }
static void bad_limit(void) { put_two(5, INT64_MAX, TT_EV_TSC, 0); }

/* ---- for people ---- */

static void test_events_print_in_one_line_of_any_size(void)
{
    const TtEvent events[] = {
        { .kind = TT_EV_PIO_IN, .pos = 12, .addr = 0x3f8, .size = 1, .val = 9 },
        { .kind = TT_EV_MARK, .pos = 1, .len = 5,
          .data = (const uint8_t *)"a\n\"\\b" },
        { .kind = TT_EV_RAM, .nested = true, .cpu = 3, .aux = 1, .len = 100,
          .data = log_util_uuid },      /* shows 16 bytes only */
        { .kind = 60, .addr = 1, .val = 2, .pos = UINT64_MAX },
    };
    static const char *const want[] = {
        "          12 pio-in port=0x3f8 size=1 val=0x9",
        "           1 mark len=5 \"a\\x0a\\x22\\x5cb\"",
        ("           0 ram nested vcpu=3 block=0x0 offset=0x0 status=0x1 "
         "len=100 0f1e2d3c4b5a69788796a5b4c3d2e1f0..."),
        "18446744073709551615 (unknown kind 60) addr=0x1 val=0x2",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(events); i++) {
        for (size_t size = 0; size < 160; size++) {
            g_autofree char *buf = g_malloc(size + 1);
            memset(buf, '#', size + 1);
            g_assert_cmpint(tt_event_format(&events[i], buf, size),
                            ==, strlen(want[i]));
            g_assert_cmpint(buf[size], ==, '#');
            if (size > 0) {
                g_autofree char *head = g_strndup(want[i], size - 1);
                g_assert_cmpstr(buf, ==, head);
            }
        }
    }
}

static void test_kinds_have_names_of_their_own(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    for (unsigned k = 0; k < 300; k++) {
        const char *name = tt_event_kind_name(k);
        bool known = (k >= 1 && k <= 13) || (k >= 16 && k <= 31) ||
                     (k >= 32 && k <= 41);
        g_assert_cmpint(name != NULL, ==, known);
        g_assert_true(!name || g_hash_table_add(seen, (char *)name));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/log/any-events-come-back", test_any_events_come_back);
    g_test_add_func("/tt/log/places-on-disks", test_places_on_disks);
    g_test_add_func("/tt/log/parts-of-frames", test_parts_of_frames);
    g_test_add_func("/tt/log/copies-have-room", test_copies_have_room);
    g_test_add_func("/tt/log/what-is-named-fits", test_what_is_named_fits);
    g_test_add_func("/tt/log/named-bytes-fill-a-segment",
                    test_named_bytes_fill_a_segment);
    g_test_add_func("/tt/log/a-segment-is-filled-to-its-limits",
                    test_a_segment_is_filled_to_its_limits);
    g_test_add_func("/tt/log/payload-comes-back-compressible-or-not",
                    test_payload_comes_back_compressible_or_not);
    g_test_add_func("/tt/log/find-names-the-last-segment-that-starts-in-time",
                    test_find_names_the_last_segment_that_starts_in_time);
    g_test_add_func("/tt/log/a-segment-outlives-its-place-in-the-cache",
                    test_a_segment_outlives_its_place_in_the_cache);
    g_test_add_func("/tt/log/the-encoder-asserts-order-and-ranges",
                    test_the_encoder_asserts_order_and_ranges);
    g_test_add_func("/tt/log/subprocess/back", run_back);
    g_test_add_func("/tt/log/subprocess/kind", bad_kind);
    g_test_add_func("/tt/log/subprocess/size", bad_size);
    g_test_add_func("/tt/log/subprocess/limit", bad_limit);
    g_test_add_func("/tt/log/events-print-in-one-line-of-any-size",
                    test_events_print_in_one_line_of_any_size);
    g_test_add_func("/tt/log/kinds-have-names-of-their-own",
                    test_kinds_have_names_of_their_own);
    return g_test_run();
}
