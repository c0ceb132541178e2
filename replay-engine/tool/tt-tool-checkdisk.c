/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt check: are the disks of a run whole, and does each have the versions that the full
 * checkpoints name, and the one of its parent's disk that a branch stands on? A replay
 * needs none of them, unless the log names what was read; a branch does.
 */
#include "tt-tool-disk.h"

#include <inttypes.h>
#include <string.h>

#define TRIES 3                     /* its journal is made anew just while it is read */

typedef struct Disks {
    const char *run;
    GPtrArray *problems;
    GHashTable *maps;               /* path -> TtBlockMap; NULL: it cannot be used */
} Disks;

static TtStatus load(const char *path, TtBlockMap **map, TtDiag *diag)
{
    TtStatus s;
    TtIo *io;

    for (unsigned i = 0; i < (tool_is_growing() ? TRIES : 1); i++) {
        s = tt_io_posix_open(path, &io, diag);
        if (s == TT_OK) {
            s = tt_blockmap_open(io, map, diag);
            tt_io_close(io);
        }
        if (s == TT_OK && !tt_blockmap_damage(*map)) {
            break;
        }
        if (s == TT_OK && i + 1 < TRIES && tool_is_growing()) {
            tt_blockmap_free(g_steal_pointer(map));
        }
    }
    return s;
}

/* What is wrong with it is said once. NULL: it cannot be used. */
static TtBlockMap *map_of(Disks *d, const char *path)
{
    TtBlockMap *map = NULL;
    TtBlockCheck check;
    gpointer known;
    TtDiag diag;

    if (g_hash_table_lookup_extended(d->maps, path, NULL, &known)) {
        return known;
    }
    if (load(path, &map, &diag) != TT_OK) {
        tool_add(d->problems, "disk '%s': %s", path, diag.text);
    } else if (tt_blockmap_damage(map)) {
        tool_add(d->problems, "disk '%s': %s", path, tt_blockmap_damage(map));
    } else if (tt_blockmap_check(map, &check, &diag) != TT_OK || check.errors) {
        tool_add(d->problems, "disk '%s': %s", path,
                 check.errors ? check.text : diag.text);
    }
    g_hash_table_insert(d->maps, g_strdup(path), map);
    return map;
}

/* ---- what its branch stands on ---- */

static void check_base(Disks *d, const char *path, const TtBlockMap *map)
{
    g_autofree char *whole = g_canonicalize_filename(path, NULL);
    g_autofree char *folder = g_path_get_dirname(whole);
    TtDiskInfo disk;
    TtVersionInfo v;
    TtBlockMap *base;

    tt_blockmap_info(map, &disk);
    if (tt_disk_is_replaced(path, disk.backing)) {
        tool_add(d->problems, "disk '%s' is on another image than it was (%s): put it back "
                 "with qemu-img rebase -u", path, disk.backing ? disk.backing : "none");
    }
    if (disk.backing && disk.backing_format &&
        strncmp(disk.backing_format, "tt@", 3) == 0) {
        g_autofree char *name = g_canonicalize_filename(disk.backing, folder);
        uint64_t id = 0;

        base = map_of(d, name);
        if (base && tool_parse_number(disk.backing_format + 3, &id) &&
            !tt_blockmap_version_info(base, MIN(id, UINT32_MAX), &v)) {
            tool_add(d->problems, "disk '%s' is based on version %" PRIu64 " of '%s', "
                                  "which is missing: what the branch did not write "
                                  "itself is lost", path,
                     id, name);
        }
    }
}

/* The log names what was read from these. */
static void check_named(Disks *d, const TtManifest *m)
{
    for (unsigned i = 0; i < m->n_disks && m->features & TT_FEATURE_DISKS; i++) {
        g_autofree char *path = g_build_filename(d->run, m->disks[i], NULL);

        if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
            tool_add(d->problems, "disk '%s' is missing, and the log names what was read "
                     "from it: tt info says which positions a replay reaches", path);
            g_hash_table_insert(d->maps, g_steal_pointer(&path), NULL);
        }
    }
}

/* Of those that the run has made. */
static void check_made(Disks *d, const char *folder)
{
    TtBases bases;
    TtDiag diag;

    if (tt_bases_load(folder, &bases, &diag) != TT_OK) {
        tool_add(d->problems, "%s: whether an image below a disk has changed cannot be told",
                 diag.text);
        return;
    }
    for (unsigned i = 0; i < bases.n; i++) {
        g_autofree char *file = g_strconcat(bases.base[i]->name, ".tt", NULL);
        g_autofree char *path = g_build_filename(folder, file, NULL);

        if (!g_file_test(path, G_FILE_TEST_EXISTS) &&
            !g_hash_table_contains(d->maps, path)) {
            tool_add(d->problems, "disk '%s' is missing, with all that the guest wrote to it",
                     path);
            g_hash_table_insert(d->maps, g_steal_pointer(&path), NULL);
        }
    }
    tt_bases_cleanup(&bases);
}

