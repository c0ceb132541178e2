/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Disks at a full checkpoint. Each one that the guest can write is a disk with versions
 * in RUN/disks, over the image that the user gave (tt-disk-stores.c); the checkpoint
 * pins a version of it. All of them, or none.
 *
 * A disk with snapshot=on writes into a file that has no name and goes with the
 * process; it stays there, and what it holds is copied to RUN/disks.
 */
#include "qemu/osdep.h"
#include "hw-tt/state/tt-disks.h"
#include "hw-tt/state/tt-disk-image.h"
#include "hw-tt/state/tt-disks-int.h"
#include "run/tt-fullstate.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "qapi/error.h"
#include "block/block.h"
#include "block/block_int.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/option.h"
#include "qemu/config-file.h"
#include "qobject/qdict.h"
#include "system/block-backend.h"
#include "system/blockdev.h"

#define COPY_BYTES  (1u << 20)

/* A file of that name which is not there yet. */
static char *fresh_file(const char *name)
{
    g_autofree char *clean = tt_disk_file_name(name);

    for (unsigned n = 1;; n++) {
        g_autofree char *file = g_strdup_printf("%s-%u.qcow2", clean, n);
        g_autofree char *path = g_build_filename(tt_session.dir, "disks", file, NULL);

        if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
            return g_steal_pointer(&path);
        }
    }
}

/* ---- what there is ---- */

char *tt_disk_image_name(BlockDriverState *bs)
{
    bdrv_refresh_filename(bs);
    if (!bs->exact_filename[0]) {
        return g_strdup(bs->filename);
    }
    return path_has_protocol(bs->exact_filename) ?
        g_strdup(bs->exact_filename) :
        g_canonicalize_filename(bs->exact_filename, NULL);
}

/* What is below the temporary file of snapshot=on. */
static BlockDriverState * GRAPH_RDLOCK below_temporary(BlockDriverState *bs)
{
    return bs->open_flags & BDRV_O_TEMPORARY ?
        bdrv_skip_filters(bdrv_cow_bs(bs)) : bs;
}

/* An old version of a disk whose file may grow. */
static bool is_version(BlockDriverState *bs)
{
    return !strcmp(bs->drv->format_name, "tt") && qdict_haskey(bs->options, "version");
}

static void GRAPH_RDLOCK add_files(TtFullDisk *d, GArray *files,
                                   BlockDriverState *bs)
{
    BdrvChild *c;

    if (QLIST_EMPTY(&bs->children)) {
        struct stat st;

        bdrv_refresh_filename(bs);
        if (bs->exact_filename[0] && !stat(bs->exact_filename, &st) &&
            S_ISREG(st.st_mode) && files->len < TT_FULL_FILES_MAX) {
            TtFullFile f = {
                .path = tt_disk_path_for(bs->exact_filename, tt_session.dir),
                .size_bytes = st.st_size,
                .mtime_ns = st.st_mtim.tv_sec * 1000000000ull +
                    st.st_mtim.tv_nsec,
            };

            g_array_append_val(files, f);
        }
    }
    QLIST_FOREACH(c, &bs->children, next) {
        if (c != bs->file || !is_version(bs)) {
            add_files(d, files, c->bs);
        }
    }
}

void GRAPH_RDLOCK tt_disk_describe_files(TtFullDisk *d, BlockDriverState *bs)
{
    GArray *files = g_array_new(false, false, sizeof(TtFullFile));

    if (bs) {
        add_files(d, files, bs);
    }
    d->n_files = files->len;
    d->files = (TtFullFile *)g_array_free(files, false);
}

static void GRAPH_RDLOCK describe_image(TtFullDisk *d, BlockDriverState *bs)
{
    g_autofree char *name = tt_disk_image_name(bs);

    d->image = tt_disk_path_for(name, tt_session.dir);
    d->format = g_strdup(bs->drv->format_name);
    tt_disk_describe_files(d, bs);
}

typedef struct Search {
    QemuOpts *wanted;
    int64_t n, found;
} Search;

static int count_drive(void *opaque, QemuOpts *opts, Error **errp)
{
    Search *s = opaque;

    if (opts == s->wanted) {
        s->found = s->n;
    }
    s->n++;
    return 0;
}

static int64_t drive_number(BlockBackend *blk)
{
    DriveInfo *dinfo = blk_legacy_dinfo(blk);
    Search s = { .wanted = dinfo ? dinfo->opts : NULL, .found = -1 };

    qemu_opts_foreach(qemu_find_opts("drive"), count_drive, &s, NULL);
    return s.found;
}

const char *tt_disk_user_node(BlockDriverState *bs)
{
    while (bs && tt_disk_is_inserted(bs)) {
        const char *name = tt_disk_users_name(bs);

        if (name) {
            return name;
        }
        bs = bdrv_cow_bs(bs);
    }
    return bs ? bdrv_get_node_name(bs) : "";
}

