/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block map: what its header promises, one by one. (Random lives: tests/sim.)
 */
#include "block-tt/tt-blockmap.h"
#include "io/tt-bytes.h"

#include <glib.h>
#include <string.h>

#define BITS    16
#define CLUSTER (1ull << BITS)

typedef struct Disk {
    TtIo *io;
    TtBlockMap *map;
} Disk;

static TtIo *new_image(uint64_t clusters, unsigned bits, const char *backing)
{
    TtBlockSpec spec = { .size_bytes = clusters << bits, .cluster_bits = bits,
                         .backing = backing, .backing_format = backing ? "raw" : NULL,
                         .uuid = "0123456789abcde" };
    TtIo *io = tt_io_mem_new(NULL, 0);

    g_assert_cmpint(tt_blockmap_format_io(&spec, io, NULL), ==, TT_OK);
    return io;
}

static Disk disk_new(uint64_t clusters, const char *backing)
{
    Disk d = { .io = new_image(clusters, BITS, backing) };

    g_assert_cmpint(tt_blockmap_open(d.io, &d.map, NULL), ==, TT_OK);
    return d;
}

static void disk_free(Disk *d)
{
    TtBlockCheck check;

    g_assert_cmpint(tt_blockmap_check(d->map, &check, NULL), ==, TT_OK);
    g_assert_cmpuint(check.errors, ==, 0);
    tt_blockmap_free(d->map);
    tt_io_close(d->io);
}

static void commit(Disk *d)
{
    uint64_t at, len;

    g_assert_cmpint(tt_blockmap_commit(d->map, d->io, NULL), ==, TT_OK);
    while (tt_blockmap_next_freed(d->map, &at, &len)) {
        tt_blockmap_release(d->map, at, len);
    }
}

static void reopen(Disk *d)
{
    tt_blockmap_free(d->map);
    g_assert_cmpint(tt_blockmap_open(d->io, &d->map, NULL), ==, TT_OK);
    g_assert_null(tt_blockmap_damage(d->map));
}

/* Where it went; the file gets as long as it must be. */
static TtBlockWrite put(Disk *d, uint64_t offset, uint64_t len)
{
    TtBlockWrite w, first = { 0 };

    for (uint64_t done = 0; done < len; done += w.len) {
        g_assert_cmpint(tt_blockmap_write_begin(d->map, offset + done, len - done, &w,
                                                NULL), ==, TT_OK);
        d->io->ops->write_at(d->io, w.host_offset + w.len + w.fill_after - 1, "x", 1,
                             NULL);
        tt_blockmap_write_end(d->map, &w, true);
        first = done ? first : w;
    }
    return first;
}

static TtVersionId version(Disk *d, const char *name)
{
    TtVersionInfo info = { .date_s = 1, .tag = 77, .has_tag = true };
    TtVersionId id;

    g_strlcpy(info.name, name, sizeof(info.name));
    g_assert_cmpint(tt_blockmap_version_new(d->map, &info, &id, NULL), ==, TT_OK);
    return id;
}

static TtBlockRun at(const Disk *d, uint64_t offset)
{
    TtBlockRun run;

    tt_blockmap_lookup(d->map, offset, 1, &run);
    return run;
}

static uint64_t used(const Disk *d)
{
    TtDiskInfo info;

    tt_blockmap_info(d->map, &info);
    return info.used_hosts;
}

/* What is read can be named by version: only what is the same there. */
static void test_kept(void)
{
    Disk d = disk_new(8, "base.raw");

    g_assert_true(tt_blockmap_is_kept(d.map, 0, 8 * CLUSTER));
    put(&d, CLUSTER, 512);
    g_assert_false(tt_blockmap_is_kept(d.map, CLUSTER + 4096, 1));
    g_assert_false(tt_blockmap_is_kept(d.map, 0, CLUSTER + 1));
    g_assert_true(tt_blockmap_is_kept(d.map, 0, CLUSTER));
    version(&d, "v");
    g_assert_true(tt_blockmap_is_kept(d.map, 0, 8 * CLUSTER));
    put(&d, CLUSTER, 512);
    g_assert_false(tt_blockmap_is_kept(d.map, CLUSTER, CLUSTER));
    commit(&d);
    reopen(&d);
    g_assert_false(tt_blockmap_is_kept(d.map, CLUSTER, CLUSTER));
    disk_free(&d);
}

static uint64_t kept(const Disk *d)
{
    TtDiskInfo info;

    tt_blockmap_info(d->map, &info);
    return info.kept_hosts;
}

/* What only versions have: also after a deletion, on another branch, when opened again. */
static void test_kept_by_versions(void)
{
    Disk d = disk_new(100, "base.raw");
    TtVersionId first, second;

    put(&d, 0, 10 * CLUSTER);
    first = version(&d, "first");
    g_assert_cmpuint(kept(&d), ==, 0);
    put(&d, 0, 3 * CLUSTER);
    put(&d, 20 * CLUSTER, CLUSTER);
    g_assert_cmpuint(kept(&d), ==, 3);
    second = version(&d, "second");
    put(&d, 0, CLUSTER);
    tt_blockmap_discard(d.map, 20 * CLUSTER, CLUSTER);
    g_assert_cmpuint(kept(&d), ==, 5);
    commit(&d);
    reopen(&d);
    g_assert_cmpuint(kept(&d), ==, 5);
    g_assert_cmpint(tt_blockmap_goto(d.map, first, NULL), ==, TT_OK);
    g_assert_cmpuint(kept(&d), ==, 4);
    g_assert_cmpint(tt_blockmap_grow(d.map, 200 * CLUSTER, NULL), ==, TT_OK);
    g_assert_cmpuint(kept(&d), ==, 4);
    g_assert_cmpint(tt_blockmap_version_delete(d.map, second, NULL), ==, TT_OK);
    g_assert_cmpuint(kept(&d), ==, 0);
    commit(&d);
    disk_free(&d);
}

