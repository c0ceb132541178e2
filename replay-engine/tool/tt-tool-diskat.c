/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt disk: which disk is meant, and which of its versions.
 */
#include "tt-tool-disk.h"

#include <inttypes.h>
#include <string.h>

/* ---- the disk ---- */

static bool open_map(ToolDisk *d)
{
    TtDiag diag;
    TtIo *io;
    TtStatus st = tt_io_posix_open(d->path, &io, &diag);

    if (st == TT_OK) {
        st = tt_blockmap_open(io, &d->map, &diag);
        tt_io_close(io);
    }
    if (st != TT_OK) {
        if (strstr(diag.text, d->path)) {
            tool_problem(&diag);
        } else {
            tool_complain("%s: %s", d->path, diag.text);
        }
        return false;
    }
    if (tt_blockmap_damage(d->map)) {
        tool_complain("%s: %s", d->path, tt_blockmap_damage(d->map));
    }
    return true;
}

bool tool_disk_open(const ToolArgs *a, ToolDisk *d)
{
    const char *path = a->operand[1], *wanted = tool_value(a, "--disk");
    g_autofree char *image = NULL, *manifest = NULL;
    bool ok;

    if (!g_file_test(path, G_FILE_TEST_IS_DIR)) {
        if (wanted) {
            tool_complain("--disk is only for a run, and '%s' is not one", path);
            return false;
        }
        return tool_disk_open_path(path, d);
    }
    manifest = g_build_filename(path, "manifest", NULL);
    if (!g_file_test(manifest, G_FILE_TEST_EXISTS)) {
        tool_complain("'%s' is neither a disk nor a run: it is a directory that has no "
                      "manifest", path);
        return false;
    }
    image = tool_disk_of_run(path, wanted);
    ok = image && tool_disk_open_path(image, d);
    if (ok) {
        d->run = g_strdup(path);
    }
    return ok;
}

bool tool_disk_open_path(const char *path, ToolDisk *d)
{
    *d = (ToolDisk) { .path = g_strdup(path) };
    if (open_map(d)) {
        return true;
    }
    tool_disk_close(d);
    return false;
}

void tool_disk_close(ToolDisk *d)
{
    tt_blockmap_free(d->map);
    g_free(d->path);
    g_free(d->run);
    *d = (ToolDisk) { .path = NULL };
}

/* ---- the version ---- */

#define LISTED  8

/* "1 (first), 2 and 3 more" */
static char *list_versions(const TtBlockMap *map)
{
    GString *out = g_string_new(NULL);
    TtVersionInfo v;
    uint32_t n = 0;

    for (; n < LISTED && tt_blockmap_version_at(map, n, &v); n++) {
        g_string_append_printf(out, "%s%" PRIu32, n ? ", " : "", v.id);
        if (*v.name) {
            g_string_append_printf(out, " (%s)", v.name);
        }
    }
    while (tt_blockmap_version_at(map, n, &v)) {
        n++;
    }
    if (n > LISTED) {
        g_string_append_printf(out, " and %" PRIu32 " more", n - LISTED);
    }
    return g_string_free(out, false);
}

static int complain_no_version(const ToolDisk *d, const char *text)
{
    g_autofree char *all = list_versions(d->map);

    return !*all ? tool_complain("the disk '%s' has no version '%s': it has none, only "
                                 "'now', the disk as it is", d->path, text) :
        tool_complain("the disk '%s' has no version '%s': it has %s; see tt disk list",
                      d->path, text, all);
}

static int find_version(const ToolDisk *d, const char *text, ToolDiskAt *at)
{
    TtVersionInfo v;
    uint64_t n;

    if (!*text) {
        return tool_complain("a version is missing: give its number or its name");
    }
    if (tool_parse_number(text, &n) && n <= UINT32_MAX) {
        at->id = n;
        if (n == 0) {
            return tool_complain("version 0 is the disk as it was created, which '%s' "
                                 "does not hold: use the file below it, which tt disk "
                                 "info names", d->path);
        }
        if (tt_blockmap_version_info(d->map, n, &v)) {
            at->words = *v.name ? g_strdup_printf("version %" PRIu32 " (%s)", v.id, v.name)
                                : g_strdup_printf("version %" PRIu32, v.id);
            return TOOL_FINE;
        }
    }
    for (uint32_t i = 0; tt_blockmap_version_at(d->map, i, &v); i++) {
        if (strcmp(v.name, text) == 0) {
            at->id = v.id;
            at->words = g_strdup_printf("version %" PRIu32 " (%s)", v.id, v.name);
            return TOOL_FINE;
        }
    }
    return complain_no_version(d, text);
}

int tool_disk_at(const ToolArgs *a, const ToolDisk *d, const char *text, ToolDiskAt *at)
{
    *at = (ToolDiskAt) { .is_now = strcmp(text, "now") == 0, .typed = text };
    if (at->is_now) {
        tool_disk_note_changed(d);
        at->words = g_strdup("the disk as it is now");
        return TOOL_FINE;
    }
    return d->run ? tool_disk_at_place(d, text, at) : find_version(d, text, at);
}

int tool_disk_at_option(const ToolArgs *a, const ToolDisk *d, ToolDiskAt *at)
{
    const char *version = tool_value(a, "--version"), *place = tool_value(a, "--at");

    *at = (ToolDiskAt) { .typed = version };
    if (version && place) {
        return tool_usage(a->command, "give --version or --at, not both");
    }
    if (place && !d->run) {
        return tool_complain("--at is only for a run, and '%s' is not one: use --version",
                             a->operand[1]);
    }
    if (version && strcmp(version, "now") != 0) {
        return find_version(d, version, at);
    }
    return tool_disk_at(a, d, place ? place : "now", at);
}
