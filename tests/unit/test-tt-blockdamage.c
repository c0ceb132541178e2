/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block map: what is found in a file of which one block is damaged, or that was cut off.
 * It is the newest state, or something is said; never an older state without a word.
 */
#include "block-tt/tt-blockmap.h"
#include "blockmap-damage.h"
#include "io/tt-bytes.h"

#include <glib.h>
#include <string.h>

#define BITS    12
#define CLUSTER (1ull << BITS)
#define N       100

typedef struct Disk {
    TtIo *io;
    TtBlockMap *map;
} Disk;

static Disk disk_new(void)
{
    TtBlockSpec spec = { .size_bytes = (N << BITS) - 512, .cluster_bits = BITS,
                         .backing = "base", .uuid = "0123456789abcde" };
    Disk d = { .io = tt_io_mem_new(NULL, 0) };

    g_assert_cmpint(tt_blockmap_format_io(&spec, d.io, NULL), ==, TT_OK);
    g_assert_cmpint(tt_blockmap_open(d.io, &d.map, NULL), ==, TT_OK);
    return d;
}

static void disk_free(Disk *d)
{
    tt_blockmap_free(d->map);
    tt_io_close(d->io);
}

/* The cluster's bytes in the file are its number. */
static void put(Disk *d, unsigned cluster)
{
    uint8_t bytes[CLUSTER];
    TtBlockWrite w;
    uint64_t at = cluster * CLUSTER, len = MIN(CLUSTER, (N << BITS) - 512 - at);

    memset(bytes, cluster, sizeof(bytes));
    g_assert_cmpint(tt_blockmap_write_begin(d->map, at, len, &w, NULL), ==, TT_OK);
    d->io->ops->write_at(d->io, w.host_offset, bytes, len, NULL);
    tt_blockmap_write_end(d->map, &w, true);
}

static TtVersionId version(Disk *d)
{
    TtVersionInfo info = { .name = "v" };
    TtVersionId id;

    memset(info.name, 'v', TT_BLOCKMAP_NAME_MAX);       /* takes place in a record */
    g_assert_cmpint(tt_blockmap_version_new(d->map, &info, &id, NULL), ==, TT_OK);
    return id;
}

static void reopen(Disk *d)
{
    tt_blockmap_free(d->map);
    g_assert_cmpint(tt_blockmap_open(d->io, &d->map, NULL), ==, TT_OK);
}

static bool is_damaged(const Disk *d)
{
    return tt_blockmap_damage(d->map) != NULL;
}

static TtBlockRun at(const Disk *d, unsigned cluster)
{
    TtBlockRun run;

    tt_blockmap_lookup(d->map, cluster * CLUSTER, 1, &run);
    return run;
}

/* ---- a damaged block ---- */

static void check_each(Disk *d, const char *after)
{
    static const unsigned units[] = { 512, 4096 };

    for (unsigned i = 0; i < G_N_ELEMENTS(units); i++) {
        uint64_t where;
        const char *what = blockmap_damage_each(d->io, units[i], &where);

        if (what) {
            g_error("after %s, block of %u bytes at %" G_GUINT64_FORMAT ": %s", after,
                    units[i], where, what);
        }
    }
}

/* What is freed is not written over, as where a file cannot have holes: an older journal
 * stays whole. */
static void commit(Disk *d, const char *what)
{
    g_assert_cmpint(tt_blockmap_commit(d->map, d->io, NULL), ==, TT_OK);
    check_each(d, what);
}

static void test_each_step(void)
{
    Disk d = disk_new();
    TtVersionId first;
    uint64_t before, after;

    check_each(&d, "the beginning");
    put(&d, 1);
    commit(&d, "the first write");
    put(&d, 2);
    commit(&d, "a write");
    put(&d, 2);
    put(&d, N - 1);
    first = version(&d);
    commit(&d, "a version");
    for (unsigned i = 0; i < 40; i++) {
        put(&d, i * 37 % N);
        version(&d);
    }
    commit(&d, "a long record");
    tt_blockmap_zero(d.map, 0, 5 * CLUSTER, false, &before, &after, NULL);
    version(&d);
    commit(&d, "zeros");
    g_assert_cmpint(tt_blockmap_goto(d.map, first, NULL), ==, TT_OK);
    put(&d, 9);
    version(&d);
    commit(&d, "going to a version");
    g_assert_cmpint(tt_blockmap_version_delete(d.map, first, NULL), ==, TT_OK);
    commit(&d, "a deletion");
    tt_blockmap_set_backing(d.map, "other", NULL, NULL);
    commit(&d, "another backing file");
    put(&d, 10);
    commit(&d, "a write after the journal anew");
    reopen(&d);
    put(&d, 11);
    commit(&d, "opening");
    disk_free(&d);
}