static void check_files(Disks *d)
{
    g_autofree char *folder = g_build_filename(d->run, "disks", NULL);
    GDir *dir = g_dir_open(folder, 0, NULL);
    const char *name;

    check_made(d, folder);
    while (dir && (name = g_dir_read_name(dir))) {
        if (g_str_has_suffix(name, ".tt")) {
            g_autofree char *path = g_build_filename(folder, name, NULL);
            TtBlockMap *map = map_of(d, path);

            if (map) {
                check_base(d, path, map);
            }
        }
    }
    if (dir) {
        g_dir_close(dir);
    }
}

/* ---- what the checkpoints have pinned ---- */

static char *path_of(const Disks *d, const TtFullDisk *k)
{
    return g_path_is_absolute(k->image) ? g_strdup(k->image) :
        g_build_filename(d->run, k->image, NULL);
}

static void check_pin(Disks *d, const TtCheckpointInfo *info, const TtFullDisk *k)
{
    g_autofree char *path = path_of(d, k);
    TtBlockMap *map = map_of(d, path);
    TtVersionInfo v;

    /* One that went meanwhile had lost its checkpoint before. */
    if (map && !tool_is_growing() && !tt_blockmap_version_info(map, k->version, &v)) {
        tool_add(d->problems, "checkpoint %u, position %" PRIu64 ": version %" PRIu32 " "
                              "of disk '%s' is missing, so no branch can start "
                              "there", info->id,
                 info->pos, k->version, path);
    }
}

/* Is what a full checkpoint needs of disk @k there? */
static bool is_there(Disks *d, const TtFullDisk *k)
{
    g_autofree char *path = path_of(d, k);
    TtBlockMap *map = map_of(d, path);
    TtVersionInfo v;

    return map && (tool_is_growing() ||
                   (tt_blockmap_version_info(map, k->version, &v) && !v.lost));
}

static void check_checkpoint(Disks *d, TtPageStore *store, const TtCheckpointInfo *info)
{
    g_autofree void *blob = NULL;
    TtFullDesc desc;

    if (!tool_full_desc(store, info->id, &blob, &desc)) {
        return;                     /* said elsewhere */
    }
    for (unsigned i = 0; i < desc.n_disks; i++) {
        if (desc.disks[i].version) {
            check_pin(d, info, &desc.disks[i]);
        }
    }
    tt_fulldesc_cleanup(&desc);
}

static void check_pins(Disks *d, const TtManifest *m)
{
    g_autofree TtCheckpointInfo *infos = NULL;
    TtPageStore *store;
    TtDiag unused;
    size_t n;

    if (tt_runstore_open(d->run, m, 0, &store, &unused) != TT_OK) {
        return;
    }
    n = tt_pagestore_count(store);
    infos = g_new0(TtCheckpointInfo, n + 1);
    n = tt_pagestore_list(store, infos, n);
    for (size_t i = 0; i < n; i++) {
        if (infos[i].flags & TT_CHECKPOINT_FULL) {
            check_checkpoint(d, store, &infos[i]);
        }
    }
    tt_pagestore_free(store);
}

static void free_map(gpointer map)
{
    tt_blockmap_free(map);
}

static GHashTable *new_maps(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_map);
}

bool tool_full_has_disks(const char *run, TtPageStore *store, TtNodeId id,
                         GHashTable **maps)
{
    g_autoptr(GPtrArray) unsaid = g_ptr_array_new_with_free_func(g_free);
    Disks d = { .run = run, .problems = unsaid, .maps = *maps ? *maps : new_maps() };
    g_autofree void *blob = NULL;
    bool ok = true;
    TtFullDesc desc;

    *maps = d.maps;
    if (tool_full_desc(store, id, &blob, &desc)) {
        for (unsigned i = 0; i < desc.n_disks; i++) {
            ok &= !desc.disks[i].version || is_there(&d, &desc.disks[i]);
        }
        tt_fulldesc_cleanup(&desc);
    }
    return ok;
}

void tool_check_disks(const char *run, const TtManifest *m, GPtrArray *problems)
{
    Disks d = { .run = run, .problems = problems, .maps = new_maps() };

    check_named(&d, m);
    check_files(&d);
    check_pins(&d, m);
    g_hash_table_destroy(d.maps);
}
