/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt disk diff: in which blocks two versions of a disk differ, and in which files. The map
 * says which clusters may differ; only these are read and compared.
 */
#include "tt-tool-disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define UNIT 4096               /* bytes that are compared as one */

/* Such an id for the disk as it is now as well, in our copy of the map. False: said why. */
static bool give_id(const ToolDisk *d, ToolDiskAt *at)
{
    TtVersionInfo want = { .name = "now" };
    TtDiag diag;

    if (at->is_now && tt_blockmap_version_new(d->map, &want, &at->id, &diag) != TT_OK) {
        tool_problem(&diag);
        return false;
    }
    return true;
}

static void add_range(GArray *ranges, uint64_t start, uint64_t len)
{
    ToolRange *last = ranges->len ?
        &g_array_index(ranges, ToolRange, ranges->len - 1) : NULL;
    ToolRange r = { start, len };

    if (last && last->start + last->len == start) {
        last->len += len;
    } else {
        g_array_append_val(ranges, r);
    }
}

/* False: said why. */
static bool compare_cluster(const ToolDiskAt at[2], TtIo *disk[2], uint64_t start,
                            uint64_t len, uint8_t *buf[2], GArray *ranges)
{
    TtDiag diag;
    size_t got[2];

    for (unsigned i = 0; i < 2; i++) {
        if (disk[i]->ops->read_at(disk[i], start, buf[i], len, &got[i], &diag) != TT_OK) {
            tool_problem(&diag);
            return false;
        }
        if (got[i] != len) {
            tool_complain("the disk '%s' ends at byte %" PRIu64, at[i].typed,
                          start + got[i]);
            return false;
        }
    }
    for (uint64_t i = 0; i < len; i += UNIT) {
        uint64_t part = MIN(UNIT, len - i);

        if (memcmp(buf[0] + i, buf[1] + i, part) != 0) {
            add_range(ranges, start + i, part);
        }
    }
    return true;
}

/* NULL: said why. */
static GArray *find_ranges(const ToolDisk *d, const ToolDiskAt at[2], TtIo *disk[2])
{
    size_t n = 0;
    g_autofree uint32_t *cluster = tt_blockmap_diff(d->map, at[0].id, at[1].id, &n);
    g_autofree uint8_t *a = NULL, *b = NULL;
    GArray *ranges = g_array_new(false, false, sizeof(ToolRange));
    TtDiskInfo info;
    bool ok = true;

    tt_blockmap_info(d->map, &info);
    if (!cluster && n) {
        g_array_free(ranges, true);
        tool_complain("there is not enough memory to compare the versions");
        return NULL;
    }
    a = g_malloc(info.cluster_bytes);
    b = g_malloc(info.cluster_bytes);
    for (size_t i = 0; i < n && ok; i++) {
        uint64_t start = (uint64_t)cluster[i] * info.cluster_bytes;
        uint64_t len = MIN(info.cluster_bytes, info.size_bytes - start);

        ok = compare_cluster(at, disk, start, len, (uint8_t *[2]) { a, b }, ranges);
    }
    if (!ok) {
        g_array_free(ranges, true);
        return NULL;
    }
    return ranges;
}

/* ---- saying it ---- */

static uint64_t total(const GArray *ranges)
{
    uint64_t bytes = 0;

    for (guint i = 0; i < ranges->len; i++) {
        bytes += g_array_index(ranges, ToolRange, i).len;
    }
    return bytes;
}

static void say_begin(const ToolDisk *d, const ToolDiskAt at[2], const GArray *ranges,
                      bool json)
{
    if (json) {
        tool_json_begin();
        printf("\"disk\": ");
        tool_json_string(d->path);
        printf(", \"a\": ");
        tool_json_string(at[0].words);
        printf(", \"b\": ");
        tool_json_string(at[1].words);
        printf(", \"changed_bytes\": %" PRIu64, total(ranges));
    } else {
        g_autofree char *bytes = tool_bytes(total(ranges));
        g_autofree char *n = tool_count(ranges->len, "place");
        g_autofree char *a = tt_replace_controls(g_strdup(at[0].words), '?');
        g_autofree char *b = tt_replace_controls(g_strdup(at[1].words), '?');
        g_autofree char *disk = tt_replace_controls(g_strdup(d->path), '?');

        printf("Disk '%s', from %s to %s: %s differ, in %s\n", disk, a, b, bytes, n);
    }
}

static void say_blocks(const GArray *ranges, bool json)
{
    printf("%s", json ? ", \"blocks\": [" : ranges->len ? "Blocks:\n" : "");
    for (guint i = 0; i < ranges->len; i++) {
        const ToolRange *r = &g_array_index(ranges, ToolRange, i);

        if (json) {
            printf("%s\n  {\"offset\": %" PRIu64 ", \"length\": %" PRIu64 "}",
                   i ? "," : "", r->start, r->len);
        } else {
            printf("  0x%010" PRIx64 "  %" PRIu64 " bytes\n", r->start, r->len);
        }
    }
    printf("%s", json ? "]" : "");
}

static int compare(const ToolArgs *a, const ToolDisk *d, ToolDiskAt at[2], TtIo *disk[2])
{
    bool json = tool_has(a, "--json"), only_files = tool_has(a, "--files");
    bool only_blocks = tool_has(a, "--blocks");
    GArray *ranges = find_ranges(d, at, disk);
    int result = TOOL_FINE;

    if (!ranges) {
        return TOOL_PROBLEM;
    }
    say_begin(d, at, ranges, json);
    if (!only_files || only_blocks) {
        say_blocks(ranges, json);
    }
    if (!only_blocks || only_files) {
        const char *const name[2] = { at[0].typed, at[1].typed };

        result = tool_disk_diff_files(disk, name, ranges, json);
    }
    printf("%s", json ? "}\n" : "");
    g_array_free(ranges, true);
    return result;
}

int tool_disk_diff(const ToolArgs *a, const ToolDisk *d)
{
    ToolDiskAt at[2] = { { 0 } };
    TtIo *disk[2] = { NULL, NULL };
    int result = TOOL_FINE;

    for (unsigned i = 0; i < 2 && result == TOOL_FINE; i++) {
        result = tool_disk_at(a, d, a->operand[2 + i], &at[i]);
    }
    for (unsigned i = 0; i < 2 && result == TOOL_FINE; i++) {
        disk[i] = tool_disk_read(a, d, &at[i]);
        result = disk[i] && give_id(d, &at[i]) ? TOOL_FINE : TOOL_PROBLEM;
    }
    if (result == TOOL_FINE) {
        bool is_doubtful = (at[0].is_now || at[1].is_now) && tt_blockmap_damage(d->map);

        result = compare(a, d, at, disk);
        result = result == TOOL_FINE && is_doubtful ? TOOL_PROBLEM : result;
    }
    for (unsigned i = 0; i < 2; i++) {
        tt_io_close(disk[i]);
        g_free(at[i].words);
    }
    return result;
}
