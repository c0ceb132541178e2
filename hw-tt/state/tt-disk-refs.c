/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a guest reads from its disks is named in the log, not contained in it.
 *
 * Recording: the block driver tells what was read and is kept in a version (tt-blkwatch.h).
 * Of each page of it a hash is remembered, for a while. When a device has written a page of
 * guest RAM, and it has such a hash, the log says where the disk has these bytes. So it
 * does not matter how they got there, or whether the guest wrote beside them meanwhile:
 * either the page is what the disk has, or it is logged.
 */
#include "qemu/osdep.h"
#include "hw-tt/state/tt-disk-refs.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/state/tt-disk-image.h"
#include "hw-tt/state/tt-disks-int.h"
#include "block-tt/glue/tt-blkwatch.h"
#include "pages/tt-page.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "block/block_int.h"
#include "qemu/cutils.h"
#include "qemu/main-loop.h"
#include "qobject/qdict.h"
#include "system/block-backend.h"

#include <xxhash.h>

/* Pages that are remembered: 256 MiB. With one slot for each hash, two pages of a request
 * met so often that 0.25 % of what was read went into the log (2026-11). */
#define SLOTS       (1u << 16)
#define SLOTS_EACH  8
#define OPEN_MAX    8               /* versions that a replay has open at a time */

typedef struct Slot {
    uint64_t hash, sector;
    uint32_t disk, version;         /* 0: the slot is empty */
} Slot;

/* Nothing keeps it from being freed, and that of a disk which is plugged in later may get
 * its address: but not its name, which is never used twice (tt_disk_new_node). */
typedef struct Store {
    const BlockDriverState *bs;
    char node[sizeof_field(BlockDriverState, node_name)];
} Store;

static struct {
    Store disk[TT_DISKS_MAX];
    unsigned n_disks;
    uint64_t seed;                  /* nobody can make two pages of one hash */
    Slot *slot;                     /* of each hash's, the newest first */
} rec;

/* ---- recording ---- */

static uint64_t hash_of(const uint8_t *page)
{
    return XXH3_64bits_withSeed(page, TT_PAGE_BYTES, rec.seed);
}

static Slot *slots_of(uint64_t hash)
{
    return &rec.slot[hash % (SLOTS / SLOTS_EACH) * SLOTS_EACH];
}

static bool find(const uint8_t *page, TtDiskRef *ref)
{
    uint64_t hash = hash_of(page);
    const Slot *s = slots_of(hash);

    for (unsigned i = 0; i < SLOTS_EACH; i++, s++) {
        if (s->version && s->hash == hash) {
            *ref = (TtDiskRef) {
                .disk = s->disk, .version = s->version, .sector = s->sector,
            };
            return true;
        }
    }
    return false;
}

static void remember(unsigned disk, TtVersionId version, const uint8_t *bytes, size_t len,
                     int64_t offset)
{
    for (; len >= TT_PAGE_BYTES; len -= TT_PAGE_BYTES) {
        uint64_t hash = hash_of(bytes);
        Slot *s = slots_of(hash);

        memmove(s + 1, s, (SLOTS_EACH - 1) * sizeof(*s));
        *s = (Slot) {
            .hash = hash, .disk = disk, .version = version, .sector = offset / 512,
        };
        bytes += TT_PAGE_BYTES;
        offset += TT_PAGE_BYTES;
    }
}

/* @bs is there. */
static bool is_of(BlockDriverState *bs, const Store *s)
{
    return s->bs == bs && !strcmp(s->node, bdrv_get_node_name(bs));
}

static void was_read(BlockDriverState *bs, TtVersionId version, int64_t offset,
                     const QEMUIOVector *qiov, size_t skip, size_t bytes)
{
    unsigned disk = 0;

    while (disk < rec.n_disks && !is_of(bs, &rec.disk[disk])) {
        disk++;
    }
    if (disk == rec.n_disks || !bql_locked() || offset % 512) {
        return;
    }
    for (int i = 0; i < qiov->niov && bytes; i++) {
        size_t n = qiov->iov[i].iov_len;

        if (skip < n) {
            size_t part = MIN(n - skip, bytes);

            remember(disk, version, (uint8_t *)qiov->iov[i].iov_base + skip, part, offset);
            offset += part;
            bytes -= part;
        }
        skip -= MIN(skip, n);
    }
}

static char *path_in_run(BlockDriverState *bs)
{
    g_autofree char *path = tt_disk_store_path(bs);
    g_autofree char *name = g_path_get_basename(path);

    return g_build_filename("disks", name, NULL);
}