static bool GRAPH_RDLOCK describe(TtDisk *k, Error **errp)
{
    TtFullDisk *d = k->desc;
    int64_t len;

    d->device = blk_get_attached_dev_id(k->blk);
    d->drive = drive_number(k->blk);
    d->is_writable = k->is_writable;
    if (!k->bs) {
        d->node = g_strdup("");
        d->image = g_strdup("");
        d->format = g_strdup("");
        return true;
    }
    d->node = g_strdup(tt_disk_user_node(k->bs));
    len = bdrv_getlength(k->bs);
    if (len < 0) {
        error_setg_errno(errp, -len, "cannot determine the size of disk '%s'",
                         d->device);
        return false;
    }
    d->size_bytes = len;
    return true;
}

GArray *tt_disks_collect(void)
{
    GArray *disks = g_array_new(false, true, sizeof(TtDisk));
    BlockBackend *blk;

    for (blk = blk_all_next(NULL); blk; blk = blk_all_next(blk)) {
        TtDisk k = { .blk = blk, .bs = blk_bs(blk) };

        if (!blk_get_attached_dev(blk) || disks->len == TT_FULL_DISKS_MAX) {
            continue;
        }
        k.is_writable = k.bs && blk_is_writable(blk);
        k.is_temporary = k.bs && (k.bs->open_flags & BDRV_O_TEMPORARY);
        g_array_append_val(disks, k);
    }
    return disks;
}

bool tt_disks_can_be_kept(Error **errp)
{
    g_autoptr(GArray) disks = tt_disks_collect();

    GRAPH_RDLOCK_GUARD_MAINLOOP();
    for (unsigned i = 0; i < disks->len; i++) {
        const TtDisk *k = &g_array_index(disks, TtDisk, i);

        if (k->is_writable && k->bs->drv->is_filter) {
            g_autofree char *device = blk_get_attached_dev_id(k->blk);

            error_setg(errp, "disk '%s' is behind a block filter ('%s'), which "
                       "cannot have an overlay: leave out the filter", device,
                       k->bs->drv->format_name);
            return false;
        }
    }
    return true;
}

static GArray *collect(TtFullDesc *desc)
{
    GArray *disks = tt_disks_collect();

    desc->n_disks = disks->len;
    desc->disks = g_new0(TtFullDisk, disks->len + 1);
    for (unsigned i = 0; i < disks->len; i++) {
        g_array_index(disks, TtDisk, i).desc = &desc->disks[i];
        desc->disks[i].drive = -1;
    }
    return disks;
}

/* ---- copying what is temporary ---- */

static bool copy_range(BlockBackend *from, BlockBackend *to, int64_t at,
                       int64_t len, void *buf, Error **errp)
{
    while (len) {
        int64_t n = MIN(len, COPY_BYTES);
        int ret = blk_pread(from, at, n, buf, 0);

        if (ret >= 0) {
            ret = buffer_is_zero(buf, n) ? blk_pwrite_zeroes(to, at, n, 0) :
                blk_pwrite(to, at, n, buf, 0);
        }
        if (ret < 0) {
            error_setg_errno(errp, -ret, "a disk with snapshot=on cannot be "
                             "copied");
            return false;
        }
        at += n;
        len -= n;
    }
    return true;
}

static bool GRAPH_RDLOCK copy_layer(TtDisk *k, BlockBackend *to, Error **errp)
{
    int64_t at = 0, end = k->desc->size_bytes, n;
    g_autofree void *buf = g_malloc(COPY_BYTES);

    while (at < end) {
        int ret = bdrv_is_allocated(k->bs, at, end - at, &n);

        if (ret < 0 || !n) {
            error_setg_errno(errp, -ret, "a disk with snapshot=on cannot be "
                             "copied");
            return false;
        }
        if (ret && !copy_range(k->blk, to, at, n, buf, errp)) {
            return false;
        }
        at += n;
    }
    return true;
}

/* What the guest wrote since the start, in a file of ours. */
static bool GRAPH_RDLOCK copy_temporary(TtDisk *k, const char *path,
                                        Error **errp)
{
    BlockDriverState *base = below_temporary(k->bs);
    g_autofree char *backing = tt_disk_image_name(base);
    QDict *options = qdict_new();
    BlockBackend *to;
    bool ok;

    if (!tt_disk_make_overlay(path, backing, base->drv->format_name,
                              k->desc->size_bytes, errp)) {
        return false;
    }
    qdict_put_str(options, "driver", "qcow2");
    to = blk_new_open(path, NULL, options, BDRV_O_RDWR | BDRV_O_NO_BACKING,
                      errp);
    ok = to && copy_layer(k, to, errp);
    if (ok && blk_flush(to) < 0) {
        error_setg(errp, "cannot write '%s'", path);
        ok = false;
    }
    blk_unref(to);
    if (!ok) {
        unlink(path);
    }
    return ok;
}

