/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing the manifest of a run, whole or not at all: docs/reference/manifest.rst.
 */
#include "run/tt-manifest.h"
#include "io/tt-io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <glib.h>
#include <glib/gstdio.h>

static const char heading[] =
    "# A recorded run of a virtual machine (TTVM). Written once, at the start "
    "of\n# the recording; a replay takes the machine's shape from here.\n\n";

static void set_text(GKeyFile *kf, const char *group, const char *key,
                     const char *value)
{
    /* Command lines may hold any bytes; the file is UTF-8. */
    g_autofree char *valid = g_utf8_make_valid(value ? value : "", -1);

    g_key_file_set_string(kf, group, key, valid);
}

static void set_number(GKeyFile *kf, const char *group, const char *key,
                       uint64_t value)
{
    g_autofree char *text = g_strdup_printf("%" PRIu64, value);

    g_key_file_set_value(kf, group, key, text);
}

static char *uuid_text(const uint8_t uuid[16])
{
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < 16; i++) {
        bool has_dash = i == 4 || i == 6 || i == 8 || i == 10;

        g_string_append_printf(s, "%s%02x", has_dash ? "-" : "", uuid[i]);
    }
    return g_string_free(s, false);
}

static void fill_run(GKeyFile *kf, const TtManifest *m)
{
    g_autofree char *uuid = uuid_text(m->uuid);
    g_autofree char *features = g_strdup_printf("0x%" PRIx64, m->features);
    g_autofree char *rules = g_strdup_printf("0x%" PRIx64, m->rules);

    g_key_file_set_value(kf, "run", "features", features);
    g_key_file_set_value(kf, "run", "rules", rules);
    g_key_file_set_value(kf, "run", "uuid", uuid);
    set_text(kf, "run", "started", m->started);
    set_text(kf, "run", "command-line", m->command_line);
    if (m->directory && *m->directory) {
        set_text(kf, "run", "directory", m->directory);
    }
    set_text(kf, "run", "accel", m->accel);
    set_text(kf, "run", "qemu-version", m->qemu_version);
    set_text(kf, "run", "tt-version", m->tt_version);
    set_text(kf, "run", "host", m->host);
    if (m->positions && *m->positions) {
        set_text(kf, "run", "positions", m->positions);
    }
    set_number(kf, "run", "tlb-entries", m->tlb_entries);
    set_number(kf, "run", "fence-interval", m->sync_interval);
}

static void fill_sync_starts(GKeyFile *kf, const TtManifest *m)
{
    g_autoptr(GString) list = g_string_new(NULL);

    if (m->features & TT_FEATURE_SYNC_STARTS) {
        for (unsigned i = 0; i < m->n_sync_starts; i++) {
            g_string_append_printf(list, "%s%" PRIu64, i ? " " : "", m->sync_starts[i]);
        }
        g_key_file_set_value(kf, "run", "sync-starts", list->str);
    }
}

static void fill_parent(GKeyFile *kf, const TtManifest *m)
{
    g_autofree char *uuid = uuid_text(m->parent_uuid);

    if (m->features & TT_FEATURE_PARENT) {
        set_text(kf, "parent", "path", m->parent_path);
        g_key_file_set_value(kf, "parent", "uuid", uuid);
        set_number(kf, "parent", "checkpoint", m->parent_checkpoint);
        set_number(kf, "parent", "position", m->parent_pos);
    }
}

static void fill_disks(GKeyFile *kf, const TtManifest *m)
{
    if (m->features & TT_FEATURE_DISKS) {
        set_number(kf, "disks", "count", m->n_disks);
        for (unsigned i = 0; i < m->n_disks; i++) {
            g_autofree char *key = g_strdup_printf("disk-%u", i);

            set_text(kf, "disks", key, m->disks[i]);
        }
    }
}

static void fill_frames(GKeyFile *kf, const TtManifest *m)
{
    if (m->features & TT_FEATURE_FRAMES) {
        set_text(kf, "frames", "path", m->frames);
    }
}

static void fill_cpu(GKeyFile *kf, const TtManifest *m)
{
    g_autoptr(GString) words = g_string_new(NULL);

    for (unsigned i = 0; i < m->n_cpu_words; i++) {
        g_string_append_printf(words, "%s0x%" PRIx32, i ? " " : "",
                               m->cpu_words[i]);
    }
    set_number(kf, "cpu", "count", m->n_cpus);
    set_text(kf, "cpu", "type", m->cpu_type);
    g_key_file_set_value(kf, "cpu", "words", words->str);
}

