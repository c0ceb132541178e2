/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block driver `tt`, a disk with versions: opening, closing, information about it, and
 * its table of functions. With the option version=N the disk is that version,
 * read-only.
 */
#include "qemu/osdep.h"
#include "block-tt/glue/tt-blk-int.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qobject/qdict.h"
#include "qemu/cutils.h"
#include "qemu/module.h"
#include "qemu/option.h"

/* ---- the file, as the map reads it ---- */

typedef struct FileIo {
    TtIo io;
    BlockDriverState *bs;
    BdrvChild *file;
} FileIo;

/* QEMU knows how long a file was when it was opened, and reads zeros after that: another
 * process may have made it longer since. */
static void refresh_length(BlockDriverState *bs)
{
    if (bs->file) {
        refresh_length(bs->file->bs);
    }
    (void)bdrv_refresh_total_sectors(bs, bs->total_sectors);
}

static TtStatus file_size(TtIo *io, uint64_t *bytes, TtDiag *diag)
{
    FileIo *f = container_of(io, FileIo, io);
    int64_t len;

    refresh_length(f->file->bs);
    len = tt_blk_fd_size(f->bs);
    if (len < 0) {
        len = bdrv_getlength(f->file->bs);      /* rounded up to a sector */
    }
    *bytes = MAX(len, 0);
    return len < 0 ? tt_fail(diag, TT_ERR_IO, "cannot determine the size of the disk's "
                             "file") : TT_OK;
}

/* After the end of the file there are zeros. */
static TtStatus file_read_at(TtIo *io, uint64_t offset, void *buf, size_t len,
                             size_t *got, TtDiag *diag)
{
    int ret = bdrv_pread(container_of(io, FileIo, io)->file, offset, len, buf, 0);

    *got = len;
    if (ret < 0 && diag) {
        tt_fail(diag, TT_ERR_IO, "cannot read the disk's file: %s", strerror(-ret));
        diag->os_errno = -ret;
    }
    return ret < 0 ? TT_ERR_IO : TT_OK;
}

static const TtIoOps file_ops = { .size = file_size, .read_at = file_read_at };

#define TRIES_OF_VERSION 3

static TtStatus load_once(BlockDriverState *bs, TtDiag *diag)
{
    TtBlkState *s = bs->opaque;
    FileIo io = { .io.ops = &file_ops, .bs = bs, .file = bs->file };
    TtStatus st = tt_blockmap_open(&io.io, &s->map, diag);

    if (st == TT_OK && s->version) {
        st = tt_blockmap_goto(s->map, s->version, diag);
    }
    if (st != TT_OK) {
        tt_blockmap_free(s->map);
        s->map = NULL;
    }
    return st;
}

/* The process that writes the disk may be making its journal anew while it is read:
 * then an existing version is not found. */
static int load_map(BlockDriverState *bs, Error **errp)
{
    TtBlkState *s = bs->opaque;
    TtDiag diag;
    TtStatus st = load_once(bs, &diag);

    for (unsigned i = 0; st != TT_OK && s->version && i < TRIES_OF_VERSION - 1; i++) {
        st = load_once(bs, &diag);
    }
    if (st != TT_OK) {
        tt_blk_error(errp, &diag);
        return st == TT_ERR_FORMAT ? -EINVAL : tt_blk_errno(st, &diag);
    }
    return 0;
}

/* ---- open and close ---- */

static QemuOptsList runtime_opts = {
    .name = "tt",
    .head = QTAILQ_HEAD_INITIALIZER(runtime_opts.head),
    .desc = {
        {
            .name = "version",
            .type = QEMU_OPT_NUMBER,
            .help = "Version of the disk to open, read-only",
        },
        {
            .name = "damaged",
            .type = QEMU_OPT_BOOL,
            .help = "Open it, read-only, even if it is damaged",
        },
        { /* end of list */ }
    },
};

static const char *const strong_opts[] = { "version", "damaged", NULL };

