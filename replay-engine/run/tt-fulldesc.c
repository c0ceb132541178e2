/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The description in a full checkpoint, a GKeyFile text: which machine this
 * was, and which image each of its disks had
 * (docs/reference/checkpoint-state.rst).
 */
#include "run/tt-fullstate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <glib.h>

typedef struct Parser {
    GKeyFile *kf;
    TtDiag *diag;
    TtStatus status;            /* the first failure; nothing is read after */
} Parser;

static void wrong(Parser *p, const char *group, const char *key)
{
    if (p->status == TT_OK) {
        p->status = tt_fail(p->diag, TT_ERR_FORMAT, "the description in the "
                            "full checkpoint is damaged: '%.40s' in [%s] is "
                            "missing or wrong; use another full checkpoint", key, group);
    }
}

/* Never NULL. */
static char *get_text(Parser *p, const char *group, const char *key)
{
    g_autoptr(GError) err = NULL;
    char *v = NULL;

    if (p->status == TT_OK) {
        v = g_key_file_get_string(p->kf, group, key, &err);
        if (!v || err) {
            g_clear_pointer(&v, g_free);
            wrong(p, group, key);
        }
    }
    return v ? v : g_strdup("");
}

static uint64_t get_number(Parser *p, const char *group, const char *key,
                           uint64_t max)
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

static void parse_file(Parser *p, const char *group, unsigned i, TtFullFile *f)
{
    char key[32];

    snprintf(key, sizeof(key), "file-%u", i);
    f->path = get_text(p, group, key);
    snprintf(key, sizeof(key), "file-%u-size", i);
    f->size_bytes = get_number(p, group, key, INT64_MAX);
    snprintf(key, sizeof(key), "file-%u-mtime", i);
    f->mtime_ns = get_number(p, group, key, UINT64_MAX);
}

static void parse_disk(Parser *p, unsigned i, TtFullDisk *d)
{
    char group[24];

    snprintf(group, sizeof(group), "disk-%u", i);
    d->device = get_text(p, group, "device");
    d->drive = -1;
    if (p->status == TT_OK && g_key_file_has_key(p->kf, group, "drive", NULL)) {
        d->drive = get_number(p, group, "drive", INT32_MAX);
    }
    d->node = get_text(p, group, "node");
    d->is_writable = get_number(p, group, "writable", 1);
    d->image = get_text(p, group, "image");
    d->format = get_text(p, group, "format");
    if (p->status == TT_OK && g_key_file_has_key(p->kf, group, "version", NULL)) {
        d->version = get_number(p, group, "version", UINT32_MAX);
    }
    d->size_bytes = get_number(p, group, "size", INT64_MAX);
    d->n_files = get_number(p, group, "files", TT_FULL_FILES_MAX);
    d->files = g_new0(TtFullFile, d->n_files + 1);
    for (unsigned k = 0; k < d->n_files && p->status == TT_OK; k++) {
        parse_file(p, group, k, &d->files[k]);
    }
}

TtStatus tt_fulldesc_parse(const char *text, size_t len, TtFullDesc *d,
                           TtDiag *diag)
{
    g_autoptr(GKeyFile) kf = g_key_file_new();
    Parser p = { .kf = kf, .diag = diag };

    memset(d, 0, sizeof(*d));
    if (!len || len > TT_FULL_TEXT_MAX || !g_utf8_validate(text, len, NULL) ||
        !g_key_file_load_from_data(kf, text, len, G_KEY_FILE_NONE, NULL)) {
        return tt_fail(diag, TT_ERR_FORMAT, "the description in the full "
                       "checkpoint is damaged: it is not a key file; use another "
                       "full checkpoint");
    }
    d->name = get_text(&p, "full", "name");
    d->machine = get_text(&p, "full", "machine");
    d->cpu = get_text(&p, "full", "cpu");
    d->ram_bytes = get_number(&p, "full", "ram", UINT64_MAX);
    d->n_disks = get_number(&p, "full", "disks", TT_FULL_DISKS_MAX);
    d->disks = g_new0(TtFullDisk, d->n_disks + 1);
    for (unsigned i = 0; i < d->n_disks && p.status == TT_OK; i++) {
        parse_disk(&p, i, &d->disks[i]);
    }
    if (p.status != TT_OK) {
        tt_fulldesc_cleanup(d);
    }
    return p.status;
}

