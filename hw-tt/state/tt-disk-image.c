/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of disk images, as a full checkpoint has them, and new images on top of others. */
#include "qemu/osdep.h"
#include "hw-tt/state/tt-disk-image.h"
#include "run/tt-bases.h"
#include "session/tt-paths.h"
#include "qapi/error.h"
#include "block-tt/tt-blockmap.h"
#include "block/block.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/uuid.h"

char *tt_disk_path_for(const char *path, const char *dir)
{
    g_autofree char *full = NULL;
    size_t n = strlen(dir);

    if (path_has_protocol(path)) {
        return g_strdup(path);
    }
    full = g_canonicalize_filename(path, NULL);
    if (!strncmp(full, dir, n) && full[n] == '/') {
        return g_strdup(full + n + 1);
    }
    return g_steal_pointer(&full);
}

char *tt_disk_path_from(const char *path, const char *dir)
{
    return !*path || path_has_protocol(path) ? g_strdup(path) :
        g_canonicalize_filename(path, dir);
}

char *tt_disk_file_name(const char *name)
{
    char *clean = g_strdup(*name ? name : "disk");

    return g_strcanon(clean, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_.",
                      '_');
}

bool tt_disk_make_overlay(const char *path, const char *backing,
                          const char *format, uint64_t size_bytes,
                          Error **errp)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *name = tt_disk_path_for(backing, dir);
    Error *err = NULL;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0) {                   /* made here: as private as the run */
        error_setg_errno(errp, errno, "cannot create '%s'", path);
        return false;
    }
    close(fd);
    bdrv_img_create(path, "qcow2", name, format, NULL, size_bytes,
                    BDRV_O_NO_BACKING, true, &err);
    if (err) {
        unlink(path);
        error_propagate(errp, err);
    }
    return !err;
}

char *tt_disk_fresh_store(const char *dir, const char *name)
{
    g_autofree char *clean = tt_disk_file_name(name);

    for (unsigned n = 1;; n++) {
        g_autofree char *file = n == 1 ? g_strdup_printf("%s.tt", clean) :
            g_strdup_printf("%s-%u.tt", clean, n);
        g_autofree char *path = g_build_filename(dir, "disks", file, NULL);

        if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
            return g_steal_pointer(&path);
        }
    }
}

/* @dir/disks lies in a run; runs side by side may be moved together. */
static char *name_for_store(const char *backing, const char *dir)
{
    g_autofree char *run = g_path_get_dirname(dir);
    g_autofree char *runs = g_path_get_dirname(run);
    g_autofree char *full = NULL;
    size_t n = strlen(runs);

    if (path_has_protocol(backing)) {
        return g_strdup(backing);
    }
    full = g_canonicalize_filename(backing, NULL);
    if (!strncmp(full, runs, n) && full[n] == '/') {
        return g_strdup_printf("../../%s", full + n + 1);
    }
    return g_steal_pointer(&full);
}

static bool do_step(int fd, const TtBlockStep *step)
{
    switch (step->kind) {
    case TT_BLOCK_WRITE:
        return lseek(fd, step->offset, SEEK_SET) >= 0 &&
               qemu_write_full(fd, step->data, step->len) == step->len;
    case TT_BLOCK_GROW:
        return !ftruncate(fd, step->offset);
    case TT_BLOCK_SYNC:
        return !fsync(fd);
    }
    g_assert_not_reached();
}

static bool write_new(const char *path, const TtBlockPlan *plan, Error **errp)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0;

    for (unsigned i = 0; ok && i < plan->n; i++) {
        ok = do_step(fd, &plan->step[i]);
    }
    if (!ok) {
        error_setg_errno(errp, errno, "cannot write '%s'", path);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (fd >= 0 && !ok) {
        unlink(path);
    }
    if (ok) {                       /* checkpoints will name it */
        tt_io_posix_sync_directory_of(path);
    }
    return ok;
}

char *tt_disk_store_name(const char *path)
{
    g_autofree char *name = g_path_get_basename(path);

    return g_strndup(name, strlen(name) - (g_str_has_suffix(name, ".tt") ? 3 : 0));
}