static bool take_options(TtBlkState *s, QDict *options, Error **errp)
{
    QemuOpts *opts = qemu_opts_create(&runtime_opts, NULL, 0, &error_abort);
    bool ok = qemu_opts_absorb_qdict(opts, options, errp);
    uint64_t version = ok ? qemu_opt_get_number(opts, "version", 0) : 0;

    if (version > UINT32_MAX) {
        error_setg(errp, "'version' is a number from 1 to %" PRIu32 ", or 0 for the disk as "
                   "it is: qemu-img snapshot -l lists the versions", UINT32_MAX);
        ok = false;
    }
    s->may_be_damaged = ok && qemu_opt_get_bool(opts, "damaged", false);
    s->version = version;
    s->is_frozen = version != 0;
    qemu_opts_del(opts);
    return ok;
}

/* The backing file may be an old version of a disk: its format is "tt@" and the number.
 * Somebody may be writing that disk meanwhile, but no version of it. This does not hold for
 * the image below it, which nobody may write while we read it. */
static void GRAPH_RDLOCK take_backing_version(BlockDriverState *bs, QDict *options)
{
    TtBlkState *s = bs->opaque;
    char *number = strchr(bs->backing_format, '@');
    bool is_opened = options && *bs->backing_file &&
        !(bs->open_flags & BDRV_O_NO_BACKING) && !qdict_haskey(options, "backing") &&
        !qdict_haskey(options, "backing.driver");

    if (number) {
        *number++ = '\0';
    }
    if (is_opened && number) {
        qdict_put_str(options, "backing.version", number);
        qdict_put_str(options, "backing.force-share", "on");
    } else if (is_opened && s->version && !qdict_haskey(options, "backing.force-share")) {
        qdict_put_str(options, "backing.force-share", "off");
    }
}

static void GRAPH_RDLOCK take_info(BlockDriverState *bs)
{
    TtBlkState *s = bs->opaque;
    TtDiskInfo info;

    tt_blockmap_info(s->map, &info);
    s->cluster_bytes = info.cluster_bytes;
    bs->total_sectors = info.size_bytes / BDRV_SECTOR_SIZE;
    pstrcpy(bs->auto_backing_file, sizeof(bs->auto_backing_file), info.backing ?: "");
    pstrcpy(bs->backing_file, sizeof(bs->backing_file), info.backing ?: "");
    pstrcpy(bs->backing_format, sizeof(bs->backing_format), info.backing_format ?: "");
}

/* A damaged disk has an older state than it had, which must not pass for the newest one
 * unnoticed. Versions do not change: what is left of them is exact. */
static int check_damage(BlockDriverState *bs, int flags, Error **errp)
{
    TtBlkState *s = bs->opaque;
    const char *damage = tt_blockmap_damage(s->map);

    if (damage && !s->version && !s->may_be_damaged &&
        !(flags & (BDRV_O_CHECK | BDRV_O_NO_IO | BDRV_O_INACTIVE))) {
        error_setg(errp, "%s ('tt disk list' lists the versions, version=N opens one, "
                   "and damaged=on what is left of the disk, read-only)", damage);
        return -EINVAL;
    }
    return 0;
}

static int GRAPH_RDLOCK check_writable(BlockDriverState *bs, int flags, Error **errp)
{
    TtBlkState *s = bs->opaque;
    const char *damage = tt_blockmap_damage(s->map);
    int ret = check_damage(bs, flags, errp);

    if (ret < 0) {
        return ret;
    }
    if (damage && !s->version && !s->may_be_damaged && flags & BDRV_O_NO_IO) {
        warn_report("'%s': %s", bs->file->bs->filename, damage);
    }
    if (damage && !s->is_frozen && flags & BDRV_O_INACTIVE) {
        return 0;                       /* somebody may be writing it: it is read again */
    }
    return damage || s->is_frozen ?
        bdrv_apply_auto_read_only(bs, damage ?: "an old version of a disk cannot be "
                                  "written: use read-only=on", errp) : 0;
}

