/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stores: the disks with versions of a run, RUN/disks/NAME.tt. Each goes between a device
 * and the image that the user gave, which is only read from then on:
 *
 *   before   device -> image            after   device -> NAME.tt -> image
 *
 * A full checkpoint makes a version of each; what the guest writes later goes elsewhere
 * in the store. In a branch the store stands on a version of the parent's.
 */
#include "qemu/osdep.h"
#include "hw-tt/state/tt-disks-int.h"
#include "accel-tt/tt-position.h"
#include "block-tt/glue/tt-blkversion.h"
#include "hw-tt/state/tt-disk-image.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "block/block_int.h"
#include "block/snapshot.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/rcu.h"
#include "qapi/qapi-commands-transaction.h"
#include "qapi/util.h"
#include "qobject/qdict.h"
#include "qemu/timer.h"
#include "system/block-backend.h"

#define OUR_NODES   "tt-disk-"      /* node names of those inserted here */

char *tt_disk_store_path(BlockDriverState *bs)
{
    return g_canonicalize_filename(bs->file->bs->filename, NULL);
}

/* That of a branch has the name that the user gave to the disk. */
static bool is_in_run(BlockDriverState *bs)
{
    g_autofree char *path = bs->file ? tt_disk_store_path(bs) : NULL;
    g_autofree char *dir = path ? g_path_get_dirname(path) : NULL;
    g_autofree char *disks = !tt_session.dir ? NULL :
        g_build_filename(tt_session.dir, "disks", NULL);

    return dir && !g_strcmp0(dir, disks);
}

bool tt_disk_is_inserted(BlockDriverState *bs)
{
    return g_str_has_prefix(bdrv_get_node_name(bs), OUR_NODES);
}

/* ---- names ---- */

static GHashTable *users_names;         /* of nodes of ours */

const char *tt_disk_users_name(BlockDriverState *bs)
{
    return users_names ? g_hash_table_lookup(users_names, bdrv_get_node_name(bs)) : NULL;
}

void tt_disk_name_for_user(const char *node, const char *name)
{
    if (!users_names) {
        users_names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    }
    g_hash_table_insert(users_names, g_strdup(node), g_strdup(name));
}

/* ---- which are stores ---- */

bool tt_disk_is_store(BlockDriverState *bs)
{
    return !strcmp(bs->drv->format_name, "tt") &&
        (tt_disk_is_inserted(bs) || is_in_run(bs));
}

/* ---- between device and image ---- */

/* Of this run: that of an earlier one in this process is an image like others. */
static bool has_store(const TtDisk *k)
{
    return tt_disk_is_store(k->bs) && is_in_run(k->bs);
}

bool tt_disk_is_first(GArray *disks, unsigned i)
{
    for (unsigned k = 0; k < i; k++) {
        if (g_array_index(disks, TtDisk, k).bs == g_array_index(disks, TtDisk, i).bs) {
            return false;
        }
    }
    return true;
}

bool tt_disk_has_own_store(GArray *disks, unsigned i)
{
    const TtDisk *k = &g_array_index(disks, TtDisk, i);

    return k->bs && has_store(k) && tt_disk_is_first(disks, i);
}

static bool can_have_store(GArray *disks, unsigned i)
{
    const TtDisk *k = &g_array_index(disks, TtDisk, i);

    return k->is_writable && !k->is_temporary && !k->bs->drv->is_filter &&
        tt_disk_is_first(disks, i) && !has_store(k);
}

char *tt_disk_new_node(void)
{
    static unsigned count;

    return g_strdup_printf(OUR_NODES "%u", ++count);
}

#define WAS_WRITABLE    "x-tt-was-writable"     /* option of a node below a store */

/* QEMU has made the node read-only, and it stays so when its device and with it the store
 * are plugged out. The mark goes with the node: another one may get its name. */
static void mark_writable(BlockDriverState *bs)
{
    if (bdrv_is_read_only(bs)) {
        qdict_put_bool(bs->options, WAS_WRITABLE, true);
    }
}

static bool has_parent(BlockDriverState *bs)
{
    GRAPH_RDLOCK_GUARD_MAINLOOP();
    return !QLIST_EMPTY(&bs->parents);
}