/* ---- where writes go ---- */

static void test_first_write(void)
{
    Disk d = disk_new(100, NULL);
    TtBlockWrite first = put(&d, 5 * CLUSTER + 512, 1024), again, after;

    g_assert_true(first.is_new);
    g_assert_cmpuint(first.fill_before, ==, 512);
    g_assert_cmpuint(first.fill_after, ==, CLUSTER - 512 - 1024);
    again = put(&d, 5 * CLUSTER, 512);
    g_assert_false(again.is_new);
    g_assert_cmpuint(again.host_offset, ==, first.host_offset - 512);
    version(&d, "v");
    after = put(&d, 5 * CLUSTER, 512);
    g_assert_true(after.is_new);
    g_assert_cmpuint(after.host_offset, !=, again.host_offset);
    disk_free(&d);
}

static void test_sequential(void)
{
    static const unsigned order[] = { 71, 3, 99, 12, 50, 49, 0, 88 };
    Disk d = disk_new(100, NULL);
    uint64_t host = put(&d, 70 * CLUSTER, CLUSTER).host_offset;

    for (unsigned i = 0; i < G_N_ELEMENTS(order); i++) {
        host += CLUSTER;
        g_assert_cmpuint(put(&d, order[i] * CLUSTER, CLUSTER).host_offset, ==, host);
    }
    disk_free(&d);
}

static void test_long_runs(void)
{
    Disk d = disk_new(5000, "base");
    TtBlockRun run;

    put(&d, 100 * CLUSTER, 3000 * CLUSTER);
    tt_blockmap_lookup(d.map, 0, 5000 * CLUSTER, &run);
    g_assert_cmpint(run.kind, ==, TT_BLOCK_BACKING);
    g_assert_cmpuint(run.len, ==, 100 * CLUSTER);
    tt_blockmap_lookup(d.map, 101 * CLUSTER + 7, 4899 * CLUSTER - 7, &run);
    g_assert_cmpint(run.kind, ==, TT_BLOCK_HOST);
    g_assert_cmpuint(run.len, ==, 2999 * CLUSTER - 7);
    tt_blockmap_lookup(d.map, 3100 * CLUSTER, 1900 * CLUSTER, &run);
    g_assert_cmpuint(run.len, ==, 1900 * CLUSTER);
    disk_free(&d);
}

static void test_failed_write(void)
{
    Disk d = disk_new(10, NULL);
    uint64_t before = used(&d);
    TtBlockWrite w;

    g_assert_cmpint(tt_blockmap_write_begin(d.map, 0, CLUSTER, &w, NULL), ==, TT_OK);
    g_assert_cmpint(at(&d, 0).kind, ==, TT_BLOCK_BACKING);
    tt_blockmap_write_end(d.map, &w, false);
    g_assert_cmpint(at(&d, 0).kind, ==, TT_BLOCK_BACKING);
    g_assert_cmpuint(used(&d), ==, before);
    disk_free(&d);
}

static void test_zeros(void)
{
    Disk d = disk_new(10, "base");
    uint64_t before, after;

    put(&d, 4 * CLUSTER, CLUSTER);
    tt_blockmap_zero(d.map, CLUSTER - 512, CLUSTER, false, &before, &after, NULL);
    g_assert_cmpuint(before, ==, CLUSTER);
    g_assert_cmpuint(after, ==, 0);
    g_assert_cmpint(at(&d, CLUSTER).kind, ==, TT_BLOCK_BACKING);
    tt_blockmap_zero(d.map, 3 * CLUSTER - 512, 3 * CLUSTER, false, &before, &after,
                     NULL);
    g_assert_cmpuint(before, ==, 512);
    g_assert_cmpuint(after, ==, CLUSTER - 512);
    g_assert_cmpint(at(&d, 4 * CLUSTER).kind, ==, TT_BLOCK_ZERO);
    g_assert_cmpint(at(&d, 5 * CLUSTER).kind, ==, TT_BLOCK_BACKING);
    commit(&d);
    reopen(&d);
    g_assert_cmpint(at(&d, 3 * CLUSTER).kind, ==, TT_BLOCK_ZERO);
    disk_free(&d);
}

/* Zeros are not left out where something may come to light below. */
static void test_zeros_over(void)
{
    static const struct { const char *named; bool has_below; TtBlockKind kind; } ways[] = {
        { NULL, false, TT_BLOCK_BACKING }, { NULL, true, TT_BLOCK_ZERO },
        { "base", false, TT_BLOCK_ZERO }, { "base", true, TT_BLOCK_ZERO },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        Disk d = disk_new(10, ways[i].named);
        uint64_t before, after;

        tt_blockmap_zero(d.map, 0, CLUSTER, ways[i].has_below, &before, &after, NULL);
        g_assert_cmpint(at(&d, 0).kind, ==, ways[i].kind);
        disk_free(&d);
    }
}

static void test_discard(void)
{
    Disk d = disk_new(10, "base");
    uint64_t before = used(&d);

    put(&d, 2 * CLUSTER, 2 * CLUSTER);
    tt_blockmap_discard(d.map, 2 * CLUSTER + 1024, 5 * CLUSTER);
    g_assert_cmpint(at(&d, 2 * CLUSTER).kind, ==, TT_BLOCK_HOST);
    g_assert_cmpint(at(&d, 3 * CLUSTER).kind, ==, TT_BLOCK_ZERO);
    g_assert_cmpint(at(&d, 4 * CLUSTER).kind, ==, TT_BLOCK_BACKING);
    g_assert_cmpuint(used(&d), ==, before + 2);
    commit(&d);
    g_assert_cmpuint(used(&d), ==, before + 1);
    disk_free(&d);
}

