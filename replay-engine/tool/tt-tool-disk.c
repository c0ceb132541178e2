/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt disk: the versions of a disk, and what the disk is. Reads the map only.
 */
#include "tt-tool.h"
#include "block-tt/tt-blockmap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static TtBlockMap *open_disk(const char *path)
{
    TtBlockMap *map = NULL;
    TtDiag diag;
    TtIo *io;
    TtStatus st = tt_io_posix_open(path, &io, &diag);

    if (st == TT_OK) {
        st = tt_blockmap_open(io, &map, &diag);
        tt_io_close(io);
    }
    if (st != TT_OK) {
        tool_problem(&diag);
        return NULL;
    }
    if (tt_blockmap_damage(map)) {
        tool_complain("%s: %s", path, tt_blockmap_damage(map));
    }
    return map;
}

/* ---- the versions ---- */

static char *date_of(const TtVersionInfo *v)
{
    g_autoptr(GDateTime) date = g_date_time_new_from_unix_utc(v->date_s);

    return date && v->date_s ? g_date_time_format(date, "%Y-%m-%d %H:%M:%S") :
           g_strdup("(no date)");
}

static void list_json(const TtBlockMap *map, const TtDiskInfo *disk)
{
    TtVersionInfo v;

    tool_json_begin();
    printf("\"parent\": %" PRIu32 ", \"versions\": [", disk->parent);
    for (uint32_t i = 0; tt_blockmap_version_at(map, i, &v); i++) {
        printf("%s\n  {\"id\": %" PRIu32 ", \"parent\": %" PRIu32 ", \"clusters\": %"
               PRIu64 ", \"date_s\": %" PRIu64 ", ", i ? "," : "", v.id, v.parent,
               v.clusters, v.date_s);
        if (v.has_tag) {
            printf("\"tag\": %" PRIu64 ", ", v.tag);
        }
        printf("\"name\": ");
        tool_json_string(v.name);
        printf("}");
    }
    printf("]}\n");
}

static void list_text(const TtBlockMap *map, const TtDiskInfo *disk)
{
    TtVersionInfo v;

    printf("%8s %8s %10s  %-20s %s\n", "version", "from", "changed", "date (UTC)",
           "name");
    for (uint32_t i = 0; tt_blockmap_version_at(map, i, &v); i++) {
        g_autofree char *bytes = tool_bytes(v.clusters * disk->cluster_bytes);
        g_autofree char *date = date_of(&v);

        printf("%8" PRIu32 " %8" PRIu32 " %10s  %-20s %s\n", v.id, v.parent, bytes,
               date, v.name);
    }
    printf("%8s %8" PRIu32 "\n", "(now)", disk->parent);
}

/* ---- the disk ---- */

static void info_json(const TtDiskInfo *disk, const TtBlockCheck *check)
{
    tool_json_begin();
    printf("\"size_bytes\": %" PRIu64 ", \"cluster_bytes\": %" PRIu32 ", \"versions\": %"
           PRIu32 ", \"parent\": %" PRIu32 ", \"used_bytes\": %" PRIu64
           ", \"free_bytes\": %" PRIu64 ", \"journal_bytes\": %" PRIu64
           ", \"errors\": %" PRIu64 ", \"backing\": ", disk->size_bytes,
           disk->cluster_bytes, disk->n_versions, disk->parent,
           disk->used_hosts * disk->cluster_bytes,
           check->free_hosts * disk->cluster_bytes, disk->journal_bytes, check->errors);
    if (disk->backing) {
        g_autofree char *name = tt_replace_controls(g_strdup(disk->backing), '?');

        tool_json_string(name);
    } else {
        printf("null");
    }
    printf("}\n");
}

static void info_text(const TtDiskInfo *disk, const TtBlockCheck *check)
{
    g_autofree char *size = tool_bytes(disk->size_bytes);
    g_autofree char *used = tool_bytes(disk->used_hosts * disk->cluster_bytes);
    g_autofree char *free = tool_bytes(check->free_hosts * disk->cluster_bytes);
    g_autofree char *journal = tool_bytes(disk->journal_bytes);
    g_autofree char *n = tool_count(disk->n_versions, "version");
    g_autofree char *backing = g_strdup(disk->backing ? disk->backing : "(none)");

    printf("Disk:       %s in clusters of %" PRIu32 " KiB\n", size,
           disk->cluster_bytes >> 10);
    printf("Over:       %s\n", tt_replace_controls(backing, '?'));
    printf("Versions:   %s; the disk comes from %" PRIu32 "\n", n, disk->parent);
    printf("Uses:       %s, of which %s are the journal; %s inside the file are free\n",
           used, journal, free);
}

static int say_info(const char *path, const TtBlockMap *map, const TtDiskInfo *disk,
                    bool json)
{
    TtBlockCheck check;
    TtDiag diag;

    if (tt_blockmap_check(map, &check, &diag) != TT_OK) {
        return tool_problem(&diag);
    }
    (json ? info_json : info_text)(disk, &check);
    return check.errors ? tool_complain("%s: %s", path, check.text) :
           TOOL_FINE;
}

int tool_disk(const ToolArgs *args)
{
    const char *what = args->operand[0], *path = args->operand[1];
    bool is_list = strcmp(what, "list") == 0, json = tool_has(args, "--json");
    TtBlockMap *map;
    TtDiskInfo disk;
    int result;

    if (!is_list && strcmp(what, "info") != 0) {
        return tool_usage(args->command, "'%s' is neither list nor info", what);
    }
    map = open_disk(path);
    if (!map) {
        return TOOL_PROBLEM;
    }
    tt_blockmap_info(map, &disk);
    result = tt_blockmap_damage(map) ? TOOL_PROBLEM : TOOL_FINE;
    if (is_list) {
        (json ? list_json : list_text)(map, &disk);
    } else {
        int found = say_info(path, map, &disk, json);

        result = MAX(result, found);
    }
    tt_blockmap_free(map);
    return result;
}
