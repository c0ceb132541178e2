/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Run store: see run/tt-runstore.h. A store owns its origin, which owns the parent's
 * store, which owns the next origin.
 */
#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include "log/tt-logparts.h"
#include "run/tt-runstore.h"

#define DEPTH_MAX           32          /* branches of branches; more is a ring */
#define PARENT_CACHE_BYTES  (64u << 20)

typedef struct ParentStore {
    TtManifest child;           /* what it says of its parent; path is ours */
    char *dir;                  /* of the child */
    unsigned depth;
    bool only_base;
    TtPageStore *parent;        /* NULL: not open */
    TtDiag why;                 /* status TT_OK: it has not failed */
} ParentStore;

static TtStatus open_run(const char *dir, const TtManifest *m, unsigned depth,
                         uint64_t cache_bytes, TtPageStore **out, TtDiag *diag);

/* Also of what is gone: then it is only a name. */
static char *whole_path(const char *path)
{
    char *whole = tt_io_posix_absolute(path);

    return whole ? whole : g_canonicalize_filename(path, NULL);
}

/* Where a link leads to the branch, its parent may lie beside either of the two. */
char *tt_runstore_parent_path(const TtManifest *m, const char *dir)
{
    g_autofree char *whole = whole_path(dir);
    g_autofree char *joined = g_path_is_absolute(m->parent_path) ?
        g_strdup(m->parent_path) : g_build_filename(whole, m->parent_path, NULL);
    char *path = whole_path(joined);

    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_free(path);
        path = g_canonicalize_filename(joined, NULL);
    }
    return path;
}

char *tt_runstore_frames(const TtManifest *m, const char *dir)
{
    return g_path_is_absolute(m->frames) ? g_strdup(m->frames) :
        g_build_filename(dir, m->frames, NULL);
}

char *tt_runstore_parent_dir(const TtManifest *m, const char *dir, TtDiag *diag)
{
    return tt_runstore_check_name(m->parent_path, diag) == TT_OK ?
        tt_runstore_parent_path(m, dir) : NULL;
}

TtStatus tt_runstore_check_name(const char *path, TtDiag *diag)
{
    bool is_text = g_utf8_validate(path, -1, NULL);

    return is_text && !tt_has_control(path) ? TT_OK :
        tt_fail(diag, TT_ERR_FORMAT, "the path '%s' of a run that has branches, as undo makes "
                "them, %s: rename it", path,
                is_text ? "contains control characters" : "is not UTF-8");
}

TtStatus tt_runstore_check_parent(const TtManifest *m, const TtManifest *pm,
                                  const TtPageStore *store, TtDiag *diag)
{
    TtCheckpointInfo info;

    if (memcmp(pm->uuid, m->parent_uuid, sizeof(pm->uuid))) {
        return tt_fail(diag, TT_ERR_FORMAT, "another run is in that place");
    }
    if (!tt_pagestore_info(store, m->parent_checkpoint, &info)) {
        return tt_fail(diag, TT_ERR_FORMAT, "it no longer has checkpoint %u",
                       m->parent_checkpoint);
    }
    if (info.pos != m->parent_pos) {
        return tt_fail(diag, TT_ERR_FORMAT, "its checkpoint %u is not at the "
                       "position that the manifest says", m->parent_checkpoint);
    }
    return TT_OK;
}

/* All other checkpoints go, from this reader's memory. */
static void keep_base(TtPageStore *ps, TtNodeId base)
{
    size_t n = tt_pagestore_count(ps);
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);

    n = tt_pagestore_list(ps, infos, n);
    while (n-- > 0) {
        if (infos[n].id != base) {
            tt_pagestore_delete(ps, infos[n].id);
        }
    }
}

