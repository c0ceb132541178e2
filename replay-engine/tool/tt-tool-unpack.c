/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt unpack: the run that is in a file of tt pack's, as a directory again. A run
 * appears whole or not at all:
 *
 *   DIR.unpacking/manifest.unpacking    first, empty: this is half of a run
 *   DIR.unpacking/...                   the members; the manifest under that name
 *   DIR.unpacking/manifest              all is there, and on disk
 *   DIR
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE             /* renameat2 */
#endif
#include "tt-tool.h"
#include "run/tt-pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define HALF "manifest" TT_MANIFEST_UNPACKING

/* A file of its own; the manifest is there already, empty. */
static TtStatus open_member(const char *dir, const char *name, TtIo **io,
                            TtDiag *diag)
{
    bool is_manifest = !strcmp(name, "manifest");
    g_autofree char *path = g_build_filename(dir, is_manifest ? HALF : name, NULL);
    g_autofree char *folder = g_path_get_dirname(path);

    if (is_manifest) {
        return tt_io_posix_open_append(path, io, diag);
    }
    if (g_mkdir_with_parents(folder, 0700)) {
        return tt_fail(diag, TT_ERR_IO, "cannot create '%s': %s", folder,
                       g_strerror(errno));
    }
    return tt_io_posix_create(path, io, diag);
}

static TtStatus unpack_member(TtPackReader *r, const TtPackMember *m,
                              const char *dir, TtDiag *diag)
{
    TtIo *io;
    TtStatus st = open_member(dir, m->name, &io, diag);

    if (st == TT_OK) {
        st = tt_pack_copy(r, m, io, diag);
        if (st == TT_OK) {
            st = io->ops->sync(io, diag);
        }
        tt_io_close(io);
    }
    return st;
}

/* Of what was made, deepest first; the names are those of the pack. */
static void remove_again(const char *dir, GPtrArray *names)
{
    g_autofree char *half = g_build_filename(dir, HALF, NULL);
    g_autofree char *deep = g_strdup(dir);

    unlink(half);
    for (unsigned i = 0; i < names->len; i++) {
        g_autofree char *path = g_build_filename(dir, names->pdata[i], NULL);
        g_autofree char *folder = g_path_get_dirname(path);

        unlink(path);
        if (strlen(folder) > strlen(deep)) {
            g_free(deep);
            deep = g_strdup(folder);
        }
    }
    while (strlen(deep) >= strlen(dir)) {
        char *up = g_path_get_dirname(deep);

        rmdir(deep);
        g_free(deep);
        deep = up;
    }
}

static TtStatus rename_manifest(const char *half, TtDiag *diag)
{
    g_autofree char *from = g_build_filename(half, HALF, NULL);
    g_autofree char *to = g_build_filename(half, "manifest", NULL);
    struct stat st;

    if (stat(from, &st) == 0 && !st.st_size) {
        return tt_fail(diag, TT_ERR_FORMAT, "the pack has no manifest: get another "
                       "copy of it");
    }
    if (rename(from, to)) {
        return tt_fail(diag, TT_ERR_IO, "cannot rename '%s': %s", from,
                       g_strerror(errno));
    }
    tt_io_posix_sync_directory_of(to);
    return TT_OK;
}

/* It gets its name. Somebody may have made another of that name meanwhile. */
static TtStatus give_name(const char *half, const char *dir, TtDiag *diag)
{
    struct stat there;
    TtStatus st = rename_manifest(half, diag);

    if (st != TT_OK) {
        return st;
    }
    if (renameat2(AT_FDCWD, half, AT_FDCWD, dir, RENAME_NOREPLACE) == 0 ||
        (errno == EINVAL && lstat(dir, &there) && rename(half, dir) == 0)) {
        tt_io_posix_sync_directory_of(dir);
        return TT_OK;
    }
    return tt_fail(diag, TT_ERR_IO, "cannot rename '%s' to '%s': %s", half, dir,
                   g_strerror(errno));
}

static TtStatus mark_half(const char *half, TtDiag *diag)
{
    g_autofree char *path = g_build_filename(half, HALF, NULL);
    TtIo *io;
    TtStatus st = tt_io_posix_create(path, &io, diag);

    tt_io_close(io);
    return st;
}

/* Into @half, which is removed again when that fails, and becomes @dir. */
static TtStatus unpack_all(TtPackReader *r, const char *half, const char *dir,
                           TtDiag *diag)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    TtStatus st = mark_half(half, diag);
    TtPackMember m;

    while (st == TT_OK && (st = tt_pack_next(r, &m, diag)) == TT_OK) {
        g_ptr_array_add(names, g_strdup(m.name));
        st = unpack_member(r, &m, half, diag);
    }
    if (st == TT_END) {
        st = give_name(half, dir, diag);
    }
    if (st != TT_OK) {
        remove_again(half, names);
    }
    return st;
}

/* What was killed half-way must not look like a run. */
static TtStatus unpack(TtPackReader *r, const char *dir, TtDiag *diag)
{
    g_autofree char *folder = g_path_get_dirname(dir);
    g_autofree char *name = g_path_get_basename(dir);
    g_autofree char *half = g_strdup_printf("%s/%.240s.unpacking",
                                            folder[1] ? folder : "", name);
    struct stat there;

    if (lstat(dir, &there) == 0) {
        return tt_fail(diag, TT_ERR_IO, "'%s' already exists", dir);
    }
    if (errno != ENOENT) {              /* as the rename would find at the very end */
        return tt_fail(diag, TT_ERR_IO, "%s: cannot create '%s'", g_strerror(errno), dir);
    }
    if (g_mkdir(half, 0700)) {
        return tt_fail(diag, TT_ERR_IO, "cannot create '%s': %s%s", half,
                       g_strerror(errno), errno != EEXIST ? "" : "; another tt "
                       "unpack is working there, or was killed: in that case "
                       "delete it");
    }
    return unpack_all(r, half, dir, diag);
}

int tool_unpack(const ToolArgs *a)
{
    const char *file = a->operand[0];
    g_autofree char *dir = tool_whole_path(a->operand[1]);
    TtPackReader *r = NULL;
    TtDiag diag;
    TtIo *io;
    TtStatus st;

    if (!dir || !tool_is_fit(dir)) {
        return TOOL_PROBLEM;
    }
    if (tt_io_posix_open(file, &io, &diag) != TT_OK) {
        return tool_problem(&diag);             /* which names it */
    }
    st = tt_pack_open(io, &r, &diag);
    if (st == TT_OK) {
        st = unpack(r, dir, &diag);
    }
    tt_pack_reader_free(r);
    if (st != TT_OK) {
        return tool_complain("'%s': %s", file, diag.text);
    }
    if (tool_has(a, "--json")) {
        tool_json_begin();
        printf("\"run\": ");
        tool_json_string(dir);
        printf("}\n");
    } else {
        tt_replace_controls(dir, '?');
        printf("%s\n", dir);
    }
    return TOOL_FINE;
}