bool tt_disk_reopen(const char *node, Error **errp)
{
    BlockDriverState *bs = bdrv_find_node(node);

    if (!bs || !qdict_haskey(bs->options, WAS_WRITABLE)) {
        return true;
    }
    tt_disks_settle();              /* the flush of a version uses the store, too, */
    if (has_parent(bs)) {
        drain_call_rcu();           /* and a device that is not freed yet */
    }
    if (has_parent(bs)) {
        return true;                /* it is below its store */
    }
    if (bdrv_reopen_set_read_only(bs, false, errp) < 0) {
        error_prepend(errp, "the guest could not write to the disk '%s', since its image "
                      "cannot be opened for that: ", node);
        return false;
    }
    qdict_del(bs->options, WAS_WRITABLE);
    return true;
}

static TransactionAction *insert_action(const TtDisk *k, const char *path)
{
    TransactionAction *a = g_new0(TransactionAction, 1);
    BlockdevSnapshotSync *s = g_new0(BlockdevSnapshotSync, 1);

    s->node_name = g_strdup(bdrv_get_node_name(k->bs));
    s->snapshot_file = g_strdup(path);
    s->snapshot_node_name = tt_disk_new_node();
    s->format = g_strdup("tt");
    s->has_mode = true;
    s->mode = NEW_IMAGE_MODE_EXISTING;
    a->type = TRANSACTION_ACTION_KIND_BLOCKDEV_SNAPSHOT_SYNC;
    a->u.blockdev_snapshot_sync.data = s;
    return a;
}

/* Its path; NULL: *errp. */
static char * GRAPH_RDLOCK make_store(const TtDisk *k, Error **errp)
{
    const char *name = *blk_name(k->blk) ? blk_name(k->blk) : bdrv_get_node_name(k->bs);
    g_autofree char *path = tt_disk_fresh_store(tt_session.dir, name);
    g_autofree char *backing = tt_disk_image_name(k->bs);
    int64_t len = bdrv_getlength(k->bs);

    if (len < 0) {
        error_setg_errno(errp, -len, "cannot determine the size of disk '%s'", name);
        return NULL;
    }
    return tt_disk_make_store(path, backing, k->bs->drv->format_name, 0, len, errp) ?
        g_steal_pointer(&path) : NULL;
}

typedef struct Insertion {
    GArray *disks;
    GPtrArray *paths;
    TransactionActionList *actions;
    GString *said;                  /* NULL: not wanted */
} Insertion;

/* Says which disks stay as they were before there were stores. */
static void say_filtered(const TtDisk *k, GString *said)
{
    GRAPH_RDLOCK_GUARD_MAINLOOP();
    if (said && k->is_writable && !k->is_temporary && k->bs->drv->is_filter) {
        g_string_append_printf(said, "disk '%s' is behind a block filter ('%s'): the "
                               "guest writes to your image, and there can be no full "
                               "checkpoint\n", bdrv_get_device_or_node_name(k->bs),
                               k->bs->drv->format_name);
    }
}

static bool make_stores(Insertion *in, Error **errp)
{
    TransactionActionList **tail = &in->actions;

    GRAPH_RDLOCK_GUARD_MAINLOOP();
    for (unsigned i = 0; i < in->disks->len; i++) {
        const TtDisk *k = &g_array_index(in->disks, TtDisk, i);
        g_autofree char *image = NULL;
        char *path;

        if (!can_have_store(in->disks, i)) {
            continue;
        }
        path = make_store(k, errp);
        if (!path) {
            return false;
        }
        g_ptr_array_add(in->paths, path);
        QAPI_LIST_APPEND(tail, insert_action(k, path));
        image = tt_disk_image_name(k->bs);
        if (in->said) {
            g_string_append_printf(in->said, "the image '%s' stays as it is; the guest "
                                   "writes to '%s' from now on\n",
                                   tt_printable(image), tt_printable(path));
        }
    }
    return true;
}

static bool is_any(GArray *disks)
{
    for (unsigned i = 0; i < disks->len; i++) {
        if (can_have_store(disks, i)) {
            return true;
        }
    }
    return false;
}

/* What the image @bs looks like, now that it is below the store @path. */
static void note_base(const char *path, BlockDriverState *bs)
{
    TtFullDisk d = { 0 };

    WITH_GRAPH_RDLOCK_GUARD() {
        tt_disk_describe_files(&d, bs);
    }
    tt_disk_note_files(path, &d);
    for (unsigned i = 0; i < d.n_files; i++) {
        g_free(d.files[i].path);
    }
    g_free(d.files);
}

