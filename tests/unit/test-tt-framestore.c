/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frame stores: what was put is found and read, also while the store grows; what is lost is
 * named; parts of frames in what a device wrote. */
#include "net-tt/tt-framestore.h"

#include <glib.h>
#include <glib/gstdio.h>

static const uint8_t run[TT_RUN_BYTES] = "the run of a VM";

#define FRAMES 300

/* Frame @seq: its length and bytes depend on the number only. Numbers have gaps. */
static TtFrame frame_of(uint64_t seq, uint8_t *data)
{
    TtFrame f = { .data = data, .seq = seq, .len = 14 + seq * 7 % 1501 };

    for (uint32_t i = 0; i < f.len; i++) {
        data[i] = seq + i * 31 + (i >> 3);
    }
    memcpy(f.run, run, sizeof(run));
    f.hash = tt_frame_hash(data, f.len);
    return f;
}

static uint64_t seq_of(unsigned i)
{
    return 1000 + i + i / 100;
}

static uint8_t *copy_of(TtIo *io, size_t *len)
{
    const uint8_t *bytes = tt_io_mem_data(io, len);

    return g_memdup2(bytes, *len);
}

/* A store of @n frames, as bytes. */
static uint8_t *store_of(unsigned n, size_t *len)
{
    uint8_t data[TT_FRAME_BYTES_MAX];
    TtIo *io = tt_io_mem_new(NULL, 0);
    TtFrameWriter *w;
    uint8_t *bytes;

    g_assert_cmpint(tt_framewriter_new(io, run, &w, NULL), ==, TT_OK);
    for (unsigned i = 0; i < n; i++) {
        TtFrame f = frame_of(seq_of(i), data);

        g_assert_cmpint(tt_framewriter_put(w, &f, NULL), ==, TT_OK);
    }
    bytes = copy_of(io, len);
    tt_framewriter_free(w);
    return bytes;
}

static TtFrameStore *open_store(const uint8_t *bytes, size_t len)
{
    TtFrameStore *s;

    g_assert_cmpint(tt_framestore_open(tt_io_mem_new(bytes, len), run, &s, NULL), ==, TT_OK);
    return s;
}

static void check_read(TtFrameStore *s, uint64_t seq)
{
    uint8_t want[TT_FRAME_BYTES_MAX];
    TtFrame f = frame_of(seq, want);
    const uint8_t *data;
    uint32_t len;
    TtDiag diag;

    g_assert_cmpint(tt_framestore_read(s, seq, f.hash, &data, &len, &diag), ==, TT_OK);
    g_assert_cmpmem(data, len, want, f.len);
}

/* Forwards, backwards, at random. */
static void test_all_are_found(void)
{
    size_t len;
    g_autofree uint8_t *bytes = store_of(FRAMES, &len);
    TtFrameStore *s = open_store(bytes, len);
    TtFrameEntry e;
    TtDiag diag;

    for (unsigned i = 0; i < FRAMES; i++) {
        check_read(s, seq_of(i));
    }
    for (unsigned i = FRAMES; i-- > 0;) {
        check_read(s, seq_of(i));
    }
    tt_framestore_free(s);
    s = open_store(bytes, len);
    for (unsigned i = 0; i < 2000; i++) {
        check_read(s, seq_of(g_test_rand_int_range(0, FRAMES)));
    }
    g_assert_cmpint(tt_framestore_find(s, 999, &e, &diag), ==, TT_ERR_FORMAT);
    g_assert_cmpint(tt_framestore_find(s, seq_of(99) + 1, &e, &diag), ==, TT_ERR_FORMAT);
    g_assert_nonnull(strstr(diag.text, "later ones are"));
    g_assert_cmpint(tt_framestore_find(s, seq_of(FRAMES), &e, &diag), ==, TT_END);
    g_assert_nonnull(strstr(diag.text, "ends before"));
    tt_framestore_free(s);
}

/* The reader sees each frame as soon as it was put. */
static void test_it_grows(void)
{
    g_autofree char *dir = g_dir_make_tmp("tt-frames-XXXXXX", NULL);
    g_autofree char *path = tt_framestores_path(dir, run);
    TtFrameStores *all = tt_framestores_new(dir);
    uint8_t data[TT_FRAME_BYTES_MAX];
    TtFrameWriter *w;
    TtIo *io;

    g_assert_cmpint(tt_io_posix_create(path, &io, NULL), ==, TT_OK);
    g_assert_cmpint(tt_framewriter_new(io, run, &w, NULL), ==, TT_OK);
    for (unsigned i = 0; i < FRAMES; i++) {
        TtFrame f = frame_of(seq_of(i), data), other = f;

        g_assert_false(tt_framestores_have(all, &f));
        g_assert_cmpint(tt_framewriter_put(w, &f, NULL), ==, TT_OK);
        g_assert_true(tt_framestores_have(all, &f));
        other.hash++;
        g_assert_false(tt_framestores_have(all, &other));
        other = f;
        other.run[0]++;
        g_assert_false(tt_framestores_have(all, &other));
    }
    g_assert_cmpint(tt_framewriter_sync(w, NULL), ==, TT_OK);
    tt_framewriter_free(w);
    tt_framestores_free(all);
    g_unlink(path);
    g_rmdir(dir);
}