static bool GRAPH_RDLOCK keep_temporary(TtDisk *k, Error **errp)
{
    g_autofree char *path = fresh_file(k->desc->device);

    if (!copy_temporary(k, path, errp)) {
        return false;
    }
    tt_disk_keep_copy(path);
    k->desc->image = tt_disk_path_for(path, tt_session.dir);
    k->desc->format = g_strdup("qcow2");
    tt_disk_describe_files(k->desc, below_temporary(k->bs));
    return true;
}

/* ---- all of them ---- */

/* What can be refused comes before what takes long. */
static bool prepare(GArray *disks, Error **errp)
{
    GRAPH_RDLOCK_GUARD_MAINLOOP();

    for (unsigned i = 0; i < disks->len; i++) {
        if (!describe(&g_array_index(disks, TtDisk, i), errp)) {
            return false;
        }
    }
    for (unsigned i = 0; i < disks->len; i++) {
        TtDisk *k = &g_array_index(disks, TtDisk, i);

        if (k->is_writable && k->is_temporary && !keep_temporary(k, errp)) {
            return false;
        }
    }
    return true;
}

static void describe_pinned(TtDisk *k, GString *said)
{
    g_autofree char *path = tt_disk_store_path(blk_bs(k->blk));

    k->desc->image = tt_disk_path_for(path, tt_session.dir);
    k->desc->format = g_strdup("tt");
    k->desc->version = k->version;
    g_string_append_printf(said, "disk '%s' is kept as version %" PRIu32 " of '%s'\n",
                           k->desc->device, k->version, tt_printable(path));
}

/* Versions are pinned: what the checkpoint names changes no more. */
static void describe_images(GArray *disks, GString *said)
{
    GRAPH_RDLOCK_GUARD_MAINLOOP();

    for (unsigned i = 0; i < disks->len; i++) {
        TtDisk *k = &g_array_index(disks, TtDisk, i);
        BlockDriverState *bs = blk_bs(k->blk);

        if (k->version) {
            describe_pinned(k, said);
            tt_disk_describe_files(k->desc, bdrv_cow_bs(bs));
        } else if (bs && !k->desc->image) {
            describe_image(k->desc, below_temporary(bs));
        }
    }
}

bool tt_disks_make_directory(Error **errp)
{
    g_autofree char *dir = g_build_filename(tt_session.dir, "disks", NULL);

    if (mkdir(dir, 0700) == 0) {
        tt_io_posix_sync_directory_of(dir);
    } else if (errno != EEXIST) {
        error_setg_errno(errp, errno, "cannot create '%s'", dir);
        return false;
    }
    return true;
}

int tt_disks_enter_start(void)
{
    int here = tt_start_directory() ? open(".", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    if (here >= 0 && chdir(tt_start_directory())) {
        close(here);
        here = -1;
    }
    return here;
}

void tt_disks_come_back(int here)
{
    if (here >= 0) {
        if (fchdir(here)) {
            warn_report("tt: cannot return to the working directory: %s",
                        g_strerror(errno));
        }
        close(here);
    }
}

/* Stores first, which changes what the disks are; then what they are. */
bool tt_disks_freeze(TtFullDesc *d, TtFullMayMake *may_make, const char *name,
                     GString *said, Error **errp)
{
    g_autoptr(GArray) disks = NULL;
    Error *err = NULL;
    int here;

    if (!tt_disks_make_stores(NULL, may_make, said, errp)) {
        return false;
    }
    here = tt_disks_enter_start();
    disks = collect(d);
    tt_disks_settle();
    if (disks->len && may_make(&err) && tt_disks_make_directory(&err) &&
        prepare(disks, &err)) {
        tt_disks_pin(disks, name, &err);
    } else if (!disks->len) {
        tt_disk_keep_begin();       /* nothing, without a problem */
    }
    if (err) {
        tt_disk_keep_none();
        error_propagate(errp, err);
    } else {
        describe_images(disks, said);
    }
    tt_disks_come_back(here);
    return !err;
}

bool tt_disks_make_stores(DeviceState *dev, TtFullMayMake *may_make, GString *said,
                          Error **errp)
{
    int here = tt_disks_enter_start();
    bool ok = tt_disks_insert_stores(dev, may_make, said, errp);

    tt_disks_come_back(here);
    return ok;
}

bool tt_disks_can_write(const char *node, Error **errp)
{
    int here = tt_disks_enter_start();
    bool ok = tt_disk_reopen(node, errp);

    tt_disks_come_back(here);
    return ok;
}

char *tt_disk_image_of(const char *device)
{
    BlockBackend *blk;

    GRAPH_RDLOCK_GUARD_MAINLOOP();
    for (blk = blk_all_next(NULL); blk; blk = blk_all_next(blk)) {
        g_autofree char *id = blk_get_attached_dev(blk) ?
            blk_get_attached_dev_id(blk) : NULL;

        if (id && !strcmp(id, device)) {
            BlockDriverState *bs = blk_bs(blk);

            return !bs ? g_strdup("") : tt_disk_is_store(bs) ? tt_disk_store_path(bs) :
                tt_disk_image_name(below_temporary(bs));
        }
    }
    return NULL;
}