static void test_free_waits(void)
{
    Disk d = disk_new(10, NULL);
    uint64_t host = put(&d, 0, CLUSTER).host_offset;

    commit(&d);
    tt_blockmap_discard(d.map, 0, CLUSTER);
    for (unsigned i = 1; i < 9; i++) {
        g_assert_cmpuint(put(&d, i * CLUSTER, CLUSTER).host_offset, !=, host);
    }
    disk_free(&d);
}

/* A reader can tell whether what it read may be another cluster's by now. */
static void test_frees(void)
{
    Disk d = disk_new(10, NULL);
    uint64_t before;

    put(&d, 0, 4 * CLUSTER);
    version(&d, "v");
    commit(&d);
    before = tt_blockmap_frees(d.map);
    put(&d, 4 * CLUSTER, CLUSTER);
    commit(&d);
    g_assert_cmpuint(tt_blockmap_frees(d.map), ==, before);
    tt_blockmap_version_delete(d.map, 1, NULL);
    put(&d, 0, CLUSTER);                /* it was held: to a new place */
    g_assert_cmpuint(tt_blockmap_frees(d.map), ==, before);
    commit(&d);
    g_assert_cmpuint(tt_blockmap_frees(d.map), ==, before + 1);
    commit(&d);
    g_assert_cmpuint(tt_blockmap_frees(d.map), ==, before + 1);
    disk_free(&d);
}

/* ---- versions ---- */

static void test_goto(void)
{
    Disk d = disk_new(10, NULL);
    uint64_t old = put(&d, 0, CLUSTER).host_offset, new;
    TtVersionId a = version(&d, "a"), b;

    new = put(&d, 0, CLUSTER).host_offset;
    b = version(&d, "b");
    put(&d, 0, CLUSTER);
    g_assert_cmpint(tt_blockmap_goto(d.map, a, NULL), ==, TT_OK);
    g_assert_cmpuint(at(&d, 0).host_offset, ==, old);
    g_assert_cmpint(tt_blockmap_goto(d.map, b, NULL), ==, TT_OK);
    g_assert_cmpuint(at(&d, 0).host_offset, ==, new);
    g_assert_cmpint(tt_blockmap_goto(d.map, 0, NULL), ==, TT_OK);
    g_assert_cmpint(at(&d, 0).kind, ==, TT_BLOCK_BACKING);
    g_assert_cmpint(tt_blockmap_goto(d.map, 9, NULL), ==, TT_ERR_INVALID);
    commit(&d);
    reopen(&d);
    g_assert_cmpint(tt_blockmap_goto(d.map, b, NULL), ==, TT_OK);
    g_assert_cmpuint(at(&d, 0).host_offset, ==, new);
    disk_free(&d);
}

static void test_delete_frees(void)
{
    Disk d = disk_new(100, NULL);
    uint64_t empty = used(&d);
    TtVersionId a, b;

    put(&d, 0, 10 * CLUSTER);
    a = version(&d, "a");
    put(&d, 0, 3 * CLUSTER);
    b = version(&d, "b");
    put(&d, 0, CLUSTER);
    g_assert_cmpuint(used(&d), ==, empty + 14);
    g_assert_cmpint(tt_blockmap_version_delete(d.map, a, NULL), ==, TT_OK);
    commit(&d);
    g_assert_cmpuint(used(&d), ==, empty + 11);
    g_assert_cmpint(tt_blockmap_version_delete(d.map, b, NULL), ==, TT_OK);
    commit(&d);
    g_assert_cmpuint(used(&d), ==, empty + 10);
    g_assert_cmpint(tt_blockmap_version_delete(d.map, b, NULL), ==, TT_ERR_INVALID);
    g_assert_false(put(&d, 9 * CLUSTER, 512).is_new);
    disk_free(&d);
}

/* On the disk a version that was just deleted is still there: it must be right. */
static void test_deleted_is_held(void)
{
    Disk d = disk_new(10, NULL);
    TtVersionId a;

    put(&d, 0, CLUSTER);
    a = version(&d, "a");
    commit(&d);
    tt_blockmap_version_delete(d.map, a, NULL);
    g_assert_true(put(&d, 0, 512).is_new);
    disk_free(&d);
}

static void test_branches(void)
{
    Disk d = disk_new(2000, NULL);
    uint64_t before;
    TtVersionId root;

    put(&d, 0, 1500 * CLUSTER);
    root = version(&d, "root");
    before = used(&d);
    for (unsigned i = 0; i < 1000; i++) {
        g_assert_cmpint(tt_blockmap_goto(d.map, root, NULL), ==, TT_OK);
        put(&d, i * CLUSTER, CLUSTER);
        version(&d, "branch");
    }
    g_assert_cmpuint(used(&d), ==, before + 1000);
    tt_blockmap_goto(d.map, root, NULL);
    g_assert_cmpint(tt_blockmap_version_delete(d.map, root, NULL), ==, TT_OK);
    commit(&d);
    /* 999 others need the root's 1500, all of which some branch or the head has. */
    g_assert_cmpuint(used(&d), >=, before + 1000);
    disk_free(&d);
}

static void test_view(void)
{
    Disk d = disk_new(10, NULL);
    uint64_t old = put(&d, 0, CLUSTER).host_offset;
    TtVersionId a = version(&d, "a");
    TtBlockView *view = tt_blockmap_view_open(d.map, a);
    TtBlockRun run;

    put(&d, 0, CLUSTER);
    tt_blockmap_view_lookup(view, 0, CLUSTER, &run);
    g_assert_cmpuint(run.host_offset, ==, old);
    g_assert_cmpint(tt_blockmap_version_delete(d.map, a, NULL), ==, TT_ERR_INVALID);
    tt_blockmap_view_close(d.map, view);
    g_assert_cmpint(tt_blockmap_version_delete(d.map, a, NULL), ==, TT_OK);
    g_assert_null(tt_blockmap_view_open(d.map, a));
    disk_free(&d);
}

