/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RUN/disks/bases, a GKeyFile text: docs/reference/run-disks.rst. Strings have C's
 * escapes, since a path need not be UTF-8.
 */
#include "run/tt-bases.h"
#include "io/tt-io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <glib.h>
#include <glib/gstdio.h>

static const char *const states[] = { "fresh", "begun", "partial", "done" };

/* ---- reading ---- */

typedef struct Parser {
    GKeyFile *kf;
    const char *path;
    TtDiag *diag;
    TtStatus status;            /* the first failure; nothing is read after */
} Parser;

static void wrong(Parser *p, const char *group, const char *key)
{
    if (p->status == TT_OK) {
        p->status = tt_fail(p->diag, TT_ERR_FORMAT, "'%s' is damaged: '%.40s' in [%s] is "
                            "missing or wrong", p->path, key, group);
    }
}

/* Never NULL. */
static char *get_text(Parser *p, const char *group, const char *key)
{
    g_autofree char *v = p->status == TT_OK ?
        g_key_file_get_value(p->kf, group, key, NULL) : NULL;

    if (!v) {
        wrong(p, group, key);
    }
    return v ? g_strcompress(v) : g_strdup("");
}

static uint64_t get_number(Parser *p, const char *group, const char *key, uint64_t max)
{
    g_autofree char *text = get_text(p, group, key);
    char *end = text;
    uint64_t v;

    errno = 0;
    v = g_ascii_isdigit(*text) ? g_ascii_strtoull(text, &end, 10) : 0;
    if (end == text || *end || errno || v > max) {
        wrong(p, group, key);
        return 0;
    }
    return v;
}

static void get_file(Parser *p, const char *group, const char *name, TtBaseFile *f)
{
    char key[40];

    snprintf(key, sizeof(key), "%s-size", name);
    f->size_bytes = get_number(p, group, key, INT64_MAX);
    snprintf(key, sizeof(key), "%s-mtime", name);
    f->mtime_ns = get_number(p, group, key, UINT64_MAX);
}

static TtBaseState get_state(Parser *p, const char *group)
{
    g_autofree char *text = get_text(p, group, "state");

    for (unsigned i = 0; i < G_N_ELEMENTS(states); i++) {
        if (strcmp(text, states[i]) == 0) {
            return i;
        }
    }
    wrong(p, group, "state");
    return TT_BASE_FRESH;
}

static void parse_disk(Parser *p, const char *group, TtBases *b)
{
    g_autofree char *name = get_text(p, group, "name");
    g_autofree char *image = get_text(p, group, "image");
    unsigned n = get_number(p, group, "files", TT_BASE_FILES_MAX);
    TtBase *k;

    if (!*name || strchr(name, '/')) {
        wrong(p, group, "name");
        return;
    }
    k = tt_bases_add(b, name, image, get_number(p, group, "version", UINT32_MAX));
    k->state = get_state(p, group);
    if (k->state == TT_BASE_DONE) {
        get_file(p, group, "disk", &k->disk);
    }
    k->files = g_new0(TtBaseFile, n + 1);
    for (; k->n_files < n && p->status == TT_OK; k->n_files++) {
        TtBaseFile *f = &k->files[k->n_files];
        char key[40], sum[48];

        snprintf(key, sizeof(key), "file-%u", k->n_files);
        f->path = get_text(p, group, key);
        get_file(p, group, key, f);
        snprintf(sum, sizeof(sum), "%s-sum", key);
        f->sum = get_number(p, group, sum, UINT64_MAX);
    }
}

static TtStatus parse(const char *path, const char *text, size_t len, TtBases *b,
                      TtDiag *diag)
{
    g_autoptr(GKeyFile) kf = g_key_file_new();
    Parser p = { .kf = kf, .path = path, .diag = diag };
    unsigned n;

    if (len > TT_BASES_BYTES_MAX ||
        !g_key_file_load_from_data(kf, text, len, G_KEY_FILE_NONE, NULL)) {
        return tt_fail(diag, TT_ERR_FORMAT, "'%s' is damaged: it is not a key file", path);
    }
    n = get_number(&p, "bases", "disks", TT_BASES_DISKS_MAX);
    for (unsigned i = 0; i < n && p.status == TT_OK; i++) {
        char group[24];

        snprintf(group, sizeof(group), "disk-%u", i);
        parse_disk(&p, group, b);
    }
    return p.status;
}

