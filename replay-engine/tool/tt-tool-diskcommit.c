/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt disk commit: what the guest wrote goes from a run, or from one disk, into the image
 * below, by qemu-img. The disk keeps it as well, so it can be done again.
 */
#include "tt-tool-disk.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void be_qemu_img(const char *program, const char *disk)
{
    const char *const argv[] = {
        program, "commit", "-q", "-d", "-f", "tt", disk, NULL,
    };

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execv(program, (char **)argv);
    fprintf(stderr, "tt: cannot run '%s': %s\n", program, g_strerror(errno));
    _exit(127);
}

static bool commit(const char *program, const char *disk)
{
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        be_qemu_img(program, disk);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) {
        tool_complain("'%s' was not written into the image below it: it still has all "
                      "that the guest wrote", disk);
        return false;
    }
    return true;
}

/* A run's, by name; or the one disk itself. NULL: said why. */
static GPtrArray *disks_of(const char *path)
{
    g_autofree char *folder = g_build_filename(path, "disks", NULL);
    GPtrArray *disks = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    GDir *dir;

    if (!g_file_test(path, G_FILE_TEST_IS_DIR)) {
        g_ptr_array_add(disks, g_strdup(path));
        return disks;
    }
    dir = g_dir_open(folder, 0, NULL);
    while (dir && (name = g_dir_read_name(dir))) {
        if (g_str_has_suffix(name, ".tt")) {
            g_ptr_array_add(disks, g_build_filename(folder, name, NULL));
        }
    }
    if (dir) {
        g_dir_close(dir);
    }
    if (!disks->len) {
        tool_complain("the run '%s' has no disk with versions: it was recorded with "
                      "disk=image, or the guest had no disk that it could write", path);
        g_ptr_array_free(disks, true);
        return NULL;
    }
    return disks;
}

/* On a version of another disk, which must not change: that is a branch's. */
static bool is_refused(const char *path)
{
    ToolDisk d;
    TtDiskInfo info;
    bool bad;

    if (!tool_disk_open_path(path, &d)) {
        return true;
    }
    tt_blockmap_info(d.map, &info);
    bad = !info.backing || strchr(info.backing_format ? info.backing_format : "", '@') ||
        tt_blockmap_damage(d.map);
    if (bad) {
        tool_complain("'%s' is %s: use 'tt disk export' to get what it holds", path,
                      tt_blockmap_damage(d.map) ? "damaged" : !info.backing ?
                      "not on top of an image" : "the disk of a branch, on top of its "
                      "parent's, which never changes");
    }
    tool_disk_close(&d);
    return bad;
}

/* The log of a run names what was read from the images, as they were. */
static bool needs_images(const char *path)
{
    g_autofree char *manifest = g_build_filename(path, "manifest", NULL);

    return tt_manifest_has(manifest, TT_FEATURE_DISKS);
}

int tool_disk_commit(const ToolArgs *a, const char *path)
{
    g_autofree char *program = tool_find_beside(a->program, "qemu-img");
    GPtrArray *disks = program ? disks_of(path) : NULL;
    bool ok = disks;

    if (ok && !tool_has(a, "--force") && needs_images(path)) {
        tool_complain("the run '%s' reads from the images as they were "
                      "(disk-reads=store), and could not be replayed any more: 'tt pack' "
                      "it first, then use --force", path);
        ok = false;
    }
    for (unsigned i = 0; ok && i < disks->len; i++) {
        ok = !is_refused(disks->pdata[i]);
    }
    for (unsigned i = 0; ok && i < disks->len; i++) {
        ok = commit(program, disks->pdata[i]);
    }
    if (ok) {
        g_autofree char *n = tool_count(disks->len, "disk");

        printf("%s committed: the images now contain what the guest wrote\n", n);
    }
    if (disks) {
        g_ptr_array_free(disks, true);
    }
    return ok ? TOOL_FINE : TOOL_PROBLEM;
}