static void test_list(void)
{
    Disk d = disk_new(10, NULL);
    TtVersionInfo info;
    size_t n;
    g_autofree uint32_t *changed = NULL;

    put(&d, 2 * CLUSTER, CLUSTER);
    version(&d, "one");
    put(&d, 3 * CLUSTER, 2 * CLUSTER);
    version(&d, "two \xc3\xa4");
    commit(&d);
    reopen(&d);
    g_assert_true(tt_blockmap_version_at(d.map, 1, &info));
    g_assert_cmpstr(info.name, ==, "two \xc3\xa4");
    g_assert_cmpuint(info.id, ==, 2);
    g_assert_cmpuint(info.parent, ==, 1);
    g_assert_cmpuint(info.clusters, ==, 2);
    g_assert_cmpuint(info.tag, ==, 77);
    g_assert_true(info.has_tag);
    g_assert_false(tt_blockmap_version_at(d.map, 2, &info));
    changed = tt_blockmap_diff(d.map, 0, 2, &n);
    g_assert_cmpuint(n, ==, 3);
    g_assert_cmpuint(changed[0], ==, 2);
    disk_free(&d);
}

/* ---- what is left after a cut ---- */

static void test_second_head(void)
{
    Disk d = disk_new(10, "base");
    TtDiag diag;
    TtDiskInfo info;
    TtBlockMap *map;

    for (unsigned i = 0; i < 2; i++) {
        d.io->ops->write_at(d.io, i * 4096 + 100, "damage", 6, NULL);
        g_assert_cmpint(tt_blockmap_open(d.io, &map, &diag), ==,
                        i ? TT_ERR_FORMAT : TT_OK);
        if (!i) {
            tt_blockmap_info(map, &info);
            g_assert_cmpstr(info.backing, ==, "base");
            g_assert_cmpstr(info.backing_format, ==, "raw");
            tt_blockmap_free(map);
        }
    }
    g_assert_nonnull(strstr(diag.text, "the header of the disk's file is damaged"));
    disk_free(&d);
}

/* The copy that counts is damaged, the other one was not yet written again, and its journal
 * has nothing any more: the disk is not empty, it is damaged. */
static void test_lost_head(void)
{
    Disk d = disk_new(10, NULL);
    uint8_t older[4096], nothing[8192] = { 0 };
    TtBlockMap *map;
    size_t got;

    put(&d, 0, CLUSTER);
    commit(&d);                                         /* generation 2 */
    d.io->ops->read_at(d.io, 0, older, sizeof(older), &got, NULL);
    version(&d, "a");
    tt_blockmap_set_backing(d.map, "new", NULL, NULL);
    commit(&d);
    d.io->ops->write_at(d.io, 0, older, sizeof(older), NULL);
    g_assert_cmpint(tt_blockmap_open(d.io, &map, NULL), ==, TT_OK);
    g_assert_null(tt_blockmap_damage(map));
    tt_blockmap_free(map);
    d.io->ops->write_at(d.io, 4096 + 104, "?", 1, NULL);
    d.io->ops->write_at(d.io, tt_get_le64(older + 80) << BITS, nothing, sizeof(nothing),
                        NULL);
    g_assert_cmpint(tt_blockmap_open(d.io, &map, NULL), ==, TT_OK);
    g_assert_nonnull(strstr(tt_blockmap_damage(map), "header"));
    tt_blockmap_free(map);
    disk_free(&d);
}

/* A record cut at each byte: the state before it, or after it. */
static void test_cut_record(void)
{
    Disk d = disk_new(10, NULL);
    TtBlockPlan plan;
    g_autofree uint8_t *record = NULL;
    uint64_t offset;
    size_t len;

    put(&d, 0, CLUSTER);
    version(&d, "a");
    commit(&d);
    put(&d, 0, CLUSTER);
    version(&d, "b");
    g_assert_cmpint(tt_blockmap_commit_begin(d.map, &plan, NULL), ==, TT_OK);
    g_assert_cmpuint(plan.n, ==, 3);
    offset = plan.step[1].offset;
    len = plan.step[1].len;
    record = g_memdup2(plan.step[1].data, len);
    tt_blockmap_commit_end(d.map, false);
    for (size_t cut = 0; cut <= len; cut++) {
        static const uint8_t zeros[512];
        TtBlockMap *map;
        TtDiskInfo info;

        d.io->ops->write_at(d.io, offset, zeros, sizeof(zeros), NULL);
        d.io->ops->write_at(d.io, offset, record, cut, NULL);
        g_assert_cmpint(tt_blockmap_open(d.io, &map, NULL), ==, TT_OK);
        g_assert_null(tt_blockmap_damage(map));
        tt_blockmap_info(map, &info);
        g_assert_cmpuint(info.n_versions, >=, 1);
        g_assert_true(info.n_versions == 2 || cut < len);
        tt_blockmap_free(map);
    }
    disk_free(&d);
}

static void test_damage(void)
{
    Disk d = disk_new(10, NULL);
    TtBlockPlan plan;
    uint64_t first;
    TtBlockMap *map;

    put(&d, 0, CLUSTER);
    commit(&d);
    put(&d, CLUSTER, CLUSTER);
    g_assert_cmpint(tt_blockmap_commit_begin(d.map, &plan, NULL), ==, TT_OK);
    first = plan.step[0].offset;
    tt_blockmap_commit_end(d.map, false);
    commit(&d);
    version(&d, "a");
    commit(&d);
    d.io->ops->write_at(d.io, first + 25, "?", 1, NULL);
    g_assert_cmpint(tt_blockmap_open(d.io, &map, NULL), ==, TT_OK);
    g_assert_nonnull(tt_blockmap_damage(map));
    tt_blockmap_free(map);
    disk_free(&d);
}

/* A guest that writes what looks like records, and no longer needs it: the journal comes
 * to lie there. */