TtStatus tt_bases_load(const char *disks, TtBases *b, TtDiag *diag)
{
    g_autofree char *path = g_build_filename(disks, TT_BASES_NAME, NULL);
    g_autofree char *text = NULL;
    TtDiag own = { 0 };
    uint64_t size = 0;
    size_t got = 0;
    TtIo *io;
    TtStatus status = tt_io_posix_open(path, &io, &own);

    *b = (TtBases) { 0 };
    if (status == TT_ERR_IO && (own.os_errno == ENOENT || own.os_errno == ENOTDIR)) {
        return TT_OK;
    }
    if (status == TT_OK) {
        b->is_there = true;
        status = io->ops->size(io, &size, &own);
        size = MIN(size, TT_BASES_BYTES_MAX + 1);
        text = g_malloc(size + 1);
        if (status == TT_OK) {
            status = io->ops->read_at(io, 0, text, size, &got, &own);
        }
        tt_io_close(io);
    }
    if (status == TT_OK) {
        status = parse(path, text, got, b, &own);
    }
    if (status != TT_OK) {
        tt_bases_cleanup(b);
    }
    if (diag) {
        *diag = own;
    }
    return status;
}

/* ---- writing ---- */

static void set_text(GKeyFile *kf, const char *group, const char *key, const char *text)
{
    g_autofree char *escaped = g_strescape(text, NULL);

    g_key_file_set_value(kf, group, key, escaped);
}

static void set_number(GKeyFile *kf, const char *group, const char *key, uint64_t v)
{
    g_autofree char *text = g_strdup_printf("%" PRIu64, v);

    g_key_file_set_value(kf, group, key, text);
}

static void set_file(GKeyFile *kf, const char *group, const char *name, const TtBaseFile *f)
{
    char key[40];

    snprintf(key, sizeof(key), "%s-size", name);
    set_number(kf, group, key, f->size_bytes);
    snprintf(key, sizeof(key), "%s-mtime", name);
    set_number(kf, group, key, f->mtime_ns);
}

static void set_disk(GKeyFile *kf, unsigned i, const TtBase *k)
{
    char group[24], key[40], sum[48];

    snprintf(group, sizeof(group), "disk-%u", i);
    set_text(kf, group, "name", k->name);
    set_text(kf, group, "image", k->image);
    set_number(kf, group, "version", k->version);
    set_text(kf, group, "state", states[k->state]);
    if (k->state == TT_BASE_DONE) {
        set_file(kf, group, "disk", &k->disk);
    }
    set_number(kf, group, "files", k->n_files);
    for (unsigned f = 0; f < k->n_files; f++) {
        snprintf(key, sizeof(key), "file-%u", f);
        set_text(kf, group, key, k->files[f].path);
        set_file(kf, group, key, &k->files[f]);
        snprintf(sum, sizeof(sum), "%s-sum", key);
        set_number(kf, group, sum, k->files[f].sum);
    }
}

static TtStatus write_file(const char *path, const char *text, size_t len, TtDiag *diag)
{
    TtIo *io;
    TtStatus status;

    g_unlink(path);             /* left by one that was killed */
    status = tt_io_posix_create(path, &io, diag);
    if (status == TT_OK) {
        status = io->ops->append(io, text, len, diag);
        status = status == TT_OK ? io->ops->sync(io, diag) : status;
        tt_io_close(io);
    }
    return status;
}

TtStatus tt_bases_save(const char *disks, const TtBases *b, TtDiag *diag)
{
    g_autofree char *path = g_build_filename(disks, TT_BASES_NAME, NULL);
    g_autofree char *fresh = g_strconcat(path, ".tmp", NULL), *text = NULL;
    g_autoptr(GKeyFile) kf = g_key_file_new();
    TtStatus status;
    size_t len;

    if (!b->n) {
        g_unlink(path);
        return TT_OK;
    }
    set_number(kf, "bases", "disks", b->n);
    for (unsigned i = 0; i < b->n; i++) {
        set_disk(kf, i, b->base[i]);
    }
    text = g_key_file_to_data(kf, &len, NULL);
    status = write_file(fresh, text, len, diag);
    if (status == TT_OK && g_rename(fresh, path) < 0) {
        status = tt_fail(diag, TT_ERR_IO, "cannot rename '%s' to '%s': %s", fresh, path,
                         g_strerror(errno));
    }
    if (status != TT_OK) {
        g_unlink(fresh);
        return status;
    }
    tt_io_posix_sync_directory_of(path);
    return TT_OK;
}
