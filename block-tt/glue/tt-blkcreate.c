/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block driver `tt`: new images, for qemu-img create and convert.
 */
#include "qemu/osdep.h"
#include "block-tt/glue/tt-blkdrv-int.h"
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
            .help = "Cluster size (in bytes)",
            .def_value_str = "32768"
        },
        { /* end of list */ }
    }
};

/* An empty file, and the head of the image in it. */
static int coroutine_fn GRAPH_UNLOCKED
write_head(const char *filename, const uint8_t *bytes, size_t len, Error **errp)
{
    BlockBackend *blk = blk_co_new_open(filename, NULL, NULL, BDRV_O_RDWR |
                                        BDRV_O_RESIZE | BDRV_O_PROTOCOL, errp);
    int ret;

    if (!blk) {
        return -EIO;
    }
    blk_set_allow_write_beyond_eof(blk, true);
    ret = blk_co_truncate(blk, 0, true, PREALLOC_MODE_OFF, 0, errp);
    if (ret >= 0) {
        ret = blk_co_pwrite(blk, 0, len, bytes, 0);
        if (ret >= 0) {
            ret = blk_co_flush(blk);
        }
        if (ret < 0) {
            error_setg_errno(errp, -ret, "cannot write to '%s'", filename);
        }
    }
    blk_co_unref(blk);
    return ret < 0 ? ret : 0;
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
        .cluster_bits = cluster ? ctz64(cluster) : 0,
        .backing = backing,
        .backing_format = format,
    };
    QemuUUID uuid;
    TtDiag diag;
    TtStatus st;
    size_t len;
    int ret;

    if (cluster & (cluster - 1)) {
        error_setg(errp, "cluster_size is not a power of two");
        return -EINVAL;
    }
    qemu_uuid_generate(&uuid);
    memcpy(spec.uuid, uuid.data, sizeof(spec.uuid));
    st = tt_blockmap_format(&spec, &bytes, &len, &diag);
    if (st != TT_OK) {
        tt_blk_error(errp, &diag);
        return tt_blk_errno(st, &diag);
    }
    ret = bdrv_co_create_file(filename, opts, errp);
    return ret < 0 ? ret : write_head(filename, bytes, len, errp);
}