static void test_old_data(void)
{
    Disk d = disk_new(200, NULL);
    g_autofree uint8_t *bytes = g_malloc0(CLUSTER);

    for (unsigned i = 0; i < CLUSTER; i += 512) {
        memcpy(bytes + i, "TTJR\0\2\0\0\1\0\0\0\xff\xff\xff\x7f", 16);
    }
    for (unsigned i = 0; i < 40; i++) {
        TtBlockWrite w = put(&d, i * CLUSTER, CLUSTER);

        d.io->ops->write_at(d.io, w.host_offset, bytes, CLUSTER, NULL);
    }
    commit(&d);
    tt_blockmap_discard(d.map, 0, 40 * CLUSTER);
    commit(&d);
    for (unsigned i = 0; i < 300; i++) {
        put(&d, (100 + i % 100) * CLUSTER, CLUSTER);
        tt_blockmap_discard(d.map, (100 + (i + 50) % 100) * CLUSTER, CLUSTER);
        commit(&d);
        reopen(&d);
    }
    disk_free(&d);
}

/* J3: is the data synced before the record is written? @ok: the commit ends well. */
static bool is_data_first(Disk *d, bool ok)
{
    TtBlockPlan plan;
    bool first;

    g_assert_cmpint(tt_blockmap_commit_begin(d->map, &plan, NULL), ==, TT_OK);
    first = plan.step[0].kind == TT_BLOCK_SYNC;
    g_assert_cmpuint(plan.n, ==, first ? 3 : 2);
    for (unsigned i = 0; ok && i < plan.n; i++) {
        const TtBlockStep *s = &plan.step[i];

        if (s->kind == TT_BLOCK_WRITE) {
            d->io->ops->write_at(d->io, s->offset, s->data, s->len, NULL);
        }
    }
    tt_blockmap_commit_end(d->map, ok);
    return first;
}

static void test_order(void)
{
    Disk d = disk_new(10, NULL);

    put(&d, 8 * CLUSTER, CLUSTER);
    commit(&d);                                 /* the journal anew, as a new disk's is */
    put(&d, 0, 2 * CLUSTER);
    g_assert_false(is_data_first(&d, true));
    put(&d, 0, 512);                            /* in place */
    put(&d, 2 * CLUSTER, CLUSTER);
    g_assert_false(is_data_first(&d, true));
    put(&d, 3 * CLUSTER + 512, 512);            /* the rest is copied */
    g_assert_true(is_data_first(&d, true));
    put(&d, 4 * CLUSTER, CLUSTER);
    g_assert_false(is_data_first(&d, false));
    put(&d, 5 * CLUSTER, CLUSTER);
    g_assert_true(is_data_first(&d, true));     /* what has failed is in it */
    put(&d, 6 * CLUSTER, CLUSTER);
    version(&d, "a");
    g_assert_true(is_data_first(&d, true));
    put(&d, 7 * CLUSTER, CLUSTER);
    g_assert_false(is_data_first(&d, true));
    disk_free(&d);
}

/* Each operation of a commit fails once; the next commit mends it. */
static void test_each_failure(void)
{
    for (unsigned anew = 0; anew < 2; anew++) {
        for (uint64_t nth = 1; nth <= (anew ? 4 : 3); nth++) {
            Disk d = disk_new(50, NULL);
            TtIo *real = d.io;
            TtStatus st;

            tt_blockmap_set_anew_bytes(d.map, 1 << 20);
            for (unsigned i = 0; i < 3; i++) {
                put(&d, (3 + i) * CLUSTER, CLUSTER);
                commit(&d);
            }
            put(&d, 0, 2 * CLUSTER);
            version(&d, "a");
            if (anew) {
                tt_blockmap_set_backing(d.map, NULL, NULL, NULL);
            }
            d.io = tt_io_fault_new(real, nth, TT_ERR_NOSPACE);
            st = tt_blockmap_commit(d.map, d.io, NULL);
            g_assert_cmpint(st, ==, TT_ERR_NOSPACE);
            g_assert_true(tt_blockmap_is_dirty(d.map));
            put(&d, CLUSTER, CLUSTER);
            commit(&d);
            reopen(&d);
            g_assert_cmpint(at(&d, 0).kind, ==, TT_BLOCK_HOST);
            g_assert_true(tt_blockmap_version_info(d.map, 1, &(TtVersionInfo) { 0 }));
            disk_free(&d);
        }
    }
}

static TtStatus (*real_write)(TtIo *io, uint64_t offset, const void *buf, size_t len,
                              TtDiag *diag);
static uint64_t host_room;
static unsigned full_writes;

static TtStatus write_to_full_host(TtIo *io, uint64_t offset, const void *buf, size_t len,
                                   TtDiag *diag)
{
    if (offset + len > host_room) {
        full_writes++;
        return tt_fail(diag, TT_ERR_NOSPACE, "no space left");
    }
    return real_write(io, offset, buf, len, diag);
}

/* The host is full, and the journal is due to be made anew: records go on where there is
 * room for them, and it is made anew when the host has room again. */
static void test_full_host(void)
{
    Disk d = disk_new(50, NULL);
    const TtIoOps *ops = d.io->ops;
    TtIoOps full = *ops;

    put(&d, 0, CLUSTER);
    commit(&d);
    tt_blockmap_set_anew_bytes(d.map, 100);
    g_assert_cmpint(d.io->ops->size(d.io, &host_room, NULL), ==, TT_OK);
    real_write = full.write_at;
    full.write_at = write_to_full_host;
    d.io->ops = &full;
    full_writes = 0;
    for (unsigned i = 0; i < 60; i++) {
        version(&d, "while the host is full");
        commit(&d);
    }
    g_assert_cmpuint(full_writes, >, 0);
    g_assert_cmpuint(full_writes, <, 10);       /* it does not try each time */
    d.io->ops = ops;
    reopen(&d);
    g_assert_true(tt_blockmap_version_info(d.map, 60, &(TtVersionInfo) { 0 }));
    tt_blockmap_set_anew_bytes(d.map, 100);
    for (unsigned i = 0; i < 100; i++) {
        version(&d, "and when it has room again");
        commit(&d);
    }
    reopen(&d);
    g_assert_true(tt_blockmap_version_info(d.map, 160, &(TtVersionInfo) { 0 }));
    disk_free(&d);
}