static TtStatus open_store_in(ParentStore *l, const char *dir, TtDiag *diag)
{
    g_autofree char *path = g_build_filename(dir, "manifest", NULL);
    TtManifest pm;
    TtStatus st;

    if (l->depth >= DEPTH_MAX) {
        return tt_fail(diag, TT_ERR_FORMAT, "it is a branch of a branch, and so "
                       "on, more than %d levels deep", DEPTH_MAX);
    }
    st = tt_manifest_load(path, &pm, diag);
    if (st != TT_OK) {
        return st;
    }
    st = open_run(dir, &pm, l->depth + 1, PARENT_CACHE_BYTES, &l->parent, diag);
    if (st == TT_OK) {
        st = tt_runstore_check_parent(&l->child, &pm, l->parent, diag);
    }
    tt_manifest_cleanup(&pm);
    return st == TT_END ? TT_ERR_FORMAT : st;
}

static void close_parent(ParentStore *l)
{
    tt_pagestore_free(l->parent);
    l->parent = NULL;
}

static TtStatus open_parent(ParentStore *l)
{
    TtDiag diag = { 0 };
    g_autofree char *dir = tt_runstore_parent_dir(&l->child, l->dir, &diag);
    TtStatus st = dir ? open_store_in(l, dir, &diag) : diag.status;

    if (st != TT_OK) {
        close_parent(l);
        return tt_fail(&l->why, st, "cannot read the parent '%s' of this branch "
                       "(restore it to that place): %s",
                       dir ? dir : l->child.parent_path, diag.text);
    }
    if (l->only_base) {
        keep_base(l->parent, l->child.parent_checkpoint);
    }
    return TT_OK;
}

/* A TtPageOrigin. A page that is missing may have been moved by a recorder that is
 * still at work: then the parent is opened anew, once. */
static TtStatus origin(void *opaque, const uint64_t hash[2], void *to,
                     TtDiag *diag)
{
    ParentStore *l = opaque;
    bool was_open = l->parent;
    TtStatus st = l->why.status;

    if (st == TT_OK && !was_open) {
        st = open_parent(l);
    }
    if (st == TT_OK) {
        st = tt_pagestore_find(l->parent, hash, to, diag);
        if (st >= 0 || !was_open) {
            return st;
        }
        close_parent(l);
        st = open_parent(l);
        if (st == TT_OK) {
            return tt_pagestore_find(l->parent, hash, to, diag);
        }
    }
    if (diag) {
        *diag = l->why;
    }
    return st;
}

static void origin_free(void *opaque)
{
    ParentStore *l = opaque;

    close_parent(l);
    g_free(l->child.parent_path);
    g_free(l->dir);
    g_free(l);
}

static void set_origin(TtPageStoreOptions *opt, const TtManifest *m,
                       const char *dir, unsigned depth, bool only_base)
{
    ParentStore *l;

    if (!(m->features & TT_FEATURE_PARENT)) {
        return;
    }
    l = g_new0(ParentStore, 1);
    l->child.parent_path = g_strdup(m->parent_path);
    memcpy(l->child.parent_uuid, m->parent_uuid, sizeof(m->parent_uuid));
    l->child.parent_checkpoint = m->parent_checkpoint;
    l->child.parent_pos = m->parent_pos;
    l->dir = g_strdup(dir);
    l->depth = depth;
    l->only_base = only_base;
    opt->origin = origin;
    opt->origin_opaque = l;
    opt->origin_free = origin_free;
}

void tt_runstore_set_origin(TtPageStoreOptions *opt, const TtManifest *m,
                            const char *dir)
{
    set_origin(opt, m, dir, 0, true);
}