TtStatus tt_fulldesc_find(TtBytes full, TtFullDesc *d, TtDiag *diag)
{
    TtFullPart part;
    unsigned n = 0;
    TtStatus s;

    memset(d, 0, sizeof(*d));
    while ((s = tt_full_next(&full, &n, &part, diag)) == TT_OK) {
        g_autofree char *text = NULL;

        if (part.kind != TT_FULL_TEXT) {
            continue;
        }
        if (part.raw_bytes > TT_FULL_TEXT_MAX) {
            break;
        }
        text = g_malloc(part.raw_bytes + 1);
        s = tt_full_unpack(&part, text, diag);
        return s == TT_OK ? tt_fulldesc_parse(text, part.raw_bytes, d, diag)
                          : s;
    }
    return s < 0 ? s : tt_fail(diag, TT_ERR_FORMAT, "the full checkpoint has "
                               "no description: it is damaged; use another one");
}

void tt_fulldesc_cleanup(TtFullDesc *d)
{
    for (unsigned i = 0; d->disks && i < d->n_disks; i++) {
        TtFullDisk *k = &d->disks[i];

        for (unsigned f = 0; k->files && f < k->n_files; f++) {
            g_free(k->files[f].path);
        }
        g_free(k->files);
        g_free(k->device);
        g_free(k->node);
        g_free(k->image);
        g_free(k->format);
    }
    g_free(d->disks);
    g_free(d->name);
    g_free(d->machine);
    g_free(d->cpu);
    memset(d, 0, sizeof(*d));
}

/* ---- text ---- */

static void set_text(GKeyFile *kf, const char *group, const char *key,
                     const char *value)
{
    g_autofree char *valid = g_utf8_make_valid(value ? value : "", -1);

    g_key_file_set_string(kf, group, key, valid);
}

static void set_number(GKeyFile *kf, const char *group, const char *key,
                       uint64_t v)
{
    g_autofree char *text = g_strdup_printf("%" PRIu64, v);

    g_key_file_set_value(kf, group, key, text);
}

static void fill_disk(GKeyFile *kf, unsigned i, const TtFullDisk *d)
{
    char group[24], key[32];

    snprintf(group, sizeof(group), "disk-%u", i);
    set_text(kf, group, "device", d->device);
    if (d->drive >= 0) {
        set_number(kf, group, "drive", d->drive);
    }
    set_text(kf, group, "node", d->node);
    set_number(kf, group, "writable", d->is_writable);
    set_text(kf, group, "image", d->image);
    set_text(kf, group, "format", d->format);
    if (d->version) {
        set_number(kf, group, "version", d->version);
    }
    set_number(kf, group, "size", d->size_bytes);
    set_number(kf, group, "files", d->n_files);
    for (unsigned k = 0; k < d->n_files; k++) {
        snprintf(key, sizeof(key), "file-%u", k);
        set_text(kf, group, key, d->files[k].path);
        snprintf(key, sizeof(key), "file-%u-size", k);
        set_number(kf, group, key, d->files[k].size_bytes);
        snprintf(key, sizeof(key), "file-%u-mtime", k);
        set_number(kf, group, key, d->files[k].mtime_ns);
    }
}

char *tt_fulldesc_text(const TtFullDesc *d)
{
    g_autoptr(GKeyFile) kf = g_key_file_new();

    set_text(kf, "full", "name", d->name);
    set_text(kf, "full", "machine", d->machine);
    set_text(kf, "full", "cpu", d->cpu);
    set_number(kf, "full", "ram", d->ram_bytes);
    set_number(kf, "full", "disks", d->n_disks);
    for (unsigned i = 0; i < d->n_disks; i++) {
        fill_disk(kf, i, &d->disks[i]);
    }
    return g_key_file_to_data(kf, NULL, NULL);
}
