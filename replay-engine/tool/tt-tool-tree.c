/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a run stands in the tree of branches: its parents upwards, the runs
 * that began in it (looked for beside it and beside its parents), and the full
 * checkpoints from which more can start.
 */
#include "tt-tool-disk.h"
#include "run/tt-cpstate.h"
#include "run/tt-fullstate.h"

#include <inttypes.h>
#include <stdio.h>

#define DEPTH_MAX 1000          /* of a chain of parents: a ring ends */

typedef struct Relative {       /* a parent, a branch or a full checkpoint */
    char *path;
    uint32_t checkpoint;
    uint64_t pos;
    bool is_there;              /* and is that run; it has its disks */
} Relative;

static void relative_clear(void *r)
{
    g_free(((Relative *)r)->path);
}

static bool load(const char *dir, TtManifest *m)
{
    g_autofree char *path = g_build_filename(dir, "manifest", NULL);

    return g_file_test(path, G_FILE_TEST_IS_REGULAR) &&
        tt_manifest_load(path, m, NULL) == TT_OK;
}

/* ---- parents ---- */

/* From the nearest on. */
static GArray *find_parents(const char *run, const TtManifest *self)
{
    GArray *all = g_array_new(false, true, sizeof(Relative));
    g_autofree char *dir = g_strdup(run);
    TtManifest owned = { 0 };
    const TtManifest *m = self;
    bool is_there = true;

    g_array_set_clear_func(all, relative_clear);
    while (is_there && m->features & TT_FEATURE_PARENT &&
           all->len < DEPTH_MAX) {
        TtManifest next = { 0 };
        Relative r = {
            .path = tt_runstore_parent_path(m, dir),
            .checkpoint = m->parent_checkpoint, .pos = m->parent_pos,
        };

        is_there = r.is_there = load(r.path, &next) &&
            !memcmp(next.uuid, m->parent_uuid, sizeof(next.uuid));
        g_array_append_val(all, r);
        g_free(dir);
        dir = g_strdup(r.path);
        tt_manifest_cleanup(&owned);
        owned = next;
        m = &owned;
    }
    tt_manifest_cleanup(&owned);
    return all;
}

/* ---- branches ---- */

static int by_place(const void *a, const void *b)
{
    const Relative *x = a, *y = b;

    return x->pos != y->pos ? (x->pos < y->pos ? -1 : 1) :
        strcmp(x->path, y->path);
}

/* Adds the runs beside @path that began in the run @uuid. */
static void look_beside(const char *path, const uint8_t uuid[16],
                        GHashTable *seen, GArray *out)
{
    g_autofree char *folder = g_path_get_dirname(path);
    GDir *dir;
    const char *name;

    if (!g_hash_table_add(seen, g_strdup(folder))) {
        return;
    }
    dir = g_dir_open(folder, 0, NULL);
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *child = g_build_filename(folder, name, NULL);
        TtManifest m = { 0 };

        if (load(child, &m) && (m.features & TT_FEATURE_PARENT) &&
            !memcmp(m.parent_uuid, uuid, sizeof(m.parent_uuid))) {
            Relative r = {
                .path = g_strdup(child), .checkpoint = m.parent_checkpoint,
                .pos = m.parent_pos, .is_there = true,
            };

            g_array_append_val(out, r);
        }
        tt_manifest_cleanup(&m);
    }
    if (dir) {
        g_dir_close(dir);
    }
}

/* Of a run that can be opened, whatever became of the current directory. */
static char *whole_path(const char *run)
{
    char *path = tt_io_posix_absolute(run);

    return path ? path : g_strdup(run);
}

static GArray *find_branches(const char *run, const TtManifest *self,
                             GArray *parents)
{
    GArray *all = g_array_new(false, true, sizeof(Relative));
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal,
                                                       g_free, NULL);
    g_autofree char *path = whole_path(run);

    g_array_set_clear_func(all, relative_clear);
    look_beside(path, self->uuid, seen, all);
    for (unsigned i = 0; i < parents->len; i++) {
        look_beside(g_array_index(parents, Relative, i).path, self->uuid, seen,
                    all);
    }
    g_array_sort(all, by_place);
    return all;
}

/* ---- full checkpoints ---- */

static char *full_name(TtPageStore *store, uint32_t id)
{
    g_autofree void *blob = NULL;
    char *name = NULL;
    TtFullDesc d;
    TtCpState s;
    size_t len;

    if (tt_pagestore_blob(store, id, &blob, &len, NULL) == TT_OK &&
        tt_cpstate_decode((TtBytes) { blob, len }, &s, NULL) == TT_OK &&
        tt_fulldesc_find(s.full, &d, NULL) == TT_OK) {
        name = g_strdup(d.name);
        tt_fulldesc_cleanup(&d);
    }
    return name ? name : g_strdup("");
}

