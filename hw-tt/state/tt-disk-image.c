/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of disk images, as a full checkpoint has them, and new images on top of others. */
#include "qemu/osdep.h"
#include "hw-tt/state/tt-disk-image.h"
#include "qapi/error.h"
#include "block/block.h"
#include "qemu/cutils.h"

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