/* A commit that makes the journal anew before it has to. */
static void begin_early_anew(Disk *d, TtBlockPlan *plan)
{
    while (true) {
        version(d, "until the journal is long");
        g_assert_cmpint(tt_blockmap_commit_begin(d->map, plan, NULL), ==, TT_OK);
        if (plan->step[plan->n - 2].offset < 2 * 4096) {
            return;
        }
        for (unsigned i = 0; i < plan->n; i++) {
            g_assert_cmpint(tt_block_step_io(&plan->step[i], d->io, NULL), ==, TT_OK);
        }
        tt_blockmap_commit_end(d->map, true);
    }
}

/* One whose write fails is tried again, as a record; one whose sync fails is not. */
static void test_stopped_commit(void)
{
    Disk d = disk_new(50, NULL);
    TtBlockPlan plan;
    uint64_t used_before;

    put(&d, 0, CLUSTER);
    commit(&d);
    tt_blockmap_set_anew_bytes(d.map, 100);
    used_before = used(&d);
    begin_early_anew(&d, &plan);
    g_assert_cmpint(plan.step[0].kind, ==, TT_BLOCK_WRITE);
    g_assert_cmpint(plan.step[1].kind, ==, TT_BLOCK_SYNC);
    g_assert_true(tt_blockmap_commit_stop(d.map, &plan, 0));
    g_assert_cmpuint(used(&d), ==, used_before);
    g_assert_cmpint(tt_blockmap_commit_begin(d.map, &plan, NULL), ==, TT_OK);
    g_assert_cmpuint(plan.step[plan.n - 2].offset, >=, 2 * 4096);
    g_assert_false(tt_blockmap_commit_stop(d.map, &plan, plan.n - 1));
    commit(&d);
    begin_early_anew(&d, &plan);
    g_assert_false(tt_blockmap_commit_stop(d.map, &plan, 1));
    commit(&d);
    begin_early_anew(&d, &plan);
    g_assert_false(tt_blockmap_commit_stop(d.map, &plan, 2));   /* it may name it */
    commit(&d);
    reopen(&d);
    disk_free(&d);
}

static void test_long_journal(void)
{
    Disk d = disk_new(3000, NULL);
    TtDiskInfo info;

    for (unsigned i = 0; i < 3000; i++) {
        put(&d, i * CLUSTER, CLUSTER);
        version(&d, "one of many");
        commit(&d);
        if (i % 500 == 499) {
            reopen(&d);
        }
    }
    tt_blockmap_info(d.map, &info);
    g_assert_cmpuint(info.n_versions, ==, 3000);
    /* 3000 records of 512 bytes, less what was made anew. */
    g_assert_cmpuint(info.journal_bytes, <, 1500 << 10);
    g_assert_cmpint(tt_blockmap_goto(d.map, 1500, NULL), ==, TT_OK);
    g_assert_cmpint(at(&d, 1499 * CLUSTER).kind, ==, TT_BLOCK_HOST);
    g_assert_cmpint(at(&d, 1500 * CLUSTER).kind, ==, TT_BLOCK_BACKING);
    disk_free(&d);
}

/* A file that somebody writes: after some reads it is another one. */
typedef struct TwoFiles {
    TtIo io;
    TtIo *before, *after;
    unsigned reads;             /* of the first one */
} TwoFiles;

static TtIo *which(TtIo *io, bool is_read)
{
    TwoFiles *f = (TwoFiles *)((char *)io - offsetof(TwoFiles, io));

    f->reads -= is_read && f->reads;
    return f->reads ? f->before : f->after;
}

static TtStatus two_size(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    TtIo *f = which(io, false);

    return f->ops->size(f, bytes, diag);
}

static TtStatus two_read_at(TtIo *io, uint64_t offset, void *buf, size_t len, size_t *got,
                            TtDiag *diag)
{
    TtIo *f = which(io, true);

    return f->ops->read_at(f, offset, buf, len, got, diag);
}

/* The journal is made anew, and its old place is given back, just after the head was
 * read. Nothing is damaged, and nothing is missing. */
static void test_open_beside_a_writer(void)
{
    static const TtIoOps ops = { .size = two_size, .read_at = two_read_at };
    Disk d = disk_new(10, "base");
    TwoFiles two = { .io.ops = &ops, .after = d.io, .reads = 2 };
    g_autofree uint8_t *zeros = g_malloc0(CLUSTER);
    const uint8_t *bytes;
    uint64_t at, len;
    TtBlockMap *map;
    size_t size;

    put(&d, 0, CLUSTER);
    version(&d, "v");
    commit(&d);
    bytes = tt_io_mem_data(d.io, &size);
    two.before = tt_io_mem_new(bytes, size);
    tt_blockmap_set_backing(d.map, "other", NULL, NULL);
    g_assert_cmpint(tt_blockmap_commit(d.map, d.io, NULL), ==, TT_OK);
    while (tt_blockmap_next_freed(d.map, &at, &len)) {
        for (uint64_t done = 0; done < len; done += CLUSTER) {
            d.io->ops->write_at(d.io, at + done, zeros, CLUSTER, NULL);
        }
        tt_blockmap_release(d.map, at, len);
    }
    g_assert_cmpint(tt_blockmap_open(&two.io, &map, NULL), ==, TT_OK);
    g_assert_null(tt_blockmap_damage(map));
    g_assert_true(tt_blockmap_version_info(map, 1, &(TtVersionInfo) { 0 }));
    tt_blockmap_free(map);
    tt_io_close(two.before);
    disk_free(&d);
}