/* Each place of a record in its block, links to other segments, and journals anew. */
static void test_long_life(void)
{
    Disk d = disk_new();
    TtDiskInfo info;
    uint64_t journal = 0;
    bool was_longer = false, was_anew = false;

    tt_blockmap_set_anew_bytes(d.map, 100000);
    for (unsigned i = 0; i < 300; i++) {
        uint64_t where, len;

        put(&d, i * 7 % 40);
        if (i > 3) {
            g_assert_cmpint(tt_blockmap_version_delete(d.map, i - 3, NULL), ==, TT_OK);
        }
        version(&d);
        while (tt_blockmap_next_freed(d.map, &where, &len)) {
            tt_blockmap_release(d.map, where, len);
        }
        g_assert_cmpint(tt_blockmap_commit(d.map, d.io, NULL), ==, TT_OK);
        tt_blockmap_info(d.map, &info);
        was_longer |= i && info.journal_bytes > journal;
        was_anew |= info.journal_bytes < journal;
        if (info.journal_bytes != journal || i % 100 == 9) {
            check_each(&d, "a while");
        }
        journal = info.journal_bytes;
    }
    g_assert_true(was_longer && was_anew);
    disk_free(&d);
}

/* Each operation of a commit fails; the next one is as safe as any. */
static void test_after_a_failure(void)
{
    for (unsigned anew = 0; anew < 2; anew++) {
        for (uint64_t nth = 1; nth <= 4; nth++) {
            Disk d = disk_new();
            TtIo *real = d.io;

            put(&d, 1);
            commit(&d, "the first write");
            put(&d, 2);
            version(&d);
            if (anew) {
                tt_blockmap_set_backing(d.map, "other", NULL, NULL);
            }
            d.io = tt_io_fault_new(real, nth, TT_ERR_NOSPACE);
            (void)tt_blockmap_commit(d.map, d.io, NULL);
            put(&d, 3);
            commit(&d, "a failure");
            put(&d, 4);
            commit(&d, "a failure, and one more");
            disk_free(&d);
        }
    }
}

/* A copy of the head that was never written, or is damaged, is made good by the next commit
 * that writes something, and not at the cost of the one that is left. */
static void test_one_copy(void)
{
    for (unsigned copy = 0; copy < 2; copy++) {
        Disk d = disk_new();
        TtBlockPlan plan;

        put(&d, 1);
        commit(&d, "the first write");
        d.io->ops->write_at(d.io, copy * 4096, "damage", 6, NULL);
        reopen(&d);
        g_assert_false(is_damaged(&d));
        g_assert_false(tt_blockmap_is_dirty(d.map));
        put(&d, 2);
        g_assert_cmpint(tt_blockmap_commit_begin(d.map, &plan, NULL), ==, TT_OK);
        g_assert_cmpuint(plan.step[plan.n - 2].offset, ==, copy * 4096);
        tt_blockmap_commit_end(d.map, false);
        commit(&d, "a lost copy");
        disk_free(&d);
    }
}

/* ---- a file that was cut off ---- */

static Disk cut(const Disk *d, uint64_t len)
{
    g_autofree uint8_t *bytes = g_malloc(len);
    Disk c = { .map = NULL };
    size_t got;

    d->io->ops->read_at(d->io, 0, bytes, len, &got, NULL);
    c.io = tt_io_mem_new(bytes, len);
    if (tt_blockmap_open(c.io, &c.map, NULL) != TT_OK) {
        c.map = NULL;
    }
    return c;
}

