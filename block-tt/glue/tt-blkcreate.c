/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block driver `tt`: new images, for qemu-img create, convert and blockdev-create.
 */
#include "qemu/osdep.h"
#include "block-tt/glue/tt-blk-int.h"
#include "qapi/error.h"
#include "qemu/option.h"
#include "qemu/uuid.h"
#include "system/block-backend.h"

QemuOptsList tt_blk_create_opts = {
    .name = "tt-create-opts",
    .head = QTAILQ_HEAD_INITIALIZER(tt_blk_create_opts.head),
    .desc = {
        {
            .name = BLOCK_OPT_SIZE,
            .type = QEMU_OPT_SIZE,
            .help = "Virtual disk size"
        },
        {
            .name = BLOCK_OPT_BACKING_FILE,
            .type = QEMU_OPT_STRING,
            .help = "File name of a base image"
        },
        {
            .name = BLOCK_OPT_BACKING_FMT,
            .type = QEMU_OPT_STRING,
            .help = "Image format of the base image"
        },
        {
            .name = BLOCK_OPT_CLUSTER_SIZE,
            .type = QEMU_OPT_SIZE,
            .help = "Cluster size (in bytes; by default 32768, and more for a disk "
                    "of 8 TiB or more)"
        },
        { /* end of list */ }
    }
};

/* The options of the file below, which come as well, list some that have no meaning here. */
static bool check_preallocation(QemuOpts *opts, Error **errp)
{
    g_autofree char *mode = qemu_opt_get_del(opts, BLOCK_OPT_PREALLOC);

    if (mode && strcmp(mode, "off")) {
        error_setg(errp, "Unsupported preallocation mode '%s': a disk with versions takes "
                   "space when it is written, so only 'off' is possible", mode);
        return false;
    }
    return true;
}

static int coroutine_fn GRAPH_UNLOCKED
do_step(BlockBackend *blk, const TtBlockStep *step)
{
    switch (step->kind) {
    case TT_BLOCK_WRITE:
        return blk_co_pwrite(blk, step->offset, step->len, step->data, 0);
    case TT_BLOCK_GROW:
        return blk_co_truncate(blk, step->offset, true, PREALLOC_MODE_OFF,
                               BDRV_REQ_ZERO_WRITE, NULL);
    case TT_BLOCK_SYNC:
        return blk_co_flush(blk);
    }
    g_assert_not_reached();
}

/* An empty file, and the image in it. */
static int coroutine_fn GRAPH_UNLOCKED
write_image(BlockBackend *blk, const TtBlockPlan *plan, Error **errp)
{
    int ret;

    blk_set_allow_write_beyond_eof(blk, true);
    ret = blk_co_truncate(blk, 0, true, PREALLOC_MODE_OFF, 0, errp);
    if (ret < 0) {
        return ret;
    }
    for (unsigned i = 0; ret >= 0 && i < plan->n; i++) {
        ret = do_step(blk, &plan->step[i]);
    }
    if (ret < 0) {
        error_setg_errno(errp, -ret, "cannot write the image");
    }
    return ret < 0 ? ret : 0;
}

/* @cluster: bytes, 0: as is best. Fills in the rest of @spec. @bytes: of @plan. */
static int make_plan(TtBlockSpec *spec, uint64_t cluster, TtBlockPlan *plan,
                     uint8_t **bytes, Error **errp)
{
    QemuUUID uuid;
    TtDiag diag;
    TtStatus st;

    if (cluster == 1 || cluster & (cluster - 1)) {
        error_setg(errp, "cluster_size must be a power of two, such as 32k");
        return -EINVAL;
    }
    spec->cluster_bits = cluster ? ctz64(cluster) : 0;
    qemu_uuid_generate(&uuid);
    memcpy(spec->uuid, uuid.data, sizeof(spec->uuid));
    st = tt_blockmap_format(spec, plan, bytes, &diag);
    if (st != TT_OK) {
        tt_blk_error(errp, &diag);
        return tt_blk_errno(st, &diag);
    }
    return 0;
}

/* blockdev-create: into a node that is there. */
int coroutine_fn GRAPH_UNLOCKED
tt_blk_co_create(BlockdevCreateOptions *options, Error **errp)
{
    BlockdevCreateOptionsTt *o = &options->u.tt;
    TtBlockSpec spec = {
        .size_bytes = o->size,
        .backing = o->backing_file,
        .backing_format = o->backing_fmt,
    };
    g_autofree uint8_t *bytes = NULL;
    BlockDriverState *bs;
    BlockBackend *blk;
    TtBlockPlan plan;
    int ret = make_plan(&spec, o->has_cluster_size ? o->cluster_size : 0, &plan, &bytes,
                        errp);

    if (ret < 0) {
        return ret;
    }
    bs = bdrv_co_open_blockdev_ref(o->file, errp);
    if (!bs) {
        return -EIO;
    }
    blk = blk_co_new_with_bs(bs, BLK_PERM_WRITE | BLK_PERM_RESIZE, BLK_PERM_ALL, errp);
    ret = blk ? write_image(blk, &plan, errp) : -EPERM;
    blk_co_unref(blk);
    bdrv_co_unref(bs);
    return ret;
}

int coroutine_fn GRAPH_UNLOCKED
tt_blk_co_create_opts(BlockDriver *drv, const char *filename, QemuOpts *opts,
                      Error **errp)
{
    uint64_t cluster = qemu_opt_get_size_del(opts, BLOCK_OPT_CLUSTER_SIZE, 0);
    g_autofree char *backing = qemu_opt_get_del(opts, BLOCK_OPT_BACKING_FILE);
    g_autofree char *format = qemu_opt_get_del(opts, BLOCK_OPT_BACKING_FMT);
    g_autofree uint8_t *bytes = NULL;
    TtBlockSpec spec = {
        .size_bytes = ROUND_UP(qemu_opt_get_size_del(opts, BLOCK_OPT_SIZE, 0), 512),
        .backing = backing,
        .backing_format = format,
    };
    BlockBackend *blk;
    TtBlockPlan plan;
    int ret = check_preallocation(opts, errp) ?
        make_plan(&spec, cluster, &plan, &bytes, errp) : -EINVAL;

    if (ret >= 0) {
        ret = bdrv_co_create_file(filename, opts, errp);
    }
    if (ret < 0) {
        return ret;
    }
    blk = blk_co_new_open(filename, NULL, NULL, BDRV_O_RDWR | BDRV_O_RESIZE |
                          BDRV_O_PROTOCOL, errp);
    if (!blk) {
        return -EIO;
    }
    ret = write_image(blk, &plan, errp);
    blk_co_unref(blk);
    return ret;
}
