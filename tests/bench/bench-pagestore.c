/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bench of the page store: what a checkpoint and a movement cost.
 *
 * The guest has 65536 pages (256 MiB); between two checkpoints it writes
 * 25,000 of them. memcpy of as many bytes is measured beside, as the floor.
 * "new memory" takes every page version from the operating system, which can
 * cost more than all else, above all inside a VM whose host gives memory out
 * page by page; "memory reused" deletes a node for each one added.
 * Prints n, median, best and spread of each; asserts no times.
 */
#include "bench-ram.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

#define N_PAGES     65536u
#define N_DIRTY     25000u
#define N_ROUNDS    9

static uint8_t *other;
static uint64_t dirty[N_DIRTY];

static void report(const char *what, double *ms, unsigned n)
{
    qsort(ms, n, sizeof(*ms), compare);
    printf("%-34s n=%u  median %7.2f ms  best %7.2f  spread %7.2f\n", what, n,
           ms[n / 2], ms[0], ms[n - 1] - ms[0]);
}

static double since_ms(gint64 start_us)
{
    return (g_get_monotonic_time() - start_us) / 1000.0;
}

/* The guest writes N_DIRTY pages, spread over the RAM; contents are new. */
static void dirty_pages(GRand *rng)
{
    for (unsigned i = 0; i < N_DIRTY; i++) {
        uint64_t words[2] = { g_rand_int(rng), g_rand_int(rng) };

        dirty[i] = (uint64_t)i * N_PAGES / N_DIRTY;
        memcpy(ram + dirty[i] * TT_PAGE_BYTES + 64 * g_rand_int_range(rng, 0, 64),
               words, sizeof(words));
    }
}

static void fill(GRand *rng)
{
    for (size_t i = 0; i < (size_t)N_PAGES * TT_PAGE_BYTES; i += 4) {
        uint32_t w = g_rand_int(rng);

        memcpy(ram + i, &w, 4);
    }
}

static void bench_memcpy(void)
{
    double ms[N_ROUNDS];

    for (unsigned r = 0; r < N_ROUNDS; r++) {
        gint64 start = g_get_monotonic_time();

        for (unsigned i = 0; i < N_DIRTY; i++) {
            memcpy(other + (size_t)i * TT_PAGE_BYTES,
                   ram + dirty[i] * TT_PAGE_BYTES, TT_PAGE_BYTES);
        }
        ms[r] = since_ms(start);
    }
    report("memcpy of 25000 pages", ms, N_ROUNDS);
}

int main(void)
{
    GRand *rng = g_rand_new_with_seed(1);
    TtPageStore *ps = tt_pagestore_new();
    TtNodeId id[N_ROUNDS + 1], last;
    double ms[N_ROUNDS];
    uint64_t *all = g_new(uint64_t, N_PAGES);
    gint64 start;

    ram = g_malloc((size_t)N_PAGES * TT_PAGE_BYTES);
    other = g_malloc0((size_t)N_DIRTY * TT_PAGE_BYTES);
    fill(rng);
    for (unsigned i = 0; i < N_PAGES; i++) {
        all[i] = i;
    }
    start = g_get_monotonic_time();
    g_assert(!tt_pagestore_add(ps, 1, 0, all, N_PAGES, fetch, NULL, &id[0]));
    printf("first node, 65536 pages: %.2f ms\n", since_ms(start));

    dirty_pages(rng);
    bench_memcpy();
    for (unsigned r = 0; r < N_ROUNDS; r++) {
        dirty_pages(rng);
        start = g_get_monotonic_time();
        g_assert(!tt_pagestore_add(ps, r + 2, id[r], dirty, N_DIRTY, fetch,
                                   NULL, &id[r + 1]));
        ms[r] = since_ms(start);
    }
    report("add, 25000 pages, new memory", ms, N_ROUNDS);

    for (unsigned r = 0; r < N_ROUNDS; r++) {
        TtNodeId from = r ? id[N_ROUNDS - r + 1] : id[N_ROUNDS];
        size_t n;

        if (!r) {
            dirty_pages(rng);
        }
        start = g_get_monotonic_time();
        g_assert(!tt_pagestore_restore(ps, id[N_ROUNDS - r], from, dirty,
                                       r ? 0 : N_DIRTY, put, NULL, &n));
        ms[r] = since_ms(start);
        g_assert_cmpuint(n, ==, N_DIRTY);
    }
    report("restore, 25000 pages put", ms, N_ROUNDS);

    start = g_get_monotonic_time();
    g_assert(!tt_pagestore_restore(ps, id[N_ROUNDS], id[1], NULL, 0, put, NULL,
                                   NULL));
    printf("restore over %u nodes: %.2f ms\n", N_ROUNDS - 1, since_ms(start));
    printf("memory: %.1f MiB for %u nodes\n",
           tt_pagestore_bytes(ps) / 1048576.0, N_ROUNDS + 1);

    for (unsigned r = 0; r < N_ROUNDS; r++) {
        start = g_get_monotonic_time();
        tt_pagestore_delete(ps, id[r]);
        ms[r] = since_ms(start);
    }
    report("delete, oldest first", ms, N_ROUNDS);

    last = id[N_ROUNDS];
    for (unsigned r = 0; r < N_ROUNDS; r++) {
        dirty_pages(rng);
        start = g_get_monotonic_time();
        g_assert(!tt_pagestore_add(ps, N_ROUNDS + 2 + r, last, dirty, N_DIRTY,
                                   fetch, NULL, &id[0]));
        ms[r] = since_ms(start);
        tt_pagestore_delete(ps, last);
        last = id[0];
    }
    report("add, 25000 pages, memory reused", ms, N_ROUNDS);
    tt_pagestore_free(ps);
    g_free(all);
    g_free(ram);
    g_free(other);
    g_rand_free(rng);
    return 0;
}
