/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The disks of a running machine go back to a full checkpoint: each device gets a fresh
 * store on the version that the checkpoint has pinned, in place of the one that it has.
 *
 *   before   device -> A/disks/NAME.tt -> image
 *   after    device -> B/disks/NAME.tt -> version of A/disks/NAME.tt -> image
 */
#include "qemu/osdep.h"
#include "hw-tt/state/tt-disks.h"
#include "hw-tt/state/tt-disk-image.h"
#include "hw-tt/state/tt-disks-int.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "block/block.h"
#include "block/block_int.h"
#include "qobject/qdict.h"
#include "system/block-backend.h"

/* ---- one disk ---- */

static const TtFullDisk *find(const TtFullDesc *d, const char *device)
{
    for (unsigned i = 0; i < d->n_disks; i++) {
        if (!strcmp(d->disks[i].device, device)) {
            return &d->disks[i];
        }
    }
    return NULL;
}

static char *make_store(const TtFullDisk *d, const char *dir, Error **errp)
{
    g_autofree char *image = tt_disk_path_from(d->image, dir);
    g_autofree char *theirs = g_path_get_basename(d->image);
    g_autofree char *name = !d->version ? g_strdup(*d->node ? d->node : "disk") :
        g_strndup(theirs, strlen(theirs) -
                  (g_str_has_suffix(theirs, ".tt") ? strlen(".tt") : 0));
    g_autofree char *path = tt_disk_fresh_store(tt_session.dir, name);

    return tt_disk_make_store(path, image, d->format, d->version, d->size_bytes, errp) ?
        g_steal_pointer(&path) : NULL;
}

/* Opened as the one that it takes the place of. */
static BlockDriverState *open_store(const char *path, const char *node,
                                    BlockDriverState *old, Error **errp)
{
    QDict *options = qdict_new();
    int flags = old->open_flags & ~(BDRV_O_TEMPORARY | BDRV_O_SNAPSHOT |
                                    BDRV_O_COPY_ON_READ | BDRV_O_NO_BACKING |
                                    BDRV_O_PROTOCOL);
    BlockDriverState *bs;

    qdict_put_str(options, "driver", "tt");
    qdict_put_str(options, "node-name", node);
    bs = bdrv_open(path, NULL, options, flags | BDRV_O_RDWR, errp);
    if (bs) {
        bs->detect_zeroes = old->detect_zeroes;
    }
    return bs;
}

/* ---- all of them ---- */

typedef struct Swap {
    BlockDriverState *old, *bs;         /* references */
    char *path;                         /* of the store that was made */
} Swap;

static void clear_swap(void *opaque)
{
    Swap *w = opaque;

    bdrv_unref(w->old);
    bdrv_unref(w->bs);
    g_free(w->path);
}

static bool is_known(const GArray *swaps, const BlockDriverState *old)
{
    for (unsigned i = 0; i < swaps->len; i++) {
        if (g_array_index(swaps, Swap, i).old == old) {
            return true;                /* a second device of that disk */
        }
    }
    return false;
}

/* For the user, @node takes the place of @old. */
static void take_name(const char *node, BlockDriverState *old)
{
    GRAPH_RDLOCK_GUARD_MAINLOOP();
    tt_disk_name_for_user(node, tt_disk_user_node(old));
}

static bool add(GArray *swaps, BlockDriverState *old, const TtFullDisk *d,
                const char *dir, Error **errp)
{
    g_autofree char *path = make_store(d, dir, errp);
    g_autofree char *node = tt_disk_new_node();
    Swap w = { .old = old, .bs = path ? open_store(path, node, old, errp) : NULL };

    if (w.bs) {
        take_name(node, old);
        bdrv_ref(old);
        w.path = g_steal_pointer(&path);
        g_array_append_val(swaps, w);
    } else if (path) {
        tt_disk_remove_store(path);
    }
    return w.bs;
}

static bool prepare(GArray *swaps, GArray *disks, const TtFullDesc *d, const char *dir,
                    Error **errp)
{
    for (unsigned i = 0; i < disks->len; i++) {
        const TtDisk *k = &g_array_index(disks, TtDisk, i);
        g_autofree char *device = blk_get_attached_dev_id(k->blk);
        const TtFullDisk *was = find(d, device);

        if (was && was->is_writable && k->bs && !is_known(swaps, k->bs) &&
            (!tt_disks_make_directory(errp) || !add(swaps, k->bs, was, dir, errp))) {
            return false;
        }
    }
    return true;
}

/* The devices of that disk have @bs now. */
static bool give(GArray *disks, const Swap *w, BlockDriverState *bs, Error **errp)
{
    for (unsigned i = 0; i < disks->len; i++) {
        const TtDisk *k = &g_array_index(disks, TtDisk, i);

        if (k->bs == w->old && blk_bs(k->blk) != bs &&
            blk_replace_bs(k->blk, bs, errp) < 0) {
            return false;
        }
    }
    return true;
}

/* Each device has what it had, and nothing is left of the new stores. False: one cannot
 * have it back. */
static bool take_back(GArray *disks, GArray *swaps)
{
    g_autofree char *dir = g_build_filename(tt_session.dir, "disks", NULL);

    for (unsigned i = 0; i < swaps->len; i++) {
        const Swap *w = &g_array_index(swaps, Swap, i);

        if (!give(disks, w, w->old, NULL)) {
            return false;
        }
    }
    for (unsigned i = 0; i < swaps->len; i++) {
        tt_disk_remove_store(g_array_index(swaps, Swap, i).path);
    }
    rmdir(dir);
    return true;
}

bool tt_disks_swap(const TtFullDesc *d, const char *dir, bool *has_changed, Error **errp)
{
    g_autoptr(GArray) disks = tt_disks_collect();
    g_autoptr(GArray) swaps = g_array_new(false, false, sizeof(Swap));
    bool ok;

    g_array_set_clear_func(swaps, clear_swap);
    tt_disks_settle();
    ok = prepare(swaps, disks, d, dir, errp);
    for (unsigned i = 0; ok && i < swaps->len; i++) {
        const Swap *w = &g_array_index(swaps, Swap, i);

        ok = give(disks, w, w->bs, errp);
    }
    *has_changed = !ok && !take_back(disks, swaps);
    return ok;
}