/* Bytes that are read are right. Returns how many clusters cannot be read. */
static unsigned read_version(Disk *d, TtVersionId id, unsigned n)
{
    TtBlockView *view = tt_blockmap_view_open(d->map, id);
    unsigned lost = 0;
    uint8_t byte;
    size_t got;

    for (unsigned c = 0; c < n; c++) {
        uint64_t len = MIN(CLUSTER, (N << BITS) - 512 - c * CLUSTER);
        TtBlockRun run;

        tt_blockmap_view_lookup(view, c * CLUSTER, len, &run);
        g_assert_cmpuint(run.len, ==, len);
        lost += run.kind == TT_BLOCK_LOST;
        if (run.kind == TT_BLOCK_HOST) {
            d->io->ops->read_at(d->io, run.host_offset + run.len - 1, &byte, 1, &got, NULL);
            g_assert_cmpuint(got, ==, 1);
            g_assert_cmpuint(byte, ==, (uint8_t)c);
        } else {
            g_assert_cmpint(run.kind, ==, TT_BLOCK_LOST);
        }
    }
    tt_blockmap_view_close(d->map, view);
    return lost;
}

/* Two versions, of which the second needs the end of the file. */
static void test_cut_off(void)
{
    Disk d = disk_new();
    uint64_t size;
    TtVersionInfo version2;
    TtBlockCheck check;

    for (unsigned i = 0; i < 20; i++) {
        put(&d, i);
    }
    version(&d);
    g_assert_cmpint(tt_blockmap_commit(d.map, d.io, NULL), ==, TT_OK);
    for (unsigned i = 10; i < 30; i++) {
        put(&d, i);
    }
    version(&d);
    put(&d, 0);
    g_assert_cmpint(tt_blockmap_commit(d.map, d.io, NULL), ==, TT_OK);
    d.io->ops->size(d.io, &size, NULL);
    for (uint64_t less = 1; less < 20 * CLUSTER; less += less < 600 ? 511 : 1791) {
        Disk c = cut(&d, size - less);
        unsigned lost = (less + CLUSTER - 1) / CLUSTER;
        const char *said;

        g_assert_nonnull(c.map);
        said = tt_blockmap_damage(c.map);
        g_assert_nonnull(said);
        g_assert_nonnull(strstr(said, "has been cut off at byte"));
        g_assert_cmpuint(read_version(&c, 1, 20), ==, 0);
        /* The last of the file is the head's cluster 0. */
        g_assert_cmpint(at(&c, 0).kind, ==, TT_BLOCK_LOST);
        g_assert_cmpuint(read_version(&c, 2, 30), ==, lost - 1);
        g_assert_true(!strstr(said, "versions that need missing clusters: 2") ==
                      (lost == 1));
        g_assert_true(tt_blockmap_version_info(c.map, 2, &version2));
        g_assert_cmpuint(version2.lost, ==, lost - 1);
        g_assert_cmpint(tt_blockmap_check(c.map, &check, NULL), ==, TT_OK);
        g_assert_cmpuint(check.errors, ==, 0);
        disk_free(&c);
    }
    disk_free(&d);
}

/* Cut anywhere: what is found is damaged, or what was there; no assertion. */
static void test_cut_anywhere(void)
{
    Disk d = disk_new();
    uint64_t size;

    for (unsigned i = 0; i < 90; i++) {
        put(&d, i * 7 % N);
        version(&d);
        version(&d);
        g_assert_cmpint(tt_blockmap_commit(d.map, d.io, NULL), ==, TT_OK);
    }
    put(&d, N - 1);                             /* shorter than a cluster */
    g_assert_cmpint(tt_blockmap_commit(d.map, d.io, NULL), ==, TT_OK);
    d.io->ops->size(d.io, &size, NULL);
    for (uint64_t len = size; len > 8192; len -= MIN(len, 2048)) {
        Disk c = cut(&d, len);

        g_assert_nonnull(c.map);
        g_assert_true(is_damaged(&c) == (len < size));
        disk_free(&c);
    }
    disk_free(&d);
}

/* What lacks its data is zeros, whatever is written or not, and however often it is opened. */
static void check_without_data(const Disk *d, uint64_t len)
{
    Disk c = cut(d, len), again;
    uint64_t size;

    g_assert_false(is_damaged(&c));
    g_assert_cmpint(at(&c, 3).kind, ==, TT_BLOCK_HOST);
    put(&c, 4);                                 /* not in its place */
    c.io->ops->size(c.io, &size, NULL);
    again = cut(&c, size);
    g_assert_false(is_damaged(&again));
    g_assert_cmpint(at(&again, 3).host_offset, ==, at(&c, 3).host_offset);
    g_assert_cmpint(at(&again, 4).kind, ==, TT_BLOCK_BACKING);
    disk_free(&again);
    commit(&c, "a cut of power");
    disk_free(&c);
    c = cut(d, len);
    g_assert_cmpint(tt_blockmap_commit(c.map, c.io, NULL), ==, TT_OK);
    c.io->ops->size(c.io, &size, NULL);
    g_assert_cmpuint(size, ==, at(&c, 3).host_offset + CLUSTER);
    version(&c);
    commit(&c, "a cut of power");
    disk_free(&c);
}

