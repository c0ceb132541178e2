/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt disk: the versions of a disk, and what the disk is, for which the map is enough;
 * and the table of what else it does.
 */
#include "tt-tool-disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the versions ---- */

static char *date_of(const TtVersionInfo *v)
{
    g_autoptr(GDateTime) date = g_date_time_new_from_unix_utc(v->date_s);

    return date && v->date_s ? g_date_time_format(date, "%Y-%m-%d %H:%M:%S") :
           g_strdup("(no date)");
}

/* The checkpoint that pinned it, or NULL. */
static const ToolDiskPin *pin_of(const GArray *pins, TtVersionId version)
{
    for (guint i = 0; pins && i < pins->len; i++) {
        const ToolDiskPin *p = &g_array_index(pins, ToolDiskPin, i);

        if (p->version == version) {
            return p;
        }
    }
    return NULL;
}

static void list_json(const TtBlockMap *map, const TtDiskInfo *disk, const GArray *pins)
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
        if (pin_of(pins, v.id)) {
            printf("\"checkpoint\": %" PRIu32 ", \"position\": %" PRIu64 ", ",
                   pin_of(pins, v.id)->checkpoint, pin_of(pins, v.id)->pos);
        }
        printf("\"name\": ");
        tool_json_string(v.name);
        printf("}");
    }
    printf("]}\n");
}

static void list_text(const TtBlockMap *map, const TtDiskInfo *disk, const GArray *pins)
{
    TtVersionInfo v;

    printf("%8s %8s %10s  %-20s %s\n", "version", "from", "changed", "date (UTC)",
           "name");
    for (uint32_t i = 0; tt_blockmap_version_at(map, i, &v); i++) {
        g_autofree char *bytes = tool_bytes(v.clusters * disk->cluster_bytes);
        g_autofree char *date = date_of(&v);

        printf("%8" PRIu32 " %8" PRIu32 " %10s  %-20s %s", v.id, v.parent, bytes, date,
               v.name);
        if (pin_of(pins, v.id)) {
            g_autofree char *pos = tool_number(pin_of(pins, v.id)->pos);

            printf("%scheckpoint %" PRIu32 ", position %s", *v.name ? ": " : "",
                   pin_of(pins, v.id)->checkpoint, pos);
        }
        printf("\n");
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
    printf("Versions:   %s; the disk is based on %" PRIu32 "\n", n, disk->parent);
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

/* ---- the command ---- */

static int list_or_info(const ToolArgs *a, const ToolDisk *d, bool is_list)
{
    bool json = tool_has(a, "--json");
    int result = tt_blockmap_damage(d->map) ? TOOL_PROBLEM : TOOL_FINE;
    TtDiskInfo disk;

    tt_blockmap_info(d->map, &disk);
    if (is_list) {
        g_autoptr(GArray) pins = d->run ? tool_disk_pins(d) : NULL;

        (json ? list_json : list_text)(d->map, &disk, pins);
    } else {
        int found = say_info(d->path, d->map, &disk, json);

        result = MAX(result, found);
    }
    return result;
}

static int list(const ToolArgs *a, const ToolDisk *d)
{
    return list_or_info(a, d, true);
}

static int info(const ToolArgs *a, const ToolDisk *d)
{
    return list_or_info(a, d, false);
}

/* What it does, how many operands it takes after the disk, and its options. */
typedef struct Verb {
    const char *name;
    int (*run)(const ToolArgs *a, const ToolDisk *d);
    unsigned n_operands;
    const char *operands;
    const char *options[8];     /* besides --json */
} Verb;

static const Verb verbs[] = {
    { "list", list, 0, "", { "--disk" } },
    { "info", info, 0, "", { "--disk" } },
    { "commit", NULL, 0, "", { "--disk", "--force" } },
    { "export", tool_disk_export, 1, "one file to write",
      { "--disk", "--version", "--at", "--format", "--force" } },
    { "serve", tool_disk_serve_command, 0, "",
      { "--disk", "--version", "--at", "--socket", "--port", "--seconds", "--keep" } },
    { "diff", tool_disk_diff, 2, "what to compare, A and B",
      { "--disk", "--blocks", "--files" } },
};

static const Verb *find_verb(const char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(verbs); i++) {
        if (strcmp(name, verbs[i].name) == 0) {
            return &verbs[i];
        }
    }
    return NULL;
}

/* Is all that is given for this one? */
static int check_given(const ToolArgs *a, const Verb *v)
{
    unsigned n = 0;

    while (n + 2 < TOOL_OPERANDS_MAX && a->operand[n + 2]) {
        n++;
    }
    if (n != v->n_operands) {
        return tool_usage(a->command, "tt disk %s takes a disk%s%s", v->name,
                          v->n_operands ? " and " : " only", v->operands);
    }
    for (const ToolOption *o = a->command->options; o->name; o++) {
        if (tool_has(a, o->name) && strcmp(o->name, "--json") != 0 &&
            !g_strv_contains((const char *const *)v->options, o->name)) {
            return tool_usage(a->command, "tt disk %s has no option %s", v->name, o->name);
        }
    }
    return TOOL_FINE;
}

int tool_disk(const ToolArgs *a)
{
    const Verb *v = find_verb(a->operand[0]);
    ToolDisk d;
    int result;

    if (!v) {
        return tool_usage(a->command, "'%s' is not a command of tt disk: use list, info, "
                                      "commit, export, serve or diff",
                          a->operand[0]);
    }
    result = check_given(a, v);
    if (result != TOOL_FINE) {
        return result;
    }
    if (!v->run) {
        return tool_disk_commit(a, a->operand[1]);
    }
    if (!tool_disk_open(a, &d)) {
        return TOOL_PROBLEM;
    }
    result = v->run(a, &d);
    tool_disk_close(&d);
    return result;
}
