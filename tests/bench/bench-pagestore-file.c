/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bench of the page store with files: what a dirty page costs, from the pause
 * to the disk and back. In microseconds a page.
 *
 *   bench-pagestore-file [RAM-IMAGE]
 *
 * Without an image of a guest's RAM (pmemsave), contents are made up: a third of
 * each page is noise. The guest writes 16 bytes into each of 10,000 pages
 * between two checkpoints. Files are in a new directory of $TMPDIR; "from disk"
 * means not in the store's memory: the system may have them in its own.
 * Prints n, median, best and spread of each; asserts no times.
 */
#include "bench-ram.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>

#define N_DIRTY     10000u
#define N_ROUNDS    9
#define N_MADE_UP   32768u

static size_t n_pages;
static uint64_t dirty[N_DIRTY];

static void report(const char *what, double *us, unsigned n)
{
    qsort(us, n, sizeof(*us), compare);
    printf("%-34s n=%u  median %6.2f us/page  best %6.2f  spread %6.2f\n",
           what, n, us[n / 2], us[0], us[n - 1] - us[0]);
}

static double since_us(gint64 start, size_t pages)
{
    return (double)(g_get_monotonic_time() - start) / MAX(pages, 1);
}

static void make_ram(GRand *rng, const char *image)
{
    gsize len;

    if (image) {
        g_assert(g_file_get_contents(image, (char **)&ram, &len, NULL));
        n_pages = len / TT_PAGE_BYTES;
        g_assert(n_pages >= N_DIRTY);
        return;
    }
    n_pages = N_MADE_UP;
    ram = g_malloc0(n_pages * TT_PAGE_BYTES);
    for (size_t i = 0; i < n_pages * TT_PAGE_BYTES; i += 12) {
        uint32_t w = g_rand_int(rng);

        memcpy(ram + i, &w, 4);
    }
}

static void dirty_pages(GRand *rng)
{
    for (unsigned i = 0; i < N_DIRTY; i++) {
        uint64_t words[2] = { g_rand_int(rng), g_rand_int(rng) };

        dirty[i] = (uint64_t)i * n_pages / N_DIRTY;
        memcpy(ram + dirty[i] * TT_PAGE_BYTES +
               64 * g_rand_int_range(rng, 0, 64), words, sizeof(words));
    }
}

typedef struct Files {
    char *dir, *pages, *journal;
} Files;

static void open_files(const Files *f, TtPageStoreOptions *opt)
{
    g_assert(!tt_io_posix_open_append(f->pages, &opt->pages, NULL));
    g_assert(!tt_io_posix_open_append(f->journal, &opt->checkpoints, NULL));
}

/* Adds nodes after id[0], at positions from @pos on. */
static void bench_add(TtPageStore *ps, GRand *rng, uint64_t pos, TtNodeId *id)
{
    double stage[N_ROUNDS], add[N_ROUNDS], flush[N_ROUNDS];
    TtPageBatch *b = tt_pagebatch_new(N_DIRTY);

    for (unsigned r = 0; r < N_ROUNDS; r++) {
        gint64 start;

        dirty_pages(rng);
        tt_pagebatch_clear(b);
        start = g_get_monotonic_time();
        for (unsigned i = 0; i < N_DIRTY; i++) {
            tt_pagebatch_put(b, dirty[i], ram + dirty[i] * TT_PAGE_BYTES);
        }
        stage[r] = since_us(start, N_DIRTY);
        start = g_get_monotonic_time();
        g_assert(!tt_pagestore_add_batch(ps, pos + r, id[r], b, NULL,
                                         &id[r + 1]));
        add[r] = since_us(start, N_DIRTY);
        start = g_get_monotonic_time();
        g_assert(!tt_pagestore_flush(ps, NULL));
        flush[r] = since_us(start, N_DIRTY);
    }
    report("stage (memcpy, in the pause)", stage, N_ROUNDS);
    report("add (hash, copy)", add, N_ROUNDS);
    report("flush (zstd, append)", flush, N_ROUNDS);
    tt_pagebatch_free(b);
}