/* J3: the power failed before the file was as long as its last record says. Nobody was
 * told that this record is durable: the disk is whole. */
static void test_record_without_data(void)
{
    Disk d = disk_new();
    TtBlockPlan plan;
    uint64_t before;
    Disk c;

    put(&d, 1);
    g_assert_cmpint(tt_blockmap_commit(d.map, d.io, NULL), ==, TT_OK);
    d.io->ops->size(d.io, &before, NULL);
    put(&d, 2);
    put(&d, 3);
    g_assert_cmpint(tt_blockmap_commit_begin(d.map, &plan, NULL), ==, TT_OK);
    g_assert_cmpuint(plan.n, ==, 2);
    d.io->ops->write_at(d.io, plan.step[0].offset, plan.step[0].data, plan.step[0].len,
                        NULL);
    check_without_data(&d, before + CLUSTER);
    check_without_data(&d, before + CLUSTER + 512);
    /* But with its mark, somebody was told. */
    d.io->ops->write_at(d.io, plan.after.offset, plan.after.data, plan.after.len, NULL);
    c = cut(&d, before + CLUSTER);
    g_assert_true(is_damaged(&c));
    disk_free(&c);
    tt_blockmap_commit_end(d.map, true);
    disk_free(&d);
}

/* Does the commit of a whole cluster begin with a sync? */
static bool is_synced_first(Disk *d, unsigned cluster)
{
    TtBlockPlan plan;
    bool is_first;

    put(d, cluster);
    g_assert_cmpint(tt_blockmap_commit_begin(d->map, &plan, NULL), ==, TT_OK);
    is_first = plan.step[0].kind == TT_BLOCK_SYNC;
    for (unsigned i = 0; i < plan.n; i++) {
        g_assert_cmpint(tt_block_step_io(&plan.step[i], d->io, NULL), ==, TT_OK);
    }
    tt_blockmap_commit_end(d->map, true);
    return is_first;
}

/* What is written after a new head, or a link, is not synced; a record without its data is
 * believed only where that is there. So it comes first. */
static void test_record_after_a_new_head(void)
{
    Disk d = disk_new();
    TtDiskInfo info;
    uint64_t journal;

    g_assert_false(is_synced_first(&d, 1));
    tt_blockmap_set_backing(d.map, "other", NULL, NULL);
    g_assert_cmpint(tt_blockmap_commit(d.map, d.io, NULL), ==, TT_OK);
    g_assert_true(is_synced_first(&d, 2));
    g_assert_false(is_synced_first(&d, 3));
    tt_blockmap_info(d.map, &info);
    for (journal = info.journal_bytes; info.journal_bytes == journal;) {
        version(&d);
        g_assert_cmpint(tt_blockmap_commit(d.map, d.io, NULL), ==, TT_OK);
        tt_blockmap_info(d.map, &info);
    }
    g_assert_cmpuint(info.journal_bytes, >, journal);           /* a link */
    g_assert_true(is_synced_first(&d, 4));
    g_assert_false(is_synced_first(&d, 5));
    disk_free(&d);
}

/* ---- a file that was written before there were marks ---- */

/* One record of generation 1, after two heads of generations 0 and 1. */
static Disk old_disk(void)
{
    static const uint8_t ops[] = { 2, 6, 1, 0, 0, 0, 0, 'v' };
    Disk d = disk_new();
    uint8_t b[4096];
    size_t got;

    d.io->ops->read_at(d.io, 0, b, sizeof(b), &got, NULL);
    for (unsigned generation = 0; generation < 2; generation++) {
        tt_put_le64(b + 72, generation);
        tt_put_le64(b + 56, tt_header_sum(b, 4096, 56, 0));
        d.io->ops->write_at(d.io, generation * 4096, b, sizeof(b), NULL);
    }
    memset(b, 0, sizeof(b));
    d.io->ops->write_at(d.io, 2 * CLUSTER + 4096, b, 512, NULL);        /* no mark */
    memcpy(b, "TTJR", 4);
    tt_put_le32(b + 4, 24 + sizeof(ops));
    tt_put_le32(b + 8, 1);
    tt_put_le32(b + 12, 1);
    memcpy(b + 24, ops, sizeof(ops));
    tt_put_le64(b + 16, tt_header_sum(b, 24 + sizeof(ops), 16,
                                      tt_get_le64((const uint8_t *)"01234567") + 1));
    d.io->ops->write_at(d.io, 2 * CLUSTER, b, 512, NULL);
    reopen(&d);
    return d;
}

