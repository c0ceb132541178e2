/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block driver `tt`: versions are QEMU's internal snapshots. The id of a snapshot is the
 * number of its version; its tag's number is the snapshot's icount.
 */
#include "qemu/osdep.h"
#include "block-tt/glue/tt-blk-int.h"
#include "block-tt/glue/tt-blkversion.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"

/* By id, or by name; 0: there is none. Either may be NULL. Alone, the empty name of
 * versions without one finds none of them. */
static TtVersionId find_version(TtBlkState *s, const char *id, const char *name)
{
    bool is_any = id || (name && *name);
    TtVersionInfo info;

    for (uint32_t i = 0; is_any && tt_blockmap_version_at(s->map, i, &info); i++) {
        g_autofree char *number = g_strdup_printf("%" PRIu32, info.id);

        if ((!id || strcmp(id, number) == 0) && (!name || strcmp(name, info.name) == 0)) {
            return info.id;
        }
    }
    return 0;
}

static TtVersionId find_either(TtBlkState *s, const char *id_or_name)
{
    TtVersionId id = find_version(s, id_or_name, NULL);

    return id ? id : find_version(s, NULL, id_or_name);
}

int64_t GRAPH_RDLOCK tt_blk_version_new(BlockDriverState *bs, QEMUSnapshotInfo *sn)
{
    TtBlkState *s = bs->opaque;
    TtVersionInfo info = {
        .date_s = sn->date_sec,
        .date_ns = sn->date_nsec,
        .vm_clock_ns = sn->vm_clock_nsec,
        .has_tag = sn->icount != -1ULL,
        .tag = sn->icount,
    };
    TtVersionId id;
    TtDiag diag;
    TtStatus st;

    pstrcpy(info.name, sizeof(info.name), sn->name);
    WITH_QEMU_LOCK_GUARD(&s->map_lock) {
        st = tt_blockmap_version_new(s->map, &info, &id, &diag);
    }
    if (st != TT_OK) {
        return tt_blk_errno(st, &diag);
    }
    snprintf(sn->id_str, sizeof(sn->id_str), "%" PRIu32, id);
    return id;
}

uint64_t GRAPH_RDLOCK tt_blk_version_kept_bytes(BlockDriverState *bs)
{
    TtBlkState *s = bs->opaque;
    TtDiskInfo info;

    QEMU_LOCK_GUARD(&s->map_lock);
    tt_blockmap_info(s->map, &info);
    return info.kept_hosts * info.cluster_bytes;
}

bool GRAPH_RDLOCK tt_blk_version_delete(BlockDriverState *bs, TtVersionId id)
{
    TtBlkState *s = bs->opaque;

    QEMU_LOCK_GUARD(&s->map_lock);
    if (tt_blockmap_version_delete(s->map, id, NULL) != TT_OK) {
        return false;
    }
    qatomic_set(&s->n_deleted, s->n_deleted + 1);       /* reads under way begin anew */
    return true;
}

/* The run whose disk @bs is (RUN/disks/NAME.tt); NULL: it is nobody's. */
static char * GRAPH_RDLOCK run_of(BlockDriverState *bs)
{
    g_autofree char *path = g_canonicalize_filename(bs->file->bs->filename, NULL);
    g_autofree char *disks = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(disks);
    g_autofree char *run = g_path_get_dirname(disks);
    g_autofree char *manifest = g_build_filename(run, "manifest", NULL);

    return strcmp(name, "disks") == 0 && g_file_test(manifest, G_FILE_TEST_EXISTS) ?
        g_steal_pointer(&run) : NULL;
}

/* Not by the recorder: a tag would be a position of the run. */
int GRAPH_RDLOCK tt_blk_snapshot_create(BlockDriverState *bs, QEMUSnapshotInfo *sn)
{
    g_autofree char *run = run_of(bs);
    int64_t id;
    int ret;

    if (!g_utf8_validate(sn->name, -1, NULL)) {
        error_report("the name of a version must be UTF-8, and have at most %d bytes",
                     TT_BLOCKMAP_NAME_MAX);
        return -EINVAL;
    }
    if (run) {
        sn->icount = -1ULL;             /* qemu-img says 0 */
    }
    id = tt_blk_version_new(bs, sn);
    ret = id < 0 ? id : bdrv_flush(bs);
    if (id > 0 && ret < 0) {
        tt_blk_version_delete(bs, id);
    }
    return ret < 0 ? ret : 0;
}