/* Cut anywhere: what is whole is there, what follows is said to be behind the end. */
static void test_cut_anywhere(void)
{
    size_t len;
    g_autofree uint8_t *bytes = store_of(5, &len);
    size_t end = TT_FRAMESTORE_HEAD_BYTES;
    uint8_t data[TT_FRAME_BYTES_MAX];
    unsigned whole = 0;

    for (size_t cut = end; cut < len; cut++) {
        TtFrameStore *s = open_store(bytes, cut);
        TtFrame f = frame_of(seq_of(whole), data);
        TtFrameEntry e;

        if (cut == end + TT_FRAMESTORE_RECORD_BYTES + f.len) {
            end = cut;
            f = frame_of(seq_of(++whole), data);
        }
        for (unsigned i = 0; i < whole; i++) {
            check_read(s, seq_of(i));
        }
        g_assert_cmpint(tt_framestore_find(s, f.seq, &e, NULL), ==, TT_END);
        tt_framestore_free(s);
    }
    for (size_t cut = 0; cut < TT_FRAMESTORE_HEAD_BYTES; cut++) {
        TtFrameStore *s;

        g_assert_cmpint(tt_framestore_open(tt_io_mem_new(bytes, cut), run, &s, NULL), ==,
                        TT_ERR_FORMAT);
        g_assert_null(s);
    }
}

/* A byte is wrong: one frame at most is lost, and no other bytes come instead. */
static void test_each_flip(void)
{
    const unsigned n = 5;
    size_t len;
    g_autofree uint8_t *bytes = store_of(n, &len);
    uint8_t want[TT_FRAME_BYTES_MAX];

    for (size_t at = TT_FRAMESTORE_HEAD_BYTES; at < len; at++) {
        unsigned lost = 0;
        TtFrameStore *s;

        bytes[at] ^= 1 << at % 8;
        s = open_store(bytes, len);
        for (unsigned i = 0; i < n; i++) {
            TtFrame f = frame_of(seq_of(i), want);
            const uint8_t *data;
            uint32_t got;
            TtDiag diag;

            if (tt_framestore_read(s, f.seq, f.hash, &data, &got, &diag) == TT_OK) {
                g_assert_cmpmem(data, got, want, f.len);
            } else {
                g_assert_cmpint(strlen(diag.text), >, 0);
                lost++;
            }
        }
        g_assert_cmpuint(lost, ==, 1);
        tt_framestore_free(s);
        bytes[at] ^= 1 << at % 8;
    }
    for (size_t at = 0; at < TT_FRAMESTORE_HEAD_BYTES; at++) {
        TtFrameStore *s;

        bytes[at] ^= 1;
        g_assert_cmpint(tt_framestore_open(tt_io_mem_new(bytes, len), run, &s, NULL), <, 0);
        bytes[at] ^= 1;
    }
}

/* What a guest sends may be a store of its own. */
static void test_a_store_in_a_frame(void)
{
    const uint8_t other[TT_RUN_BYTES] = "another run....";
    uint8_t inner[4096];
    TtIo *io = tt_io_mem_new(NULL, 0), *evil = tt_io_mem_new(NULL, 0);
    TtFrameWriter *w, *we;
    TtFrameStore *s;
    size_t len;
    const uint8_t *bytes;
    g_autofree uint8_t *copy = NULL;
    TtFrame f = frame_of(1, inner), g;
    TtFrameEntry e;

    g_assert_cmpint(tt_framewriter_new(evil, other, &we, NULL), ==, TT_OK);
    f.seq = 7;
    tt_framewriter_put(we, &f, NULL);
    bytes = tt_io_mem_data(evil, &len);
    g_assert_cmpint(tt_framewriter_new(io, run, &w, NULL), ==, TT_OK);
    g = (TtFrame) { .data = bytes, .len = len, .seq = 6,
                    .hash = tt_frame_hash(bytes, len) };
    tt_framewriter_put(w, &g, NULL);
    g = frame_of(8, inner);
    tt_framewriter_put(w, &g, NULL);
    copy = copy_of(io, &len);
    copy[TT_FRAMESTORE_HEAD_BYTES] ^= 1;        /* the outer head is damaged */
    s = open_store(copy, len);
    g_assert_cmpint(tt_framestore_find(s, 7, &e, NULL), ==, TT_ERR_FORMAT);
    g_assert_cmpint(tt_framestore_find(s, 8, &e, NULL), ==, TT_OK);
    tt_framestore_free(s);
    tt_framewriter_free(w);
    tt_framewriter_free(we);
}