static TtStatus open_run(const char *dir, const TtManifest *m, unsigned depth,
                         uint64_t cache_bytes, TtPageStore **out, TtDiag *diag)
{
    g_autofree char *pages = g_build_filename(dir, "pages", NULL);
    g_autofree char *points = g_build_filename(dir, "checkpoints", NULL);
    TtPageStoreOptions opt = { .cache_bytes = cache_bytes, .read_only = true };
    bool has_points = g_file_test(points, G_FILE_TEST_EXISTS);
    bool has_pages = g_file_test(pages, G_FILE_TEST_EXISTS);
    TtStatus st;

    *out = NULL;
    if (!has_points && !has_pages) {
        return tt_fail(diag, TT_END, "it has no checkpoints");
    }
    if (!has_points || !has_pages) {
        return tt_fail(diag, TT_ERR_IO, "the stored checkpoints are lost, as '%s' is missing",
                       has_points ? pages : points);
    }
    memcpy(opt.uuid, m->uuid, sizeof(opt.uuid));
    st = tt_io_posix_open(pages, &opt.pages, diag);
    if (st != TT_OK) {
        return st;
    }
    st = tt_io_posix_open(points, &opt.checkpoints, diag);
    if (st != TT_OK) {
        tt_io_close(opt.pages);
        return st;
    }
    set_origin(&opt, m, dir, depth, false);
    return tt_pagestore_open(&opt, out, diag);
}

TtStatus tt_runstore_open(const char *dir, const TtManifest *m,
                          uint64_t cache_bytes, TtPageStore **out, TtDiag *diag)
{
    return open_run(dir, m, 0, cache_bytes, out, diag);
}

static bool began_at(const char *dir, const uint8_t uuid[16],
                     uint32_t checkpoint)
{
    g_autofree char *path = g_build_filename(dir, "manifest", NULL);
    TtManifest m = { 0 };
    bool is = g_file_test(path, G_FILE_TEST_IS_REGULAR) &&
        tt_manifest_load(path, &m, NULL) == TT_OK &&
        m.features & TT_FEATURE_PARENT && m.parent_checkpoint == checkpoint &&
        !memcmp(m.parent_uuid, uuid, sizeof(m.parent_uuid));

    tt_manifest_cleanup(&m);
    return is;
}

static bool is_run(const char *dir)
{
    g_autofree char *manifest = g_build_filename(dir, "manifest", NULL);
    g_autofree char *log = tt_logparts_path(dir, 0);
    g_autofree uint32_t *part = NULL;
    unsigned n;

    if (!g_file_test(manifest, G_FILE_TEST_IS_REGULAR)) {
        return false;
    }
    part = tt_logparts_list(dir, &n);
    return part || g_file_test(log, G_FILE_TEST_IS_REGULAR);
}

/* The nearest folder above @path that exists, without symbolic links; NULL: none can be
 * found. Freed with free(). */
static char *nearest_folder(const char *path)
{
    char *folder = g_path_get_dirname(path), *real;

    while (!(real = realpath(folder, NULL)) && errno == ENOENT &&
           strcmp(folder, ".") && strcmp(folder, "/")) {
        char *up = g_path_get_dirname(folder);

        g_free(folder);
        folder = up;
    }
    g_free(folder);
    return real;
}

char *tt_runstore_enclosing(const char *path)
{
    char *real = nearest_folder(path), *end = real, *run = NULL;

    /* From there upwards, but for the root. */
    while (end && *real && !run) {
        run = is_run(real) ? g_strdup(real) : NULL;
        end = strrchr(real, '/');
        if (end) {
            *end = 0;
        }
    }
    free(real);
    return run;
}

char *tt_runstore_branch_of(const char *dir, const uint8_t uuid[16],
                            uint32_t checkpoint)
{
    g_autofree char *whole = whole_path(dir);
    g_autofree char *folder = g_path_get_dirname(whole);
    GDir *d = g_dir_open(folder, 0, NULL);
    const char *name;
    char *found = NULL;

    while (d && !found && (name = g_dir_read_name(d))) {
        found = g_build_filename(folder, name, NULL);
        if (!began_at(found, uuid, checkpoint)) {
            g_clear_pointer(&found, g_free);
        }
    }
    if (d) {
        g_dir_close(d);
    }
    return found;
}