/* Back from node to node; the RAM is at the last one. */
static void bench_restore(TtPageStore *ps, const TtNodeId *id,
                          const char *what)
{
    double us[N_ROUNDS];

    for (unsigned r = 0; r < N_ROUNDS; r++) {
        gint64 start = g_get_monotonic_time();
        size_t n;

        g_assert(!tt_pagestore_restore(ps, id[N_ROUNDS - r - 1],
                                       id[N_ROUNDS - r], NULL, 0, put, NULL,
                                       &n));
        us[r] = since_us(start, n);
    }
    report(what, us, N_ROUNDS);
    g_assert(!tt_pagestore_restore(ps, id[N_ROUNDS], id[0], NULL, 0, put,
                                   NULL, NULL));
}

int main(int argc, char **argv)
{
    GRand *rng = g_rand_new_with_seed(1);
    TtPageStoreOptions opt = { .cache_bytes = UINT64_MAX };
    TtNodeId id[N_ROUNDS + 1], more[N_ROUNDS + 1];
    TtPageStoreStats st;
    TtPageStore *ps;
    uint64_t *all;
    gint64 start;
    Files f;

    make_ram(rng, argc > 1 ? argv[1] : NULL);
    f.dir = g_dir_make_tmp("bench-pagestore-XXXXXX", NULL);
    g_assert(f.dir);
    f.pages = g_build_filename(f.dir, "pages", NULL);
    f.journal = g_build_filename(f.dir, "checkpoints", NULL);
    g_assert(!tt_io_posix_create(f.pages, &opt.pages, NULL));
    g_assert(!tt_io_posix_create(f.journal, &opt.checkpoints, NULL));
    g_assert(!tt_pagestore_create(&opt, &ps, NULL));
    all = g_new(uint64_t, n_pages);
    for (size_t i = 0; i < n_pages; i++) {
        all[i] = i;
    }
    start = g_get_monotonic_time();
    g_assert(!tt_pagestore_add(ps, 1, 0, all, n_pages, fetch, NULL, &id[0]));
    g_assert(!tt_pagestore_flush(ps, NULL));
    st = tt_pagestore_stats(ps);
    printf("first node, %zu pages: %.2f us/page; %.1f MB of versions, %.1f MB "
           "stored\n", n_pages, since_us(start, n_pages), st.raw_bytes / 1e6,
           st.stored_bytes / 1e6);
    bench_add(ps, rng, 2, id);
    bench_restore(ps, id, "restore, from memory");
    tt_pagestore_free(ps);

    open_files(&f, &opt);
    start = g_get_monotonic_time();
    g_assert(!tt_pagestore_open(&opt, &ps, NULL));
    st = tt_pagestore_stats(ps);
    printf("open, %" G_GUINT64_FORMAT " versions: %.1f ms\n", st.n_versions,
           since_us(start, 1) / 1000);
    bench_restore(ps, id, "restore, from disk");
    tt_pagestore_free(ps);

    opt.cache_bytes = 16 << 20;
    open_files(&f, &opt);
    g_assert(!tt_pagestore_open(&opt, &ps, NULL));
    bench_restore(ps, id, "restore, from disk, 16 MiB of cache");
    printf("with 16 MiB of cache, so that memory is used again:\n");
    more[0] = id[N_ROUNDS];
    bench_add(ps, rng, N_ROUNDS + 2, more);
    for (unsigned r = 1; r <= N_ROUNDS; r++) {
        tt_pagestore_delete(ps, more[r]);
    }
    for (unsigned r = 0; r < N_ROUNDS; r++) {
        tt_pagestore_delete(ps, id[r]);
    }
    start = g_get_monotonic_time();
    g_assert(!tt_pagestore_flush(ps, NULL));
    st = tt_pagestore_stats(ps);
    printf("flush after deleting %u of %u nodes: %.1f ms; %.1f MB live, %.1f "
           "MB stored\n", 2 * N_ROUNDS, 2 * N_ROUNDS + 1, since_us(start, 1) / 1000,
           st.live_bytes / 1e6, st.stored_bytes / 1e6);
    tt_pagestore_free(ps);
    g_unlink(f.pages);
    g_unlink(f.journal);
    g_rmdir(f.dir);
    g_free(f.dir);
    g_free(f.pages);
    g_free(f.journal);
    g_free(all);
    g_free(ram);
    g_rand_free(rng);
    return 0;
}