/* The disk is full: nothing is written any more, and what was is whole. */
static void test_a_write_that_fails(void)
{
    for (unsigned nth = 1; nth <= 4; nth++) {
        TtIo *mem = tt_io_mem_new(NULL, 0);
        TtIo *io = tt_io_fault_new(mem, nth, TT_ERR_NOSPACE);
        uint8_t data[TT_FRAME_BYTES_MAX];
        TtFrameWriter *w;
        TtFrameStore *s;
        TtFrameEntry e;
        size_t len;
        g_autofree uint8_t *bytes = NULL;
        TtStatus st = tt_framewriter_new(io, run, &w, NULL);

        g_assert_cmpint(st, ==, nth == 1 ? TT_ERR_NOSPACE : TT_OK);
        if (nth == 1) {
            g_assert_null(w);
            continue;
        }
        for (unsigned i = 0; i < 5; i++) {
            TtFrame f = frame_of(seq_of(i), data);
            TtDiag diag;

            st = tt_framewriter_put(w, &f, &diag);
            g_assert_cmpint(st, ==, i + 2 < nth ? TT_OK : TT_ERR_NOSPACE);
        }
        bytes = copy_of(mem, &len);
        s = open_store(bytes, len);
        for (unsigned i = 0; i + 2 < nth; i++) {
            check_read(s, seq_of(i));
        }
        g_assert_cmpint(tt_framestore_find(s, seq_of(nth - 2), &e, NULL), ==, TT_END);
        tt_framestore_free(s);
        tt_framewriter_free(w);
    }
}

/* ---- parts ---- */