static bool insert(Insertion *in, TtFullMayMake *may_make, Error **errp)
{
    Error *err = NULL;
    unsigned n = 0;

    if (may_make(&err) && tt_disks_make_directory(&err) && make_stores(in, &err)) {
        qmp_transaction(in->actions, NULL, &err);
    }
    if (err) {
        for (unsigned i = 0; i < in->paths->len; i++) {
            tt_disk_remove_store(in->paths->pdata[i]);
        }
        error_propagate(errp, err);
        return false;
    }
    for (unsigned i = 0; i < in->disks->len; i++) {
        if (can_have_store(in->disks, i)) {
            BlockDriverState *bs = g_array_index(in->disks, TtDisk, i).bs;

            mark_writable(bs);
            note_base(in->paths->pdata[n++], bs);
        }
    }
    return true;
}

/* NULL: of any device. */
static GArray *disks_of(DeviceState *dev)
{
    GArray *disks = tt_disks_collect();

    for (unsigned i = disks->len; dev && i--; ) {
        if (blk_get_attached_dev(g_array_index(disks, TtDisk, i).blk) != dev) {
            g_array_remove_index(disks, i);
        }
    }
    return disks;
}

bool tt_disks_insert_stores(DeviceState *dev, TtFullMayMake *may_make, GString *said,
                            Error **errp)
{
    g_autoptr(GArray) disks = disks_of(dev);
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    Insertion in = { .disks = disks, .paths = paths, .said = said };
    size_t len = said ? said->len : 0;
    bool ok;

    for (unsigned i = 0; i < disks->len; i++) {
        say_filtered(&g_array_index(disks, TtDisk, i), said);
    }
    ok = !is_any(disks) || insert(&in, may_make, errp);
    if (!ok && said) {
        g_string_truncate(said, len);
    }
    qapi_free_TransactionActionList(in.actions);
    return ok;
}

void tt_disks_discard_stores(void)
{
    g_autoptr(GArray) disks = tt_disks_collect();
    g_autofree char *dir = g_build_filename(tt_session.dir, "disks", NULL);

    for (unsigned i = 0; i < disks->len; i++) {
        TtDisk *k = &g_array_index(disks, TtDisk, i);

        if (k->bs && has_store(k)) {
            g_autofree char *path = tt_disk_store_path(k->bs);

            tt_disk_remove_store(path);
        }
    }
    rmdir(dir);
}

char *tt_disks_lost(void)
{
    g_autoptr(GArray) disks = tt_disks_collect();

    for (unsigned i = 0; i < disks->len; i++) {
        if (tt_disk_has_own_store(disks, i)) {
            g_autofree char *path = tt_disk_store_path(g_array_index(disks, TtDisk, i).bs);
            g_autofree char *name = g_path_get_basename(path);

            if (access(path, F_OK) && errno == ENOENT) {
                return g_build_filename("disks", name, NULL);
            }
        }
    }
    return NULL;
}

/* ---- versions ---- */

static bool pin(TtDisk *k, const char *name, Error **errp)
{
    QEMUSnapshotInfo sn = {
        .date_sec = g_get_real_time() / G_USEC_PER_SEC,
        .date_nsec = g_get_real_time() % G_USEC_PER_SEC * 1000,
        .vm_clock_nsec = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL),
        .icount = tt_now.pos,
    };
    g_autofree char *device = blk_get_attached_dev_id(k->blk);
    int64_t id;

    pstrcpy(sn.name, sizeof(sn.name), name ?: "");
    bdrv_drained_begin(k->bs);
    WITH_GRAPH_RDLOCK_GUARD() {
        id = tt_blk_version_new(k->bs, &sn);
    }
    bdrv_drained_end(k->bs);
    if (id < 0) {
        error_setg_errno(errp, -id, "cannot make a version of disk '%s'", device);
        return false;
    }
    k->version = id;
    tt_disk_keep(k->bs, id, device);
    return true;
}

bool tt_disks_pin(GArray *disks, const char *name, Error **errp)
{
    for (unsigned i = 0; i < disks->len; i++) {
        TtDisk *k = &g_array_index(disks, TtDisk, i);

        if (!k->bs || !k->is_writable || !has_store(k)) {
            continue;
        }
        for (unsigned j = 0; j < i; j++) {          /* two devices, one disk */
            if (g_array_index(disks, TtDisk, j).bs == k->bs) {
                k->version = g_array_index(disks, TtDisk, j).version;
            }
        }
        if (!k->version && !pin(k, name, errp)) {
            return false;
        }
    }
    tt_disk_keep_begin();
    return true;
}