static int tt_blk_open(BlockDriverState *bs, QDict *options, int flags, Error **errp)
{
    TtBlkState *s = bs->opaque;
    int ret = bdrv_open_file_child(NULL, options, "file", bs, errp);

    if (ret < 0) {
        return ret;
    }
    GRAPH_RDLOCK_GUARD_MAINLOOP();
    s->fd = -1;
    if (!take_options(s, options, errp)) {
        return -EINVAL;
    }
    tt_blk_fd_open(bs);
    ret = load_map(bs, errp);
    if (ret < 0) {
        tt_blk_fd_close(bs);
        return ret;
    }
    ret = check_writable(bs, flags, errp);
    if (ret < 0) {
        tt_blk_fd_close(bs);
        tt_blockmap_free(s->map);
        s->map = NULL;
        return ret;
    }
    take_info(bs);
    take_backing_version(bs, options);
    bs->supported_truncate_flags = BDRV_REQ_ZERO_WRITE;
    qemu_mutex_init(&s->map_lock);
    QLIST_INIT(&s->requests);
    return 0;
}

/* It was flushed, unless that failed. */
static void GRAPH_UNLOCKED tt_blk_close(BlockDriverState *bs)
{
    TtBlkState *s = bs->opaque;

    assert(QLIST_EMPTY(&s->requests));
    tt_blk_fd_close(bs);
    tt_blockmap_free(s->map);
    qemu_mutex_destroy(&s->map_lock);
}

static int GRAPH_UNLOCKED tt_blk_reopen_prepare(BDRVReopenState *state,
                                                BlockReopenQueue *queue, Error **errp)
{
    TtBlkState *s = state->bs->opaque;
    const char *damage = tt_blockmap_damage(s->map);

    if ((damage || s->is_frozen) && state->flags & BDRV_O_RDWR) {
        error_setg(errp, "%s", damage ?: "an old version of a disk cannot be written");
        return -EACCES;
    }
    return 0;
}

/* What check_writable has left to this moment. */
static int check_active(BlockDriverState *bs, Error **errp)
{
    TtBlkState *s = bs->opaque;
    const char *damage = tt_blockmap_damage(s->map);
    int ret = check_damage(bs, bs->open_flags, errp);

    if (ret == 0 && damage && !bdrv_is_read_only(bs)) {
        error_setg(errp, "%s (it cannot be written)", damage);
        ret = -EACCES;
    }
    return ret;
}

/* Somebody else had the image until now, and may have made it larger, or damaged it. */
static void coroutine_fn GRAPH_RDLOCK
tt_blk_co_invalidate_cache(BlockDriverState *bs, Error **errp)
{
    TtBlkState *s = bs->opaque;
    TtBlockMap *old = s->map;
    TtDiskInfo info;

    if (load_map(bs, errp) < 0) {
        s->map = old;
        return;
    }
    if (check_active(bs, errp) < 0) {
        tt_blockmap_free(s->map);
        s->map = old;
        return;
    }
    tt_blockmap_free(old);
    tt_blockmap_info(s->map, &info);
    bs->total_sectors = info.size_bytes / BDRV_SECTOR_SIZE;
}

/* Who may write a version's disk, by force-share, may not write the image below it. */
static void tt_blk_child_perm(BlockDriverState *bs, BdrvChild *c, BdrvChildRole role,
                              BlockReopenQueue *queue, uint64_t perm, uint64_t shared,
                              uint64_t *nperm, uint64_t *nshared)
{
    TtBlkState *s = bs->opaque;

    if (s->version && role & BDRV_CHILD_COW) {
        shared &= ~(BLK_PERM_WRITE | BLK_PERM_RESIZE);
    }
    bdrv_default_perms(bs, c, role, queue, perm, shared, nperm, nshared);
}

static int tt_blk_probe(const uint8_t *buf, int buf_size, const char *filename)
{
    return buf_size >= TT_BLOCKMAP_MAGIC_BYTES &&
           memcmp(buf, TT_BLOCKMAP_MAGIC, TT_BLOCKMAP_MAGIC_BYTES) == 0 ? 100 : 0;
}

/* ---- what it says of itself ---- */

static void tt_blk_refresh_limits(BlockDriverState *bs, Error **errp)
{
    TtBlkState *s = bs->opaque;

    bs->bl.pwrite_zeroes_alignment = s->cluster_bytes;
    bs->bl.pdiscard_alignment = s->cluster_bytes;
    /* What is around the guest's pieces comes with them (tt-blkio.c). */
    bs->bl.max_iov = MIN_NON_ZERO(bs->bl.max_iov, IOV_MAX - 2);
}