bool tt_disk_refs_begin(TtManifest *m, Error **errp)
{
    g_autoptr(GArray) disks = tt_disks_collect();
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    bool ok;

    rec = (typeof(rec)) {
        .seed = (uint64_t)g_random_int() << 32 | g_random_int(),
        .slot = g_new0(Slot, SLOTS),
    };
    tt_disks_settle();
    ok = tt_disks_pin(disks, "start", errp);
    if (!ok) {
        tt_disk_keep_none();
    }
    tt_disks_settle();
    if (ok && tt_disks_problem()) {
        error_setg(errp, "%s", tt_disks_problem());
        ok = false;
    }
    for (unsigned i = 0; ok && i < disks->len && rec.n_disks < TT_DISKS_MAX; i++) {
        const TtDisk *k = &g_array_index(disks, TtDisk, i);

        if (k->version) {
            Store *s = &rec.disk[rec.n_disks++];

            s->bs = k->bs;
            pstrcpy(s->node, sizeof(s->node), bdrv_get_node_name(k->bs));
            g_ptr_array_add(names, path_in_run(k->bs));
        }
    }
    m->n_disks = names->len;
    g_ptr_array_add(names, NULL);
    m->disks = (char **)g_ptr_array_free(g_steal_pointer(&names), false);
    if (!ok || !rec.n_disks) {
        tt_disk_refs_end();
        return ok;
    }
    m->features |= TT_FEATURE_DISKS;
    tt_memory_on_disk(find);
    qatomic_set(&tt_blk_read_watch, was_read);
    return true;
}

void tt_disk_refs_end(void)
{
    qatomic_set(&tt_blk_read_watch, NULL);
    tt_memory_on_disk(NULL);
    g_free(rec.slot);
    rec = (typeof(rec)) { 0 };
}

/* ---- replay ---- */

typedef struct Opened {
    uint32_t disk, version;
    BlockBackend *blk;
} Opened;

static Opened opened[OPEN_MAX];
static unsigned next_to_close;

static BlockBackend *open_version(uint32_t disk, uint32_t version, Error **errp)
{
    g_autofree char *path = g_build_filename(tt_session.dir, tt_session.manifest.disks[disk],
                                             NULL);
    QDict *options = qdict_new();

    qdict_put_str(options, "driver", "tt");
    qdict_put_int(options, "version", version);
    qdict_put_str(options, BDRV_OPT_FORCE_SHARE, "on");
    return blk_new_open(path, NULL, options, 0, errp);
}

static BlockBackend *find_version(uint32_t disk, uint32_t version, Error **errp)
{
    BlockBackend *blk;

    for (unsigned i = 0; i < OPEN_MAX; i++) {
        if (opened[i].blk && opened[i].disk == disk && opened[i].version == version) {
            return opened[i].blk;
        }
    }
    blk = open_version(disk, version, errp);
    if (blk) {
        blk_unref(opened[next_to_close].blk);
        opened[next_to_close] = (Opened) { disk, version, blk };
        next_to_close = (next_to_close + 1) % OPEN_MAX;
    }
    return blk;
}

static bool is_missing(const char *name)
{
    g_autofree char *path = g_build_filename(tt_session.dir, name, NULL);

    return !g_file_test(path, G_FILE_TEST_EXISTS);
}

static TtStatus read_version(const TtDiskRef *ref, uint64_t bytes, uint8_t *out,
                             TtDiag *diag)
{
    const char *name = tt_session.manifest.disks[ref->disk];
    Error *err = NULL;
    BlockBackend *blk = find_version(ref->disk, ref->version, &err);
    int ret;

    if (!blk && is_missing(name)) {
        error_free(err);
        return tt_fail(diag, TT_ERR_IO, "what the guest reads here is on the disk '%s' of "
                       "the run, which is missing: put it back", name);
    }
    if (!blk) {
        tt_fail(diag, TT_ERR_IO, "what the guest reads here is on the disk '%s' (version %"
                PRIu32 "), which cannot be opened: %s", name, ref->version,
                error_get_pretty(err));
        error_free(err);
        return TT_ERR_IO;
    }
    ret = blk_pread(blk, ref->sector * 512, bytes, out, 0);
    if (ret < 0) {
        return tt_fail(diag, TT_ERR_IO, "what the guest reads here is on the disk '%s' "
                       "(version %" PRIu32 "), which cannot be read: %s", name,
                       ref->version, strerror(-ret));
    }
    if ((uint32_t)XXH3_64bits(out, bytes) != ref->sum) {
        return tt_fail(diag, TT_ERR_FORMAT, "what the guest read here from the disk '%s' "
                                            "(version %" PRIu32 ", sector %" PRIu64 ") "
                                            "is no longer there, since the image below "
                                            "it was changed: restore that "
                                            "image", name, ref->version,
                       ref->sector);
    }
    return TT_OK;
}

TtStatus tt_disk_refs_fill(const TtEvent *ev, uint8_t *out, TtDiag *diag)
{
    TtDiskRef ref;

    if (!tt_disk_ref_decode(ev, &ref) || !ref.version ||
        ref.disk >= tt_session.manifest.n_disks) {
        return tt_fail(diag, TT_ERR_FORMAT, "the log names an impossible place on a "
                                            "disk");
    }
    return read_version(&ref, tt_event_bytes(ev), out, diag);
}

void tt_disk_refs_close(void)
{
    for (unsigned i = 0; i < OPEN_MAX; i++) {
        blk_unref(opened[i].blk);
        opened[i] = (Opened) { 0 };
    }
}
