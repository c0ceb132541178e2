/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt disk: the image below a disk. Is it there, and is it what it was when the run began
 * to use it (run/tt-bases.h)?
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* F_OFD_GETLK, SEEK_DATA */
#endif
#include "tt-tool-disk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Not a name of QEMU's with a protocol, such as nbd://... or json:... */
static bool is_path(const char *name)
{
    const char *colon = strchr(name, ':'), *slash = strchr(name, '/');

    return !colon || (slash && slash < colon);
}

char *tool_disk_image(const ToolDisk *d)
{
    g_autofree char *whole = g_canonicalize_filename(d->path, NULL);
    g_autofree char *folder = g_path_get_dirname(whole);
    TtDiskInfo info;

    tt_blockmap_info(d->map, &info);
    return info.backing && is_path(info.backing) ?
        g_canonicalize_filename(info.backing, folder) : NULL;
}

bool tool_disk_has_image(const ToolDisk *d)
{
    g_autofree char *image = tool_disk_image(d);
    const char *format;
    TtDiskInfo info;

    if (!image || access(image, F_OK) == 0) {
        return true;
    }
    tt_blockmap_info(d->map, &info);
    format = info.backing_format ? info.backing_format : "raw";
    if (strchr(format, '@')) {
        tool_complain("the disk '%s', on a version of which '%s' stands, is not there (%s): "
                      "put the parent's run back to its place", image, d->path,
                      g_strerror(errno));
    } else {
        tool_complain("the image '%s', below the disk '%s', is not there (%s): put it back, "
                      "or say where it is now: qemu-img rebase -u -f tt -F %s -b IMAGE %s",
                      image, d->path, g_strerror(errno), format, d->path);
    }
    return false;
}

/* ---- what it was ---- */

char *tool_disk_folder(const char *disk)
{
    g_autofree char *whole = g_canonicalize_filename(disk, NULL);
    g_autofree char *folder = g_path_get_dirname(whole), *run = g_path_get_dirname(folder);
    g_autofree char *name = g_path_get_basename(folder);
    g_autofree char *manifest = g_build_filename(run, "manifest", NULL);

    return strcmp(name, "disks") == 0 && g_file_test(manifest, G_FILE_TEST_EXISTS) ?
        g_steal_pointer(&folder) : NULL;
}

char *tool_disk_name(const char *disk)
{
    g_autofree char *name = g_path_get_basename(disk);

    return g_strndup(name, strlen(name) - (g_str_has_suffix(name, ".tt") ? 3 : 0));
}

bool tool_disk_note_replaced(const ToolDisk *d)
{
    g_autofree char *folder = tool_disk_folder(d->path), *note = NULL;
    TtDiskInfo info;

    tt_blockmap_info(d->map, &info);
    if (!folder || !tt_disk_is_replaced(d->path, info.backing)) {
        return false;
    }
    note = g_strdup_printf("the disk '%s' is on another image than it was (%s): where the "
                           "guest had written nothing, it and its versions are like that. "
                           "qemu-img rebase -u puts it back", d->path,
                           info.backing ? info.backing : "none");
    tool_note(note);
    return true;
}

void tool_disk_note_changed(const ToolDisk *d)
{
    g_autofree char *folder = tool_disk_folder(d->path), *name = tool_disk_name(d->path);
    g_autofree char *changed = NULL;
    const TtBase *k;
    TtDiskInfo info;
    TtBases bases;

    if (tool_disk_note_replaced(d) || !folder ||
        tt_bases_load(folder, &bases, NULL) != TT_OK) {
        return;
    }
    k = tt_bases_find(&bases, name);
    tt_blockmap_info(d->map, &info);
    changed = k ? tt_base_changed(k, folder, info.backing) : NULL;
    if (changed && access(changed, F_OK) == 0) {
        g_autofree char *note =
            g_strdup_printf("the image '%s' has changed since the run %s it: where the "
                            "guest had written nothing, the disk is like the image now",
                            changed, k->state == TT_BASE_DONE ? "was written into" :
                            "began to use");

        tool_note(note);
    }
    tt_bases_cleanup(&bases);
}

/* ---- in use, and room for more ---- */

/* Bytes that QEMU locks in the files of images that it has open (its file-posix.c). */
#define LOCKS_AT    100
#define LOCKS_LEN   200
#define LOCK_WRITES 1           /* of these: somebody writes */

static bool is_locked(const char *path, off_t start, off_t len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = len,
    };
    bool is_held = fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;

    if (fd >= 0) {
        close(fd);
    }
    return is_held;
}

bool tool_disk_is_in_use(const char *path)
{
    return is_locked(path, LOCKS_AT, LOCKS_LEN);
}

bool tool_disk_is_written(const char *path)
{
    return is_locked(path, LOCKS_AT + LOCK_WRITES, 1);
}

bool tool_disk_lock_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        close(fd);
        tool_complain("another tt disk commit of this run is at work: wait until it has "
                      "ended");
        return false;
    }
    return true;
}

/* Bytes of a range that are in holes of a file, or behind its end. */
static uint64_t holes(int fd, uint64_t at, uint64_t len)
{
    uint64_t end = at + len, sum = 0;

    while (at < end) {
        off_t data = lseek(fd, at, SEEK_DATA), hole;

        if (data < 0) {
            return errno == ENXIO ? sum + end - at : sum;
        }
        sum += MIN((uint64_t)data, end) - at;
        hole = lseek(fd, data, SEEK_HOLE);
        if (hole <= data) {
            break;
        }
        at = hole;
    }
    return sum;
}

uint64_t tool_disk_needs_bytes(const ToolDisk *d, const char *image)
{
    int fd = open(image, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    uint64_t sum = 0, there = 0;
    TtDiskInfo info;
    struct stat st;
    bool is_raw;

    tt_blockmap_info(d->map, &info);
    is_raw = g_strcmp0(info.backing_format, "raw") == 0;
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        info.size_bytes = 0;
    } else if (!is_raw) {
        there = st.st_blocks * 512ull;
    }
    for (uint64_t at = 0; at < info.size_bytes;) {
        TtBlockRun run;

        tt_blockmap_lookup(d->map, at, info.size_bytes - at, &run);
        if (run.kind == TT_BLOCK_HOST) {
            sum += is_raw ? holes(fd, at, run.len) : run.len;
        }
        at += run.len;
    }
    if (fd >= 0) {
        close(fd);
    }
    return sum > there ? sum - there : 0;
}