/* Of Relative: path is the name. */
static GArray *find_full(const char *run, const TtManifest *m)
{
    GArray *all = g_array_new(false, true, sizeof(Relative));
    TtPageStore *store = NULL;
    TtStatus st = tt_runstore_open(run, m, 0, &store, NULL);
    size_t n = st == TT_OK ? tt_pagestore_count(store) : 0;
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);
    g_autoptr(GHashTable) maps = NULL;

    g_array_set_clear_func(all, relative_clear);
    n = n ? tt_pagestore_list(store, infos, n) : 0;
    for (size_t i = 0; i < n; i++) {
        if (infos[i].flags & TT_CHECKPOINT_FULL) {
            Relative r = {
                .path = full_name(store, infos[i].id),
                .checkpoint = infos[i].id, .pos = infos[i].pos,
                .is_there = tool_full_has_disks(run, store, infos[i].id, &maps),
            };

            g_array_append_val(all, r);
        }
    }
    tt_pagestore_free(store);
    return all;
}

/* ---- output ---- */

static void print_list(const char *head, GArray *list, const char *how)
{
    for (unsigned i = 0; i < list->len; i++) {
        Relative *r = &g_array_index(list, Relative, i);
        g_autofree char *pos = tool_number(r->pos);
        g_autofree char *harmless = g_strdup(r->path);

        tt_replace_controls(harmless, '?');
        printf("%-11s %s, %scheckpoint %u, position %s", i ? "" : head,
               harmless, how, r->checkpoint, pos);
        printf("%s\n", r->is_there ? "" : " (not found there)");
    }
}

static void print_full(GArray *list)
{
    for (unsigned i = 0; i < list->len; i++) {
        Relative *r = &g_array_index(list, Relative, i);
        g_autofree char *pos = tool_number(r->pos);
        g_autofree char *harmless = g_strdup(r->path);

        tt_replace_controls(harmless, '?');
        printf("%-11s checkpoint %u, position %s%s%s%s\n",
               i ? "" : "Full:", r->checkpoint, pos, *harmless ? ", @" : "", harmless,
               r->is_there ? "" : " (no branch can start there: a version of a disk is "
               "missing, see tt check)");
    }
}

void tool_print_tree(const char *run, const TtManifest *m)
{
    g_autoptr(GArray) parents = find_parents(run, m);
    g_autoptr(GArray) branches = find_branches(run, m, parents);
    g_autoptr(GArray) full = find_full(run, m);

    print_list("Branch of:", parents, "");
    print_list("Branches:", branches, "from ");
    print_full(full);
}

/* @found: what says whether it is there; NULL: nothing. */
static void json_list(const char *name, GArray *list, const char *key,
                      const char *found)
{
    printf(", \"%s\": [", name);
    for (unsigned i = 0; i < list->len; i++) {
        Relative *r = &g_array_index(list, Relative, i);

        printf("%s{\"%s\": ", i ? ", " : "", key);
        tool_json_string(r->path);
        printf(", \"checkpoint\": %u, \"position\": %" PRIu64, r->checkpoint,
               r->pos);
        if (found) {
            printf(", \"%s\": %s", found, tool_json_bool(r->is_there));
        }
        printf("}");
    }
    printf("]");
}

void tool_json_tree(const char *run, const TtManifest *m)
{
    g_autoptr(GArray) parents = find_parents(run, m);
    g_autoptr(GArray) branches = find_branches(run, m, parents);
    g_autoptr(GArray) full = find_full(run, m);

    json_list("parents", parents, "path", "found");
    json_list("branches", branches, "path", NULL);
    json_list("full", full, "name", "has-disks");
}

static void tell(GArray *list, const char *kind, ToolBranchFound *found, void *opaque)
{
    for (unsigned i = 0; i < list->len; i++) {
        const Relative *r = &g_array_index(list, Relative, i);

        found(opaque, kind, r->path, r->checkpoint, r->pos);
    }
}

void tool_each_branch(const char *run, const TtManifest *m, ToolBranchFound *found,
                      void *opaque)
{
    g_autoptr(GArray) parents = find_parents(run, m);
    g_autoptr(GArray) branches = find_branches(run, m, parents);

    tell(parents, "parent", found, opaque);
    tell(branches, "branch", found, opaque);
}