static void test_parts(void)
{
    static const TtFramePart parts[] = {
        { "0123456789abcde", 0, 0, 0 }, { "x", 1234567, 0x123456789abcdef0, 1234 },
        { "y", UINT64_MAX, UINT64_MAX, TT_FRAME_BYTES_MAX - 64 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        uint8_t data[TT_FRAMEPART_BYTES_MAX];
        uint32_t len = tt_framepart_put(data, &parts[i]);
        TtFramePart back;

        g_assert_cmpuint(len, <=, sizeof(data));
        g_assert_cmpint(tt_framepart_get(&back, 64, data, len, NULL), ==, TT_OK);
        g_assert_cmpmem(back.run, TT_RUN_BYTES, parts[i].run, TT_RUN_BYTES);
        g_assert_cmpuint(back.seq, ==, parts[i].seq);
        g_assert_cmpuint(back.hash, ==, parts[i].hash);
        g_assert_cmpuint(back.at, ==, parts[i].at);
        for (uint32_t cut = 0; cut < len; cut++) {
            g_assert_cmpint(tt_framepart_get(&back, 64, data, cut, NULL), ==,
                            TT_ERR_FORMAT);
        }
        g_assert_cmpint(tt_framepart_get(&back, 0, data, len, NULL), ==, TT_ERR_FORMAT);
        g_assert_cmpint(tt_framepart_get(&back, TT_FRAME_BYTES_MAX + 1 - parts[i].at, data,
                                         len, NULL), ==, TT_ERR_FORMAT);
    }
}

/* A frame comes behind a header, in one piece or in buffers of any size. */
static void test_matches(void)
{
    for (unsigned round = 0; round < 2000; round++) {
        uint8_t frame[2048], written[4096];
        uint32_t len = g_test_rand_int_range(14, sizeof(frame)), done = 0;
        uint32_t buffer = g_test_rand_int_range(16, 3000);
        uint32_t head = g_test_rand_int_range(0, 13);
        bool begins = true;

        for (uint32_t i = 0; i < len; i++) {
            frame[i] = g_test_rand_int();
        }
        while (done < len) {
            uint32_t before = begins ? head : 0, n = MIN(len - done, buffer), got;
            uint64_t at = 0;

            memset(written, 0xee, before);
            memcpy(written + before, frame + done, n);
            got = tt_framepart_match(written, before + n, frame, len, done, &at);
            g_assert_cmpuint(got, ==, n < TT_FRAMEPART_MIN ? 0 : n);
            if (got) {
                g_assert_cmpuint(at, ==, before);
            }
            done += n;
            begins = false;
        }
    }
}

/* It is changed on the way: the bytes before are found. */
static void test_matches_up_to_a_change(void)
{
    uint8_t frame[1500], written[1500];
    uint64_t at;

    memset(frame, 0, sizeof(frame));
    memcpy(written, frame, sizeof(frame));
    written[1000] = 1;
    g_assert_cmpuint(tt_framepart_match(written, 1500, frame, 1500, 0, &at), ==, 1000);
    g_assert_cmpuint(at, ==, 0);
    written[63] = 1;
    g_assert_cmpuint(tt_framepart_match(written, 1500, frame, 1500, 0, &at), ==, 0);
    g_assert_cmpuint(tt_framepart_match(written, 63, frame, 1500, 0, &at), ==, 0);
    g_assert_cmpuint(tt_framepart_match(written, 1500, frame, 1500, 1500, &at), ==, 0);
}

/* What is said of a frame that cannot be had names it. */
static void test_sentences(void)
{
    g_autofree char *dir = g_dir_make_tmp("tt-frames-XXXXXX", NULL);
    g_autofree char *path = tt_framestores_path(dir, run);
    size_t len;
    g_autofree uint8_t *bytes = store_of(5, &len);
    uint8_t data[TT_FRAME_BYTES_MAX], out[TT_FRAME_BYTES_MAX];
    TtFrame f = frame_of(seq_of(4), data);
    TtFramePart p = { .seq = f.seq, .hash = f.hash, .at = 3 };
    static const char *const said[] = {
        "whose frame store is missing", "its bytes are damaged", "the store ends before it",
        "another frame than", "not a frame store",
    };

    memcpy(p.run, run, sizeof(run));
    for (unsigned i = 0; i <= G_N_ELEMENTS(said); i++) {
        TtFrameStores *all = tt_framestores_new(dir);
        bool is_cut = i == 2;
        TtDiag diag;

        bytes[len - 1] ^= i == 1;
        bytes[0] ^= i == 4;
        p.hash ^= i == 3;
        if (i) {
            g_assert_true(g_file_set_contents(path, (char *)bytes, len - is_cut, NULL));
        }
        bytes[len - 1] ^= i == 1;
        bytes[0] ^= i == 4;
        if (i == G_N_ELEMENTS(said)) {
            g_assert_cmpint(tt_framestores_read(all, &p, f.len, out, &diag), ==,
                            TT_ERR_FORMAT);
            g_assert_cmpint(tt_framestores_read(all, &p, f.len - 3, out, &diag), ==, TT_OK);
            g_assert_cmpmem(out, f.len - 3, data + 3, f.len - 3);
        } else {
            g_assert_cmpint(tt_framestores_read(all, &p, 10, out, &diag), <, 0);
            g_assert_nonnull(strstr(diag.text, said[i]));
            g_assert_nonnull(strstr(diag.text, "frame 1004 of run 74686520-7275-6e20-"));
        }
        p.hash ^= i == 3;
        tt_framestores_free(all);
    }
    g_unlink(path);
    g_rmdir(dir);
}

/* More runs than are kept open. */
static void test_many_runs(void)
{
    g_autofree char *dir = g_dir_make_tmp("tt-frames-XXXXXX", NULL);
    TtFrameStores *all = tt_framestores_new(dir);
    uint8_t data[TT_FRAME_BYTES_MAX];
    TtFrame f = frame_of(5, data);

    for (unsigned i = 0; i < 200; i++) {
        g_autofree char *path = NULL;
        TtFrameWriter *w;
        TtIo *io;

        f.run[15] = i;
        path = tt_framestores_path(dir, f.run);
        g_assert_cmpint(tt_io_posix_create(path, &io, NULL), ==, TT_OK);
        g_assert_cmpint(tt_framewriter_new(io, f.run, &w, NULL), ==, TT_OK);
        g_assert_cmpint(tt_framewriter_put(w, &f, NULL), ==, TT_OK);
        tt_framewriter_free(w);
    }
    for (unsigned i = 0; i < 600; i++) {
        f.run[15] = i * 7 % 200;
        g_assert_true(tt_framestores_have(all, &f));
    }
    tt_framestores_free(all);
    for (unsigned i = 0; i < 200; i++) {
        g_autofree char *path = NULL;

        f.run[15] = i;
        path = tt_framestores_path(dir, f.run);
        g_unlink(path);
    }
    g_rmdir(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/framestore/all-are-found", test_all_are_found);
    g_test_add_func("/tt/framestore/it-grows", test_it_grows);
    g_test_add_func("/tt/framestore/cut-anywhere", test_cut_anywhere);
    g_test_add_func("/tt/framestore/each-flip-loses-one", test_each_flip);
    g_test_add_func("/tt/framestore/a-store-in-a-frame", test_a_store_in_a_frame);
    g_test_add_func("/tt/framestore/a-write-that-fails", test_a_write_that_fails);
    g_test_add_func("/tt/framestore/parts", test_parts);
    g_test_add_func("/tt/framestore/matches", test_matches);
    g_test_add_func("/tt/framestore/matches-up-to-a-change", test_matches_up_to_a_change);
    g_test_add_func("/tt/framestore/sentences", test_sentences);
    g_test_add_func("/tt/framestore/many-runs", test_many_runs);
    return g_test_run();
}