static void test_older_file(void)
{
    Disk d = old_disk();
    TtDiskInfo info;

    g_assert_false(is_damaged(&d));
    g_assert_false(tt_blockmap_is_dirty(d.map));
    tt_blockmap_info(d.map, &info);
    g_assert_cmpuint(info.n_versions, ==, 1);
    put(&d, 1);
    commit(&d, "a write to an older file");
    reopen(&d);
    tt_blockmap_info(d.map, &info);
    g_assert_cmpuint(info.n_versions, ==, 1);
    disk_free(&d);
}

/* A journal that such a file says is far behind its end is no reason to reserve memory for
 * all that lies between. */
static void test_far_segment(void)
{
    Disk d = old_disk();
    TtBlockMap *map = NULL;
    uint8_t b[4096];
    size_t got;
    TtStatus st;

    d.io->ops->read_at(d.io, CLUSTER, b, sizeof(b), &got, NULL);
    tt_put_le64(b + 80, UINT64_C(1) << 30);
    tt_put_le64(b + 56, tt_header_sum(b, 4096, 56, 0));
    d.io->ops->write_at(d.io, CLUSTER, b, sizeof(b), NULL);
    st = tt_blockmap_open(d.io, &map, NULL);
    g_assert_true(st != TT_OK || tt_blockmap_damage(map));
    if (map) {
        TtDiskInfo info;

        tt_blockmap_info(map, &info);
        g_assert_cmpuint(info.file_hosts, <, 1000);
    }
    tt_blockmap_free(map);
    disk_free(&d);
}

/* A segment that is linked to from itself: found before anything is read twice. */
static void test_overlapping_segments(void)
{
    static const uint8_t link[] = { 5, 2, 2, 16 };      /* O5: host cluster 2, 16 of them */
    Disk d = disk_new();
    uint8_t first[512], b[512] = { 0 };
    TtBlockMap *map;
    TtDiag diag;
    size_t got;

    d.io->ops->read_at(d.io, 2 * CLUSTER, first, sizeof(first), &got, NULL);
    memcpy(b, "TTJR", 4);
    tt_put_le32(b + 4, 24 + sizeof(link));
    tt_put_le32(b + 8, 2);
    tt_put_le32(b + 12, 2);
    memcpy(b + 24, link, sizeof(link));
    tt_put_le64(b + 16, tt_header_sum(b, 24 + sizeof(link), 16, tt_get_le64(first + 16)));
    d.io->ops->write_at(d.io, 2 * CLUSTER + 512, b, sizeof(b), NULL);
    g_assert_cmpint(tt_blockmap_open(d.io, &map, &diag), ==, TT_ERR_FORMAT);
    g_assert_nonnull(strstr(diag.text, "segments overlap"));
    disk_free(&d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/blockmap/damage/no-older-state-without-a-word", test_each_step);
    g_test_add_func("/tt/blockmap/damage/nor-in-a-long-life", test_long_life);
    g_test_add_func("/tt/blockmap/damage/nor-after-a-failure", test_after_a_failure);
    g_test_add_func("/tt/blockmap/damage/a-lost-copy-is-made-good", test_one_copy);
    g_test_add_func("/tt/blockmap/cut-off/whole-versions-are-read", test_cut_off);
    g_test_add_func("/tt/blockmap/cut-off/anywhere", test_cut_anywhere);
    g_test_add_func("/tt/blockmap/cut-off/a-record-without-its-data",
                    test_record_without_data);
    g_test_add_func("/tt/blockmap/cut-off/a-record-after-a-new-head",
                    test_record_after_a_new_head);
    g_test_add_func("/tt/blockmap/older-file", test_older_file);
    g_test_add_func("/tt/blockmap/older-file/far-segment", test_far_segment);
    g_test_add_func("/tt/blockmap/overlapping-segments", test_overlapping_segments);
    return g_test_run();
}
