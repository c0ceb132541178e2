/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frame stores with holes, and more of them than are kept open: what a look at them costs. */
#include "net-tt/tt-framestore.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <unistd.h>

#define MB ((uint64_t)1 << 20)

static TtFrame frame_of(const uint8_t *run, uint64_t seq, uint8_t data[60])
{
    TtFrame f = { .data = data, .seq = seq, .len = 60 };

    memset(data, seq, f.len);
    memcpy(f.run, run, TT_RUN_BYTES);
    f.hash = tt_frame_hash(data, f.len);
    return f;
}

/* A new file with the store of @run, which has frames 0 to @n - 1. */
static void make_store(const char *path, const uint8_t *run, unsigned n)
{
    TtFrameWriter *w;
    uint8_t data[60];
    TtIo *io;

    g_assert_cmpint(tt_io_posix_create(path, &io, NULL), ==, TT_OK);
    g_assert_cmpint(tt_framewriter_new(io, run, &w, NULL), ==, TT_OK);
    for (unsigned i = 0; i < n; i++) {
        TtFrame f = frame_of(run, i, data);

        g_assert_cmpint(tt_framewriter_put(w, &f, NULL), ==, TT_OK);
    }
    tt_framewriter_free(w);
}

/* ---- holes ---- */

/* Counts the bytes that are read. */
typedef struct Counter {
    TtIo io;
    TtIo *base;
    uint64_t *bytes;
} Counter;

static TtStatus count_size(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    TtIo *base = ((Counter *)io)->base;

    return base->ops->size(base, bytes, diag);
}

static TtStatus count_read_at(TtIo *io, uint64_t offset, void *buf, size_t len, size_t *got,
                              TtDiag *diag)
{
    TtIo *base = ((Counter *)io)->base;
    TtStatus st = base->ops->read_at(base, offset, buf, len, got, diag);

    *((Counter *)io)->bytes += *got;
    return st;
}

static void count_close(TtIo *io)
{
    tt_io_close(((Counter *)io)->base);
    g_free(io);
}

static TtIo *counted(const char *path, uint64_t *bytes)
{
    static const TtIoOps ops = {
        .size = count_size, .read_at = count_read_at, .close = count_close,
    };
    Counter *c = g_new0(Counter, 1);

    *c = (Counter) { .io.ops = &ops, .bytes = bytes };
    g_assert_cmpint(tt_io_posix_open(path, &c->base, NULL), ==, TT_OK);
    return &c->io;
}

/* Behind frame 39, and at the end. */
static void make_holes(const char *path, uint64_t hole)
{
    g_autofree char *bytes = NULL;
    gsize len, split = TT_FRAMESTORE_HEAD_BYTES + 40 * (TT_FRAMESTORE_RECORD_BYTES + 60);
    FILE *f;

    g_assert_true(g_file_get_contents(path, &bytes, &len, NULL));
    f = fopen(path, "r+");
    g_assert_cmpint(ftruncate(fileno(f), split), ==, 0);
    g_assert_cmpint(fseek(f, split + hole, SEEK_SET), ==, 0);
    g_assert_cmpuint(fwrite(bytes + split, 1, len - split, f), ==, len - split);
    g_assert_cmpint(fclose(f), ==, 0);
    g_assert_cmpint(truncate(path, len + 2 * hole), ==, 0);
}

/* Each hole is looked through once, and no more than 64 MB of it. */
static void test_holes(void)
{
    static const uint8_t run[TT_RUN_BYTES] = "the run of a VM";
    g_autofree char *dir = g_dir_make_tmp("tt-frames-XXXXXX", NULL);
    g_autofree char *path = tt_framestores_path(dir, run);

    for (unsigned is_large = 0; is_large < 2; is_large++) {
        uint64_t hole = (is_large ? 70 : 50) * MB, bytes = 0;
        TtFrameStore *s;
        TtFrameEntry e;
        TtDiag diag;

        make_store(path, run, 80);
        make_holes(path, hole);
        g_assert_cmpint(tt_framestore_open(counted(path, &bytes), run, &s, NULL), ==, TT_OK);
        for (unsigned i = 0; i < 3000; i++) {
            unsigned k = g_test_rand_int_range(0, 81);

            g_assert_cmpint(tt_framestore_find(s, k, &e, &diag), ==, k < 40 ? TT_OK :
                            is_large ? TT_ERR_FORMAT : k < 80 ? TT_OK : TT_END);
            if (k >= 40 && is_large) {
                g_assert_nonnull(strstr(diag.text, "64 MB of the store are damaged"));
            }
        }
        g_assert_cmpuint(bytes, <, (is_large ? 65 : 101) * MB + 3000 * 17 * 32);
        tt_framestore_free(s);
        g_unlink(path);
    }
    g_rmdir(dir);
}