static void fill_blocks(GKeyFile *kf, const TtManifest *m)
{
    static const char *const flags[4] = { "", "rom", "romd", "rom romd" };
    char group[24];

    set_number(kf, "blocks", "count", m->n_blocks);
    for (unsigned i = 0; i < m->n_blocks; i++) {
        const TtBlockInfo *b = &m->blocks[i];
        snprintf(group, sizeof(group), "block-%u", i);
        set_text(kf, group, "name", b->name);
        set_number(kf, group, "size", b->size_bytes);
        set_number(kf, group, "max-size", b->max_bytes);
        set_text(kf, group, "flags", flags[b->flags & 3]);
    }
}

static char *manifest_text(const TtManifest *m)
{
    g_autoptr(GKeyFile) kf = g_key_file_new();
    g_autofree char *body = NULL, *text = NULL, *sum = NULL;

    fill_run(kf, m);
    fill_sync_starts(kf, m);
    fill_parent(kf, m);
    fill_disks(kf, m);
    fill_frames(kf, m);
    fill_cpu(kf, m);
    fill_blocks(kf, m);
    body = g_key_file_to_data(kf, NULL, NULL);
    text = g_strconcat(heading, body, NULL);
    sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
    return g_strconcat(text, TT_MANIFEST_SUM, sum, "\n", NULL);
}

/* Everything that a replay depends on has come back as it was put in. */
static bool is_same(const TtManifest *a, const TtManifest *b)
{
    bool same = a->n_blocks == b->n_blocks &&
                a->n_cpu_words == b->n_cpu_words &&
                strcmp(a->accel, b->accel) == 0 &&
                strcmp(a->cpu_type, b->cpu_type) == 0;

    for (unsigned i = 0; same && i < a->n_blocks; i++) {
        same = a->blocks[i].flags == b->blocks[i].flags &&
               strcmp(a->blocks[i].name, b->blocks[i].name) == 0;
    }
    return same;
}

/* Reading it back must give the same: catches a caller's wrong values with the
 * parser's own sentences, before anything is recorded that can't be opened. */
static TtStatus check_own(const TtManifest *m, const char *text, TtDiag *diag)
{
    TtManifest back;
    TtStatus status;

    if (m->n_blocks > TT_BLOCKS_MAX || m->n_cpu_words > TT_CPU_WORDS_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "manifest: the machine has more RAM "
                       "blocks (%u) or CPU words (%u) than allowed",
                       m->n_blocks, m->n_cpu_words);
    }
    status = tt_manifest_parse(text, strlen(text), &back, diag);
    if (status == TT_OK && !is_same(m, &back)) {
        status = tt_fail(diag, TT_ERR_FORMAT, "manifest: the machine has a "
                         "name or a flag that text cannot hold");
    }
    tt_manifest_cleanup(&back);
    return status;
}

TtStatus tt_manifest_write(const TtManifest *m, TtIo *io, TtDiag *diag)
{
    g_autofree char *text = NULL;
    TtStatus status;

    if (m->n_blocks <= TT_BLOCKS_MAX && m->n_cpu_words <= TT_CPU_WORDS_MAX) {
        text = manifest_text(m);
    }
    status = check_own(m, text, diag);
    if (status == TT_OK) {
        status = io->ops->append(io, text, strlen(text), diag);
    }
    return status == TT_OK ? io->ops->sync(io, diag) : status;
}

static TtStatus write_file(const TtManifest *m, const char *path, TtDiag *diag)
{
    TtIo *io;
    TtStatus status;

    g_unlink(path);             /* left by a killed recorder */
    status = tt_io_posix_create(path, &io, diag);
    if (status == TT_OK) {
        status = tt_manifest_write(m, io, diag);
        tt_io_close(io);
    }
    return status;
}

TtStatus tt_manifest_save(const TtManifest *m, const char *path, TtDiag *diag)
{
    g_autofree char *temp = g_strconcat(path, ".tmp", NULL);
    TtStatus status = write_file(m, temp, diag);

    if (status == TT_OK && g_rename(temp, path) < 0) {
        int err = errno;
        status = tt_fail(diag, TT_ERR_IO, "cannot rename '%s' to '%s': %s",
                         temp, path, g_strerror(err));
        if (diag) {
            diag->os_errno = err;
        }
    }
    if (status != TT_OK) {
        g_unlink(temp);
    } else {
        tt_io_posix_sync_directory_of(path);
    }
    return status;
}