/* What a run ends with is the head of its disks. */
int GRAPH_UNLOCKED tt_blk_snapshot_goto(BlockDriverState *bs, const char *id_or_name)
{
    TtBlkState *s = bs->opaque;
    g_autofree char *run = NULL;
    TtDiag diag;
    TtStatus st;

    bdrv_graph_rdlock_main_loop();
    run = run_of(bs);
    bdrv_graph_rdunlock_main_loop();
    if (run) {
        error_report("the disk is that of the run '%s', which needs it as it is: 'tt disk "
                     "export %s OUT --version %s' makes a disk of its own", run, run,
                     id_or_name);
        return -EBUSY;
    }
    WITH_QEMU_LOCK_GUARD(&s->map_lock) {
        TtVersionId id = find_either(s, id_or_name);

        if (!id) {
            return -ENOENT;
        }
        st = tt_blockmap_goto(s->map, id, &diag);
    }
    return st == TT_OK ? bdrv_flush(bs) : tt_blk_errno(st, &diag);
}

/* A recorder made it, and says at which position: a full checkpoint or a branch of the run
 * needs it, or its log names what was read from it. The recorder deletes such a version by
 * way of tt_blk_version_delete, when nobody needs it any more. map_lock is held. */
static bool GRAPH_RDLOCK is_needed(BlockDriverState *bs, TtVersionId version, Error **errp)
{
    TtBlkState *s = bs->opaque;
    g_autofree char *run = run_of(bs);
    TtVersionInfo info;

    if (!run || !tt_blockmap_version_info(s->map, version, &info) || !info.has_tag) {
        return false;
    }
    error_setg(errp, "version %" PRIu32 " of the disk is that of the full checkpoint at "
               "position %" PRIu64 " of the run '%s', which needs it: while the run is "
               "recorded, 'tt checkpoint delete' deletes both", version, info.tag, run);
    return true;
}

int GRAPH_RDLOCK tt_blk_snapshot_delete(BlockDriverState *bs, const char *id,
                                        const char *name, Error **errp)
{
    TtBlkState *s = bs->opaque;
    TtVersionId version;
    TtDiag diag;
    int ret;

    WITH_QEMU_LOCK_GUARD(&s->map_lock) {
        TtStatus st;

        version = find_version(s, id, name);
        if (!version) {
            error_setg(errp, "the disk has no version '%s': qemu-img snapshot -l "
                       "lists them", id ? id : name);
            return -ENOENT;
        }
        if (is_needed(bs, version, errp)) {
            return -EBUSY;
        }
        st = tt_blockmap_version_delete(s->map, version, &diag);
        if (st != TT_OK) {
            tt_blk_error(errp, &diag);
            return tt_blk_errno(st, &diag);
        }
    }
    ret = bdrv_flush(bs);
    if (ret < 0) {
        error_setg_errno(errp, -ret, "the deletion could not be written: remove the "
                         "cause, then delete the version again");
    }
    return ret;
}

int GRAPH_RDLOCK tt_blk_snapshot_list(BlockDriverState *bs, QEMUSnapshotInfo **list)
{
    TtBlkState *s = bs->opaque;
    TtVersionInfo info;
    TtDiskInfo disk;

    QEMU_LOCK_GUARD(&s->map_lock);
    tt_blockmap_info(s->map, &disk);
    *list = disk.n_versions ? g_new0(QEMUSnapshotInfo, disk.n_versions) : NULL;
    for (uint32_t i = 0; tt_blockmap_version_at(s->map, i, &info); i++) {
        QEMUSnapshotInfo *sn = &(*list)[i];

        snprintf(sn->id_str, sizeof(sn->id_str), "%" PRIu32, info.id);
        pstrcpy(sn->name, sizeof(sn->name), info.name);
        sn->date_sec = info.date_s;
        sn->date_nsec = info.date_ns;
        sn->vm_clock_nsec = info.vm_clock_ns;
        sn->icount = info.has_tag ? info.tag : -1ULL;
    }
    return disk.n_versions;
}

int GRAPH_RDLOCK tt_blk_snapshot_load_tmp(BlockDriverState *bs, const char *id,
                                          const char *name, Error **errp)
{
    TtBlkState *s = bs->opaque;
    TtVersionId version;
    TtDiag diag;
    TtStatus st;

    QEMU_LOCK_GUARD(&s->map_lock);
    version = find_version(s, id, name);
    if (!version) {
        error_setg(errp, "the disk has no version '%s': qemu-img snapshot -l "
                       "lists them", id ? id : name);
        return -ENOENT;
    }
    st = tt_blockmap_goto(s->map, version, &diag);
    if (st != TT_OK) {
        tt_blk_error(errp, &diag);
        return tt_blk_errno(st, &diag);
    }
    s->is_frozen = true;
    return 0;
}