/* The run knows that it has the disk @path, and over which image. */
static bool note_store(const char *path, const char *image, uint32_t version, Error **errp)
{
    g_autofree char *disks = g_path_get_dirname(path), *name = tt_disk_store_name(path);
    TtBases bases;
    TtDiag diag;
    bool ok = tt_bases_load(disks, &bases, &diag) == TT_OK;

    if (ok) {
        tt_bases_add(&bases, name, image, version);
        ok = tt_bases_save(disks, &bases, &diag) == TT_OK;
        tt_bases_cleanup(&bases);
    }
    if (!ok) {
        error_setg(errp, "%s", diag.text);
    }
    return ok;
}

static bool add_files(const char *disks, const char *name, const TtFullDisk *d)
{
    TtBases bases;
    bool ok = tt_bases_load(disks, &bases, NULL) == TT_OK;
    TtBase *k = ok ? tt_bases_find(&bases, name) : NULL;

    ok = k;
    for (unsigned i = 0; ok && i < d->n_files; i++) {
        ok = tt_base_add_file(k, d->files[i].path, disks);
    }
    ok = ok && tt_bases_save(disks, &bases, NULL) == TT_OK;
    tt_bases_cleanup(&bases);
    return ok;
}

void tt_disk_note_files(const char *path, const TtFullDisk *d)
{
    g_autofree char *disks = g_path_get_dirname(path), *name = tt_disk_store_name(path);

    if (!add_files(disks, name, d)) {
        warn_report("tt: what the image below '%s' looks like cannot be noted, so nobody "
                    "will notice when it changes", tt_printable(path));
    }
}

void tt_disk_remove_store(const char *path)
{
    g_autofree char *disks = g_path_get_dirname(path), *name = tt_disk_store_name(path);
    TtBases bases;

    unlink(path);
    if (tt_bases_load(disks, &bases, NULL) == TT_OK) {
        tt_bases_remove(&bases, name);
        tt_bases_save(disks, &bases, NULL);
        tt_bases_cleanup(&bases);
    }
}

bool tt_disk_make_store(const char *path, const char *backing, const char *format,
                        uint32_t version, uint64_t size_bytes, Error **errp)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *name = version ? name_for_store(backing, dir) :
        tt_disk_path_for(backing, dir);
    g_autofree char *kind = !version ? g_strdup(format) :
        g_strdup_printf("%s@%" PRIu32, format, version);
    g_autofree uint8_t *bytes = NULL;
    TtBlockSpec spec = {
        .size_bytes = size_bytes, .backing = name, .backing_format = kind,
    };
    QemuUUID uuid;
    TtBlockPlan plan;
    TtDiag diag;

    qemu_uuid_generate(&uuid);
    memcpy(spec.uuid, uuid.data, sizeof(spec.uuid));
    if (tt_blockmap_format(&spec, &plan, &bytes, &diag) != TT_OK) {
        error_setg(errp, "the image '%s' cannot have a disk with versions on top of it: "
                   "%s", backing, diag.text);
        return false;
    }
    if (!write_new(path, &plan, errp)) {
        return false;
    }
    if (!note_store(path, name, version, errp)) {
        unlink(path);
        return false;
    }
    return true;
}

bool tt_disk_has_version(const char *path, uint32_t version, Error **errp)
{
    TtBlockMap *map = NULL;
    TtVersionInfo info;
    TtDiag diag;
    TtIo *io;
    TtStatus s = tt_io_posix_open(path, &io, &diag);

    if (s == TT_OK) {
        s = tt_blockmap_open(io, &map, &diag);
        tt_io_close(io);
    }
    if (s == TT_OK && !tt_blockmap_version_info(map, version, &info)) {
        s = tt_fail(&diag, TT_ERR_INVALID, "it has no version %" PRIu32, version);
    } else if (s == TT_OK && info.lost) {
        s = tt_fail(&diag, TT_ERR_FORMAT, "its file has been cut off, and version %" PRIu32
                    " needs what is missing", version);
    }
    if (s == TT_OK) {
        TtDiskInfo disk;

        tt_blockmap_info(map, &disk);
        if (tt_disk_is_replaced(path, disk.backing)) {
            s = tt_fail(&diag, TT_ERR_INVALID, "it is on another image than it was (%s): put "
                        "it back with qemu-img rebase -u", disk.backing ?: "none");
        }
    }
    tt_blockmap_free(map);
    if (s != TT_OK) {
        error_setg(errp, "the disk with versions '%s', which is needed, cannot be used: "
                   "%s", tt_printable(path), diag.text);
    }
    return s == TT_OK;
}