/* ---- stores that rest ---- */

static void test_rest(void)
{
    static const uint8_t run[TT_RUN_BYTES] = "the run of a VM", other[TT_RUN_BYTES] = "x";
    g_autofree char *dir = g_dir_make_tmp("tt-frames-XXXXXX", NULL);
    g_autofree char *path = tt_framestores_path(dir, run);
    uint64_t bytes = 0;
    TtFrameStore *s;
    TtFrameEntry e;
    TtDiag diag;

    make_store(path, run, 2000);
    g_assert_cmpint(tt_framestore_open(counted(path, &bytes), run, &s, NULL), ==, TT_OK);
    g_assert_cmpint(tt_framestore_find(s, 1999, &e, NULL), ==, TT_OK);
    tt_framestore_rest(s);
    g_assert_true(tt_framestore_rests(s));
    g_assert_cmpint(tt_framestore_resume(s, counted(path, &bytes), other, &diag), ==,
                    TT_ERR_FORMAT);
    bytes = 0;
    g_assert_cmpint(tt_framestore_resume(s, counted(path, &bytes), run, NULL), ==, TT_OK);
    g_assert_cmpint(tt_framestore_find(s, 1500, &e, NULL), ==, TT_OK);
    g_assert_cmpuint(e.seq, ==, 1500);
    g_assert_cmpint(tt_framestore_find(s, 2000, &e, NULL), ==, TT_END);
    g_assert_cmpuint(bytes, <, 48 + 17 * 32);
    tt_framestore_rest(s);
    g_assert_cmpint(truncate(path, 5000), ==, 0);
    g_assert_cmpint(tt_framestore_resume(s, counted(path, &bytes), run, &diag), ==,
                    TT_ERR_FORMAT);
    g_assert_nonnull(strstr(diag.text, "shorter than it was"));
    g_assert_true(tt_framestore_rests(s));
    tt_framestore_free(s);
    g_unlink(path);
    g_rmdir(dir);
}

/* By this process, so far; 0: the host does not count. */
static uint64_t bytes_read(void)
{
    g_autofree char *text = NULL;

    return g_file_get_contents("/proc/self/io", &text, NULL, NULL) ?
        g_ascii_strtoull(text + strlen("rchar: "), NULL, 10) : 0;
}

static unsigned n_open_files(void)
{
    GDir *d = g_dir_open("/proc/self/fd", 0, NULL);
    unsigned n = 0;

    while (g_dir_read_name(d)) {
        n++;
    }
    g_dir_close(d);
    return n;
}

/* More runs than are kept open, in turn: none is walked through again. */
static void test_many(void)
{
    enum { RUNS = 150, FRAMES = 500, ROUNDS = 4 };
    g_autofree char *dir = g_dir_make_tmp("tt-frames-XXXXXX", NULL);
    TtFrameStores *all = tt_framestores_new(dir);
    uint8_t run[TT_RUN_BYTES] = "the runs of VMs", data[60];
    uint64_t before = 0, bytes;
    unsigned n_files = n_open_files();

    for (unsigned i = 0; i < RUNS; i++) {
        g_autofree char *path = NULL;

        run[15] = i;
        path = tt_framestores_path(dir, run);
        make_store(path, run, FRAMES);
    }
    for (unsigned i = 0; i < RUNS * (1 + ROUNDS); i++) {
        TtFrame f;

        before = i == RUNS ? bytes_read() : before;
        run[15] = i % RUNS;
        f = frame_of(run, FRAMES - 1, data);
        g_assert_true(tt_framestores_have(all, &f));
        g_assert_cmpuint(n_open_files(), <=, n_files + 64);
    }
    bytes = bytes_read() - before;
    g_assert_cmpuint(bytes, <, ROUNDS * RUNS * (48 + 17 * 32) + 4096);
    tt_framestores_free(all);
    g_assert_cmpuint(n_open_files(), ==, n_files);
    for (unsigned i = 0; i < RUNS; i++) {
        g_autofree char *path = NULL;

        run[15] = i;
        path = tt_framestores_path(dir, run);
        g_unlink(path);
    }
    g_rmdir(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/framestore/holes-are-looked-through-once", test_holes);
    g_test_add_func("/tt/framestore/rests", test_rest);
    g_test_add_func("/tt/framestore/many-are-not-walked-again", test_many);
    return g_test_run();
}
