/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Versions that were pinned reach the disk while the VM runs again: to wait for that
 * with the VM stopped took seconds on a slow disk. Whoever stores the checkpoint that
 * names them waits for it (tt_disks_on_kept).
 *
 *   pin, in memory --> flush of each disk, in coroutines --> all ended --> told
 *                                                       --> one failed: none is kept
 */
#include "qemu/osdep.h"
#include "hw-tt/state/tt-disks-int.h"
#include "hw-tt/state/tt-disk-image.h"
#include "block-tt/glue/tt-blkversion.h"
#include "session/tt-session.h"
#include "block/aio.h"
#include "block/block_int.h"
#include "qemu/coroutine.h"
#include "qemu/main-loop.h"

typedef struct Kept {
    BlockDriverState *bs;
    TtVersionId version;
    char *device;
    int ret;                        /* of its flush */
} Kept;

static struct {
    GArray *all;                    /* Kept */
    GPtrArray *copies;              /* files that go if the versions do */
    unsigned running;               /* flushes */
    bool is_pending;
    char *problem;
    TtDisksKept *on_kept;
} kd;

void tt_disks_on_kept(TtDisksKept *on_kept)
{
    kd.on_kept = on_kept;
}

bool tt_disks_are_pending(void)
{
    return kd.is_pending;
}

const char *tt_disks_problem(void)
{
    return kd.problem;
}

/* Not where the log may name what was read from it (disk-reads=store). */
static void delete_version(BlockDriverState *bs, TtVersionId version)
{
    GRAPH_RDLOCK_GUARD_MAINLOOP();
    if (!(tt_session.manifest.features & TT_FEATURE_DISKS)) {
        tt_blk_version_delete(bs, version);
    }
}

uint64_t tt_disks_kept_bytes(void)
{
    g_autoptr(GArray) disks = tt_disks_collect();
    uint64_t sum = 0;

    GRAPH_RDLOCK_GUARD_MAINLOOP();
    for (unsigned i = 0; i < disks->len; i++) {
        if (tt_disk_has_own_store(disks, i)) {
            sum += tt_blk_version_kept_bytes(g_array_index(disks, TtDisk, i).bs);
        }
    }
    return sum;
}

/* Of a disk with snapshot=on. */
static bool is_copy(const char *image)
{
    return g_str_has_prefix(image, "disks/") && !strchr(image + strlen("disks/"), '/') &&
        g_str_has_suffix(image, ".qcow2");
}

void tt_disks_forget(const char *image, uint32_t version)
{
    g_autoptr(GArray) disks = tt_disks_collect();
    g_autofree char *path = tt_disk_path_from(image, tt_session.dir);
    BlockDriverState *store = NULL;

    if (!version) {
        if (is_copy(image)) {
            unlink(path);
        }
        return;
    }

    for (unsigned i = 0; i < disks->len && !store; i++) {
        BlockDriverState *bs = g_array_index(disks, TtDisk, i).bs;
        g_autofree char *its = bs && tt_disk_is_store(bs) ? tt_disk_store_path(bs) : NULL;

        store = !g_strcmp0(its, path) ? bs : NULL;
    }
    if (store) {
        delete_version(store, version);
    }
}

void tt_disks_unpin(const TtFullDesc *d)
{
    for (unsigned i = 0; i < d->n_disks; i++) {
        if (d->disks[i].is_writable) {
            tt_disks_forget(d->disks[i].image, d->disks[i].version);
        }
    }
}

static void clear(void)
{
    for (unsigned i = 0; i < kd.all->len; i++) {
        Kept *k = &g_array_index(kd.all, Kept, i);

        bdrv_unref(k->bs);
        g_free(k->device);
    }
    g_array_set_size(kd.all, 0);
    g_ptr_array_set_size(kd.copies, 0);
}

static void delete_all(void)
{
    for (unsigned i = 0; i < kd.all->len; i++) {
        const Kept *k = &g_array_index(kd.all, Kept, i);

        delete_version(k->bs, k->version);
    }
    for (unsigned i = 0; i < kd.copies->len; i++) {
        unlink(kd.copies->pdata[i]);
    }
}

/* Main loop: all have ended. */
static void ended(void *opaque)
{
    for (unsigned i = 0; i < kd.all->len; i++) {
        const Kept *k = &g_array_index(kd.all, Kept, i);

        if (k->ret < 0 && !kd.problem) {
            kd.problem = g_strdup_printf("cannot make a version of disk '%s': %s",
                                         k->device, strerror(-k->ret));
        }
    }
    if (kd.problem) {
        delete_all();
    }
    clear();
    kd.is_pending = false;
    if (kd.on_kept) {
        kd.on_kept(kd.problem);
    }
}

static void coroutine_fn flush_one(void *opaque)
{
    Kept *k = &g_array_index(kd.all, Kept, GPOINTER_TO_UINT(opaque));

    WITH_GRAPH_RDLOCK_GUARD() {
        k->ret = bdrv_co_flush(k->bs);
    }
    if (--kd.running == 0) {
        aio_bh_schedule_oneshot(qemu_get_aio_context(), ended, NULL);
    }
}

static void make_lists(void)
{
    assert(!kd.is_pending);
    kd.all = kd.all ?: g_array_new(false, false, sizeof(Kept));
    kd.copies = kd.copies ?: g_ptr_array_new_with_free_func(g_free);
}

void tt_disk_keep(BlockDriverState *bs, TtVersionId version, const char *device)
{
    Kept k = { .bs = bs, .version = version, .device = g_strdup(device) };

    make_lists();
    bdrv_ref(bs);
    g_array_append_val(kd.all, k);
}

void tt_disk_keep_copy(const char *path)
{
    make_lists();
    g_ptr_array_add(kd.copies, g_strdup(path));
}

void tt_disk_keep_none(void)
{
    make_lists();
    delete_all();
    clear();
}

void tt_disk_keep_begin(void)
{
    unsigned n;

    make_lists();
    n = kd.all->len;
    if (!n) {
        clear();                    /* copies are there already */
    }
    g_free(g_steal_pointer(&kd.problem));
    kd.running = n;
    kd.is_pending = n;
    for (unsigned i = 0; i < n; i++) {
        aio_co_enter(qemu_get_aio_context(),
                     qemu_coroutine_create(flush_one, GUINT_TO_POINTER(i)));
    }
}

void tt_disks_settle(void)
{
    while (kd.is_pending) {
        aio_poll(qemu_get_aio_context(), true);
    }
}