static int coroutine_fn GRAPH_RDLOCK
tt_blk_co_get_info(BlockDriverState *bs, BlockDriverInfo *bdi)
{
    TtBlkState *s = bs->opaque;

    bdi->cluster_size = s->cluster_bytes;
    return 0;
}

static int coroutine_fn GRAPH_RDLOCK
tt_blk_co_check(BlockDriverState *bs, BdrvCheckResult *result, BdrvCheckMode fix)
{
    TtBlkState *s = bs->opaque;
    TtBlockCheck check;
    TtDiskInfo info;
    TtDiag diag;
    TtStatus st;

    QEMU_LOCK_GUARD(&s->map_lock);
    st = tt_blockmap_check(s->map, &check, &diag);
    if (st != TT_OK) {
        return tt_blk_errno(st, &diag);
    }
    tt_blockmap_info(s->map, &info);
    if (check.errors || tt_blockmap_damage(s->map)) {
        fprintf(stderr, "ERROR: %s\n", check.errors ? check.text :
                tt_blockmap_damage(s->map));
    }
    result->corruptions = check.errors + (tt_blockmap_damage(s->map) != NULL);
    result->bfi.total_clusters = DIV_ROUND_UP(info.size_bytes, info.cluster_bytes);
    result->bfi.allocated_clusters = check.host_clusters;
    result->bfi.fragmented_clusters = check.fragments;
    result->image_end_offset = info.file_hosts * info.cluster_bytes;
    return 0;
}

static int coroutine_fn GRAPH_RDLOCK
tt_blk_co_change_backing_file(BlockDriverState *bs, const char *backing_file,
                              const char *backing_fmt)
{
    TtBlkState *s = bs->opaque;
    TtDiag diag;

    WITH_QEMU_LOCK_GUARD(&s->map_lock) {
        TtStatus st = tt_blockmap_set_backing(s->map, backing_file, backing_fmt, &diag);

        if (st != TT_OK) {
            return tt_blk_errno(st, &diag);
        }
    }
    take_info(bs);
    take_backing_version(bs, NULL);
    return bdrv_co_flush(bs);
}

static BlockDriver bdrv_tt = {
    .format_name                = "tt",
    .instance_size              = sizeof(TtBlkState),
    .create_opts                = &tt_blk_create_opts,
    .strong_runtime_opts        = strong_opts,
    .is_format                  = true,
    .supports_backing           = true,

    .bdrv_probe                 = tt_blk_probe,
    .bdrv_open                  = tt_blk_open,
    .bdrv_close                 = tt_blk_close,
    .bdrv_reopen_prepare        = tt_blk_reopen_prepare,
    .bdrv_child_perm            = tt_blk_child_perm,
    .bdrv_co_create             = tt_blk_co_create,
    .bdrv_co_create_opts        = tt_blk_co_create_opts,
    .bdrv_co_truncate           = tt_blk_co_truncate,
    .bdrv_has_zero_init         = bdrv_has_zero_init_1,
    .bdrv_refresh_limits        = tt_blk_refresh_limits,
    .bdrv_co_invalidate_cache   = tt_blk_co_invalidate_cache,
    .bdrv_co_change_backing_file = tt_blk_co_change_backing_file,

    .bdrv_co_preadv_part        = tt_blk_co_preadv_part,
    .bdrv_co_pwritev_part       = tt_blk_co_pwritev_part,
    .bdrv_co_pwrite_zeroes      = tt_blk_co_pwrite_zeroes,
    .bdrv_co_pdiscard           = tt_blk_co_pdiscard,
    .bdrv_co_flush_to_os        = tt_blk_co_flush_to_os,
    .bdrv_co_block_status       = tt_blk_co_block_status,

    .bdrv_snapshot_create       = tt_blk_snapshot_create,
    .bdrv_snapshot_goto         = tt_blk_snapshot_goto,
    .bdrv_snapshot_delete       = tt_blk_snapshot_delete,
    .bdrv_snapshot_list         = tt_blk_snapshot_list,
    .bdrv_snapshot_load_tmp     = tt_blk_snapshot_load_tmp,

    .bdrv_co_get_info           = tt_blk_co_get_info,
    .bdrv_co_check              = tt_blk_co_check,
};

static void tt_blk_register(void)
{
    bdrv_register(&bdrv_tt);
}

block_init(tt_blk_register);