/* ---- bad input ---- */

static uint64_t size_of(const Disk *d)
{
    TtDiskInfo info;

    tt_blockmap_info(d->map, &info);
    return info.size_bytes;
}

static void begin(Disk *d, TtBlockPlan *plan)
{
    g_assert_cmpint(tt_blockmap_commit_begin(d->map, plan, NULL), ==, TT_OK);
}

static void end(Disk *d, const TtBlockPlan *plan, bool ok)
{
    for (unsigned i = 0; ok && i < plan->n; i++) {
        const TtBlockStep *s = &plan->step[i];

        if (s->kind == TT_BLOCK_WRITE) {
            d->io->ops->write_at(d->io, s->offset, s->data, s->len, NULL);
        }
    }
    tt_blockmap_commit_end(d->map, ok);
}

/* What changes the file head while a commit runs is in the next one, whatever kind of
 * commit that was. */
static void test_head_beside_a_commit(void)
{
    Disk d = disk_new(8, "old");
    TtBlockPlan plan;
    TtDiskInfo info;

    put(&d, CLUSTER, CLUSTER);
    commit(&d);
    put(&d, 0, CLUSTER);
    begin(&d, &plan);                                   /* a record */
    g_assert_cmpint(tt_blockmap_grow(d.map, 9 * CLUSTER, NULL), ==, TT_OK);
    end(&d, &plan, true);
    g_assert_true(tt_blockmap_is_dirty(d.map));
    begin(&d, &plan);                                   /* the journal anew */
    g_assert_cmpint(tt_blockmap_grow(d.map, 10 * CLUSTER, NULL), ==, TT_OK);
    end(&d, &plan, true);
    reopen(&d);
    g_assert_cmpuint(size_of(&d), ==, 9 * CLUSTER);
    g_assert_cmpint(tt_blockmap_grow(d.map, 10 * CLUSTER, NULL), ==, TT_OK);
    begin(&d, &plan);
    g_assert_cmpint(tt_blockmap_set_backing(d.map, "new", "raw", NULL), ==, TT_OK);
    end(&d, &plan, true);
    g_assert_true(tt_blockmap_is_dirty(d.map));
    begin(&d, &plan);
    end(&d, &plan, false);
    g_assert_true(tt_blockmap_is_dirty(d.map));
    commit(&d);
    g_assert_false(tt_blockmap_is_dirty(d.map));
    reopen(&d);
    tt_blockmap_info(d.map, &info);
    g_assert_cmpuint(info.size_bytes, ==, 10 * CLUSTER);
    g_assert_cmpstr(info.backing, ==, "new");
    g_assert_cmpint(at(&d, 0).kind, ==, TT_BLOCK_HOST);
    disk_free(&d);
}

/* A disk that could not grow is what it was, whatever of it has reached the file. */
static void test_grow_undo(void)
{
    for (uint64_t nth = 1; nth <= 5; nth++) {
        Disk d = disk_new(700, "base");
        TtIo *real = d.io;
        uint64_t before, after;

        put(&d, 699 * CLUSTER, CLUSTER);
        version(&d, "v");
        commit(&d);
        g_assert_cmpint(tt_blockmap_grow(d.map, 3000 * CLUSTER, NULL), ==, TT_OK);
        tt_blockmap_zero(d.map, 700 * CLUSTER, 2300 * CLUSTER, true, &before, &after, NULL);
        put(&d, 5 * CLUSTER, CLUSTER);
        d.io = tt_io_fault_new(real, nth, TT_ERR_NOSPACE);
        (void)tt_blockmap_commit(d.map, d.io, NULL);
        tt_blockmap_grow_undo(d.map, 700 * CLUSTER);
        g_assert_true(tt_blockmap_is_dirty(d.map));
        put(&d, 6 * CLUSTER, CLUSTER);
        version(&d, "w");
        commit(&d);
        reopen(&d);
        g_assert_cmpuint(size_of(&d), ==, 700 * CLUSTER);
        g_assert_cmpint(at(&d, 5 * CLUSTER).kind, ==, TT_BLOCK_HOST);
        g_assert_cmpint(at(&d, 6 * CLUSTER).kind, ==, TT_BLOCK_HOST);
        g_assert_cmpint(at(&d, 699 * CLUSTER).kind, ==, TT_BLOCK_HOST);
        g_assert_cmpint(tt_blockmap_grow(d.map, 1000 * CLUSTER, NULL), ==, TT_OK);
        g_assert_cmpint(at(&d, 999 * CLUSTER).kind, ==, TT_BLOCK_BACKING);
        commit(&d);
        disk_free(&d);
    }
}

static void test_bad_spec(void)
{
    TtBlockSpec odd = { .size_bytes = 1000 }, large = { .size_bytes = 1ull << 50 };
    TtBlockSpec bits = { .size_bytes = 512, .cluster_bits = 30 };
    Disk d = disk_new(8, NULL);
    uint8_t *bytes;
    TtBlockPlan plan;
    TtDiag diag;

    g_assert_cmpint(tt_blockmap_format(&odd, &plan, &bytes, &diag), ==, TT_ERR_INVALID);
    g_assert_cmpint(tt_blockmap_format(&large, &plan, &bytes, &diag), ==, TT_ERR_LIMIT);
    g_assert_null(strstr(diag.text, "larger clusters"));
    large.cluster_bits = 20;
    g_assert_cmpint(tt_blockmap_format(&large, &plan, &bytes, &diag), ==, TT_ERR_LIMIT);
    g_assert_nonnull(strstr(diag.text, "larger clusters"));
    g_assert_cmpint(tt_blockmap_format(&bits, &plan, &bytes, &diag), ==, TT_ERR_INVALID);
    g_assert_null(bytes);
    g_assert_cmpint(tt_blockmap_grow(d.map, 1ull << 50, &diag), ==, TT_ERR_LIMIT);
    g_assert_null(strstr(diag.text, "larger clusters"));    /* nobody can give it those */
    disk_free(&d);
}

