/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bench of the block map: a disk of 64 GiB, half of it written, then up to 1,000
 * versions with 2,000 random writes of 4 KiB between two of them. For each size of
 * clusters, and at 0, 10, 100 and 1,000 versions: a lookup, a write (begin and end), a
 * new version with its commit, going one version back and forth, opening the image,
 * and what the disk needs: memory and journal, and bytes written for a byte of the
 * guest's.
 * Data is not moved; the file is in memory and has the journal only. Asserts no times.
 */
#include "block-tt/tt-blockmap.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

#define DISK_BYTES  (64ull << 30)
#define N_WRITES    2000
#define N_LOOKUPS   200000
#define N_VERSIONS  1000

typedef struct Bench {
    TtIo *io;
    TtBlockMap *map;
    GRand *rand;
    uint64_t written, asked;
    double write_ns, version_us, commit_us;
} Bench;

static double now_us(void)
{
    return g_get_monotonic_time();
}

static void expect(TtStatus st)
{
    if (st != TT_OK) {
        g_error("the block map failed: %s", tt_status_name(st));
    }
}

static uint64_t somewhere(Bench *b)
{
    return (uint64_t)g_rand_int_range(b->rand, 0, DISK_BYTES / 4096) * 4096;
}

static void fill(Bench *b)
{
    for (uint64_t at = 0; at < DISK_BYTES / 2;) {
        TtBlockWrite w;

        expect(tt_blockmap_write_begin(b->map, at, MIN(1u << 20, DISK_BYTES / 2 - at),
                                       &w, NULL));
        tt_blockmap_write_end(b->map, &w, true);
        at += w.len;
    }
    expect(tt_blockmap_commit(b->map, b->io, NULL));
}

static void interval(Bench *b)
{
    double start = now_us(), mid, end;
    TtVersionInfo info = { 0 };
    TtVersionId id;

    for (unsigned i = 0; i < N_WRITES; i++) {
        TtBlockWrite w;

        expect(tt_blockmap_write_begin(b->map, somewhere(b), 4096, &w, NULL));
        tt_blockmap_write_end(b->map, &w, true);
        b->written += w.len + w.fill_before + w.fill_after;
        b->asked += w.len;
    }
    mid = now_us();
    expect(tt_blockmap_version_new(b->map, &info, &id, NULL));
    end = now_us();
    b->write_ns = (mid - start) * 1000 / N_WRITES;
    b->version_us = end - mid;
    expect(tt_blockmap_commit(b->map, b->io, NULL));
    b->commit_us = now_us() - end;
}

static void report(Bench *b, unsigned versions)
{
    double start = now_us(), lookup_ns, goto_us, open_ms;
    volatile uint64_t sum = 0;
    TtBlockRun run;
    TtBlockMap *again;
    TtDiskInfo info;

    for (unsigned i = 0; i < N_LOOKUPS; i++) {
        tt_blockmap_lookup(b->map, somewhere(b), 4096, &run);
        sum += run.host_offset;
    }
    lookup_ns = (now_us() - start) * 1000 / N_LOOKUPS;
    tt_blockmap_info(b->map, &info);
    start = now_us();
    if (versions) {
        expect(tt_blockmap_goto(b->map, info.parent - 1, NULL));
        expect(tt_blockmap_goto(b->map, info.parent, NULL));
    }
    goto_us = (now_us() - start) / 2;
    expect(tt_blockmap_commit(b->map, b->io, NULL));
    start = now_us();
    expect(tt_blockmap_open(b->io, &again, NULL));
    open_ms = (now_us() - start) / 1000;
    tt_blockmap_free(again);
    printf("%8u %8.0f %7.0f %10.0f %9.0f %8.0f %8.1f %8.2f %6.1f\n", versions,
           lookup_ns, b->write_ns, b->version_us, b->commit_us, goto_us, open_ms,
           info.journal_bytes / 1048576.0,
           b->asked ? (double)b->written / b->asked : 0.0);
}

/* ---- a file of which only the journal is kept, wherever it stands ---- */

#define PAGE 65536u

typedef struct SparseIo {
    TtIo io;
    GHashTable *pages;
} SparseIo;

static uint8_t *sparse_page(TtIo *io, uint64_t offset, bool make)
{
    SparseIo *s = (SparseIo *)io;
    gpointer key = GSIZE_TO_POINTER(offset / PAGE + 1);
    uint8_t *page = g_hash_table_lookup(s->pages, key);

    if (!page && make) {
        page = g_malloc0(PAGE);
        g_hash_table_insert(s->pages, key, page);
    }
    return page;
}

static TtStatus sparse_size(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    *bytes = 1ull << 41;        /* as long as the data would make it, and more */
    return TT_OK;
}

static TtStatus sparse_read_at(TtIo *io, uint64_t offset, void *buf, size_t len,
                               size_t *got, TtDiag *diag)
{
    for (size_t done = 0, n; done < len; done += n) {
        uint64_t at = offset + done;
        const uint8_t *page = sparse_page(io, at, false);

        n = MIN(len - done, PAGE - at % PAGE);
        if (page) {
            memcpy((uint8_t *)buf + done, page + at % PAGE, n);
        } else {
            memset((uint8_t *)buf + done, 0, n);
        }
    }
    *got = len;
    return TT_OK;
}

static TtStatus sparse_write_at(TtIo *io, uint64_t offset, const void *buf, size_t len,
                                TtDiag *diag)
{
    for (size_t done = 0, n; done < len; done += n) {
        uint64_t at = offset + done;

        n = MIN(len - done, PAGE - at % PAGE);
        memcpy(sparse_page(io, at, true) + at % PAGE, (const uint8_t *)buf + done, n);
    }
    return TT_OK;
}

static TtStatus sparse_sync(TtIo *io, TtDiag *diag)
{
    return TT_OK;
}

static void sparse_close(TtIo *io)
{
    g_hash_table_unref(((SparseIo *)io)->pages);
    g_free(io);
}

static const TtIoOps sparse_ops = {
    .size = sparse_size,
    .read_at = sparse_read_at,
    .write_at = sparse_write_at,
    .sync = sparse_sync,
    .close = sparse_close,
};

static TtIo *sparse_new(void)
{
    SparseIo *s = g_new0(SparseIo, 1);

    s->io.ops = &sparse_ops;
    s->pages = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    return &s->io;
}

static void bench(unsigned bits)
{
    TtBlockSpec spec = { .size_bytes = DISK_BYTES, .cluster_bits = bits };
    Bench b = { .rand = g_rand_new_with_seed(1) };

    b.io = sparse_new();
    expect(tt_blockmap_format_io(&spec, b.io, NULL));
    expect(tt_blockmap_open(b.io, &b.map, NULL));
    fill(&b);
    printf("clusters of %u KiB\n%8s %8s %7s %10s %9s %8s %8s %8s %6s\n", 1u << bits >> 10,
           "versions", "lookup", "write", "version", "commit", "goto", "open", "journal",
           "bytes");
    report(&b, 0);
    for (unsigned i = 1; i <= N_VERSIONS; i++) {
        interval(&b);
        if (i == 10 || i == 100 || i == N_VERSIONS) {
            report(&b, i);
        }
    }
    tt_blockmap_free(b.map);
    tt_io_close(b.io);
    g_rand_free(b.rand);
}

int main(void)
{
    printf("lookup and write in ns, version, commit and goto in us, open in ms, journal "
           "in MiB; bytes: written for one of the guest's\n");
    for (unsigned bits = 14; bits <= 18; bits++) {
        bench(bits);
    }
    return 0;
}