/* Larger disks get larger clusters, and no larger ones than they need. */
static void test_large(void)
{
    static const struct { uint64_t bytes; uint32_t cluster; } disks[] = {
        { 64ull << 30, 32 << 10 }, { (8ull << 40) - 512, 32 << 10 },
        { 8ull << 40, 64 << 10 }, { 16ull << 40, 128 << 10 }, { 511ull << 40, 2 << 20 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(disks); i++) {
        TtBlockSpec spec = { .size_bytes = disks[i].bytes };
        Disk d = { .map = NULL };
        TtDiskInfo info;

        d.io = tt_io_mem_new(NULL, 0);
        g_assert_cmpint(tt_blockmap_format_io(&spec, d.io, NULL), ==, TT_OK);
        g_assert_cmpint(tt_blockmap_open(d.io, &d.map, NULL), ==, TT_OK);
        tt_blockmap_info(d.map, &info);
        g_assert_cmpuint(info.cluster_bytes, ==, disks[i].cluster);
        put(&d, disks[i].bytes - 512, 512);
        commit(&d);
        reopen(&d);
        g_assert_cmpint(at(&d, disks[i].bytes - 512).kind, ==, TT_BLOCK_HOST);
        disk_free(&d);
    }
}

static void test_not_ours(void)
{
    TtIo *io = tt_io_mem_new("some text", 9);
    TtBlockMap *map;
    TtDiag diag;

    g_assert_cmpint(tt_blockmap_open(io, &map, &diag), ==, TT_ERR_FORMAT);
    g_assert_nonnull(strstr(diag.text, "this file is not a disk with versions"));
    g_assert_null(map);
    tt_io_close(io);
}

static void test_sizes(void)
{
    for (unsigned bits = TT_BLOCKMAP_CLUSTER_BITS_MIN;
         bits <= TT_BLOCKMAP_CLUSTER_BITS_MAX; bits++) {
        Disk d = { .io = new_image(7, bits, NULL) };

        g_assert_cmpint(tt_blockmap_open(d.io, &d.map, NULL), ==, TT_OK);
        put(&d, 0, 7ull << bits);
        version(&d, "v");
        commit(&d);
        reopen(&d);
        g_assert_cmpint(at(&d, 6ull << bits).kind, ==, TT_BLOCK_HOST);
        disk_free(&d);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/blockmap/write/first-after-a-version-is-new", test_first_write);
    g_test_add_func("/tt/blockmap/kept", test_kept);
    g_test_add_func("/tt/blockmap/kept-by-versions", test_kept_by_versions);
    g_test_add_func("/tt/blockmap/write/random-becomes-sequential", test_sequential);
    g_test_add_func("/tt/blockmap/write/failed-changes-nothing", test_failed_write);
    g_test_add_func("/tt/blockmap/lookup/runs-are-as-long-as-can-be", test_long_runs);
    g_test_add_func("/tt/blockmap/zero/whole-clusters-only", test_zeros);
    g_test_add_func("/tt/blockmap/zero/over-what-is-below", test_zeros_over);
    g_test_add_func("/tt/blockmap/discard/gives-space-back", test_discard);
    g_test_add_func("/tt/blockmap/free/is-used-after-a-commit-only", test_free_waits);
    g_test_add_func("/tt/blockmap/free/is-counted", test_frees);
    g_test_add_func("/tt/blockmap/versions/go-to-and-fro", test_goto);
    g_test_add_func("/tt/blockmap/versions/deletion-frees-what-only-it-needs",
                    test_delete_frees);
    g_test_add_func("/tt/blockmap/versions/deleted-is-whole-until-a-commit",
                    test_deleted_is_held);
    g_test_add_func("/tt/blockmap/versions/branches-cost-their-changes", test_branches);
    g_test_add_func("/tt/blockmap/versions/view-stays-while-head-is-written", test_view);
    g_test_add_func("/tt/blockmap/versions/list-and-diff", test_list);
    g_test_add_func("/tt/blockmap/file/second-head-counts", test_second_head);
    g_test_add_func("/tt/blockmap/file/record-cut-at-each-byte", test_cut_record);
    g_test_add_func("/tt/blockmap/file/damage-is-told-from-a-cut", test_damage);
    g_test_add_func("/tt/blockmap/file/a-lost-head-is-damage", test_lost_head);
    g_test_add_func("/tt/blockmap/file/data-before-its-record", test_order);
    g_test_add_func("/tt/blockmap/file/old-data-is-no-record", test_old_data);
    g_test_add_func("/tt/blockmap/file/each-operation-fails-once", test_each_failure);
    g_test_add_func("/tt/blockmap/file/long-journal-is-made-anew", test_long_journal);
    g_test_add_func("/tt/blockmap/file/host-is-full", test_full_host);
    g_test_add_func("/tt/blockmap/file/commit-stops", test_stopped_commit);
    g_test_add_func("/tt/blockmap/file/head-changes-beside-a-commit",
                    test_head_beside_a_commit);
    g_test_add_func("/tt/blockmap/file/growth-that-failed", test_grow_undo);
    g_test_add_func("/tt/blockmap/file/opened-beside-a-writer", test_open_beside_a_writer);
    g_test_add_func("/tt/blockmap/bad/spec", test_bad_spec);
    g_test_add_func("/tt/blockmap/large-disks-have-larger-clusters", test_large);
    g_test_add_func("/tt/blockmap/bad/not-ours", test_not_ours);
    g_test_add_func("/tt/blockmap/sizes-of-clusters", test_sizes);
    return g_test_run();
}
