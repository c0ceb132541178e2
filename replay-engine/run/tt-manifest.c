/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The manifest of a run, as text: docs/reference/manifest.rst.
 *
 * Parsing is strict where a replay depends on the value and silent about groups and
 * keys it does not know: a bit in `features` announces what a reader must not overlook.
 */
#include "run/tt-manifest.h"
#include "io/tt-io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <glib.h>

/* ---- strict values ---- */

typedef struct Parser {
    GKeyFile *kf;
    TtDiag *diag;
    TtStatus status;            /* the first failure; nothing is read after */
} Parser;

static void __attribute__((format(printf, 3, 4)))
wrong(Parser *p, TtStatus status, const char *fmt, ...)
{
    char text[TT_DIAG_TEXT_MAX];
    va_list ap;

    if (p->status == TT_OK) {
        va_start(ap, fmt);
        g_vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        p->status = tt_fail(p->diag, status, "manifest: %s", text);
    }
}

/* Never NULL. A missing key is an error when @required. */
static char *get_text(Parser *p, const char *group, const char *key,
                      bool required)
{
    g_autoptr(GError) err = NULL;
    char *v;

    if (p->status != TT_OK) {
        return g_strdup("");
    }
    v = g_key_file_get_string(p->kf, group, key, &err);
    if (v && !err) {
        return v;
    }
    g_free(v);                  /* a wrong escape gives both */
    if (g_error_matches(err, G_KEY_FILE_ERROR,
                        G_KEY_FILE_ERROR_INVALID_VALUE)) {
        wrong(p, TT_ERR_FORMAT, "'%s' in [%s] has a wrong escape sequence",
              key, group);
    } else if (required) {
        wrong(p, TT_ERR_FORMAT, "'%s' in [%s] is missing", key, group);
    }
    return g_strdup("");
}

static char *get_name(Parser *p, const char *group, const char *key)
{
    char *v = get_text(p, group, key, true);

    if (p->status == TT_OK && !*v) {
        wrong(p, TT_ERR_FORMAT, "'%s' in [%s] is empty", key, group);
    }
    return v;
}

/* Digits, or 0x and hex digits; nothing else, no overflow. */
static bool parse_number(const char *text, uint64_t *v)
{
    bool is_hex = g_str_has_prefix(text, "0x");
    const char *p = is_hex ? text + 2 : text;
    unsigned base = is_hex ? 16 : 10;

    *v = 0;
    if (!*p) {
        return false;
    }
    for (; *p; p++) {
        int digit = is_hex ? g_ascii_xdigit_value(*p)
                           : g_ascii_digit_value(*p);
        if (digit < 0 || *v > (UINT64_MAX - digit) / base) {
            return false;
        }
        *v = *v * base + digit;
    }
    return true;
}

static uint64_t get_number(Parser *p, const char *group, const char *key,
                           uint64_t min, uint64_t max)
{
    g_autofree char *text = get_text(p, group, key, true);
    uint64_t v = 0;

    if (p->status != TT_OK) {
        return 0;
    }
    if (!parse_number(text, &v)) {
        wrong(p, TT_ERR_FORMAT, "'%s' in [%s] must be a number, not '%.40s'",
              key, group, text);
    } else if (v < min || v > max) {
        wrong(p, TT_ERR_LIMIT, "'%s' in [%s] must be from %" PRIu64 " to %"
              PRIu64 ", not %" PRIu64, key, group, min, max, v);
    }
    return v;
}

/* ---- UUID ---- */

static bool uuid_has_dash(unsigned byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

static bool parse_uuid(const char *text, uint8_t uuid[16])
{
    for (unsigned i = 0; i < 16; i++) {
        if (uuid_has_dash(i) && *text++ != '-') {
            return false;
        }
        int high = g_ascii_xdigit_value(text[0]);
        int low = high < 0 ? -1 : g_ascii_xdigit_value(text[1]);
        if (low < 0) {
            return false;
        }
        uuid[i] = high << 4 | low;
        text += 2;
    }
    return *text == 0;
}

/* ---- load ---- */

static void parse_run(Parser *p, TtManifest *m)
{
    /* First of all: nothing else can be judged without knowing this. */
    m->features = get_number(p, "run", "features", 0, UINT64_MAX);
    if (m->features & ~TT_MANIFEST_FEATURES) {
        wrong(p, TT_ERR_VERSION, "the run needs features (0x%" PRIx64 ") that "
              "this version does not have; use the version that recorded it "
              "or a newer one", m->features & ~TT_MANIFEST_FEATURES);
    }
    m->rules = get_number(p, "run", "rules", 0, UINT64_MAX);
    g_autofree char *uuid = get_text(p, "run", "uuid", true);
    if (p->status == TT_OK && !parse_uuid(uuid, m->uuid)) {
        wrong(p, TT_ERR_FORMAT, "'uuid' in [run] must look like "
              "01234567-89ab-cdef-0123-456789abcdef, not '%.40s'", uuid);
    }
    m->accel = get_name(p, "run", "accel");
    m->tlb_entries = get_number(p, "run", "tlb-entries", 0, UINT64_MAX);
    m->sync_interval = get_number(p, "run", "fence-interval", 0, UINT64_MAX);
    m->qemu_version = get_text(p, "run", "qemu-version", false);
    m->tt_version = get_text(p, "run", "tt-version", false);
    m->command_line = get_text(p, "run", "command-line", false);
    m->directory = get_text(p, "run", "directory", false);
    m->host = get_text(p, "run", "host", false);
    m->started = get_text(p, "run", "started", false);
    m->positions = get_text(p, "run", "positions", false);
}

/* Positions, ascending. */
static void parse_sync_starts(Parser *p, TtManifest *m)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) words = NULL;
    uint64_t v, before = 0;

    if (!(m->features & TT_FEATURE_SYNC_STARTS)) {
        return;
    }
    text = get_text(p, "run", "sync-starts", true);
    words = g_strsplit(text ? text : "", " ", TT_SYNC_STARTS_MAX + 1);
    m->sync_starts = g_new0(uint64_t, g_strv_length(words) + 1);
    for (unsigned i = 0; p->status == TT_OK && words[i]; i++) {
        if (i == TT_SYNC_STARTS_MAX) {
            wrong(p, TT_ERR_LIMIT, "'sync-starts' in [run] has more than %u positions",
                  TT_SYNC_STARTS_MAX);
        } else if (!parse_number(words[i], &v) || v <= before || v > INT64_MAX) {
            wrong(p, TT_ERR_FORMAT, "'sync-starts' in [run] must be ascending positions "
                  "with one space between, not '%.40s'", words[i]);
        } else {
            before = m->sync_starts[m->n_sync_starts++] = v;
        }
    }
}

/* Entries that must be there when the run begins in another one. */
static void parse_parent(Parser *p, TtManifest *m)
{
    g_autofree char *uuid = NULL;

    if (!(m->features & TT_FEATURE_PARENT)) {
        return;
    }
    m->parent_path = get_name(p, "parent", "path");
    uuid = get_text(p, "parent", "uuid", true);
    if (p->status == TT_OK && !parse_uuid(uuid, m->parent_uuid)) {
        wrong(p, TT_ERR_FORMAT, "'uuid' in [parent] is not a UUID: '%.40s'", uuid);
    }
    m->parent_checkpoint = get_number(p, "parent", "checkpoint", 1, INT32_MAX);
    m->parent_pos = get_number(p, "parent", "position", 0, UINT64_MAX);
}

/* A path of the run itself: nothing outside is opened for a run of anybody's. */
static bool is_inside(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);

    for (char **part = parts; *part; part++) {
        if (!**part || strcmp(*part, ".") == 0 || strcmp(*part, "..") == 0) {
            return false;
        }
    }
    return *path;
}

static void parse_disks(Parser *p, TtManifest *m)
{
    if (!(m->features & TT_FEATURE_DISKS)) {
        return;
    }
    m->n_disks = get_number(p, "disks", "count", 0, TT_DISKS_MAX);
    if (p->status != TT_OK) {
        m->n_disks = 0;
    }
    m->disks = g_new0(char *, m->n_disks + 1);
    for (unsigned i = 0; i < m->n_disks && p->status == TT_OK; i++) {
        g_autofree char *key = g_strdup_printf("disk-%u", i);

        m->disks[i] = get_name(p, "disks", key);
        if (p->status == TT_OK && !is_inside(m->disks[i])) {
            wrong(p, TT_ERR_FORMAT, "'%s' in [disks] is not a file of the run: '%.40s'",
                  key, m->disks[i]);
        }
    }
}

static void parse_cpu(Parser *p, TtManifest *m)
{
    m->n_cpus = get_number(p, "cpu", "count", 1, TT_CPUS_MAX);
    m->cpu_type = get_name(p, "cpu", "type");

    g_autofree char *text = get_text(p, "cpu", "words", true);
    g_auto(GStrv) words = g_strsplit(text, " ", TT_CPU_WORDS_MAX + 1);
    for (unsigned i = 0; p->status == TT_OK && words[i]; i++) {
        uint64_t v;
        if (i == TT_CPU_WORDS_MAX) {
            wrong(p, TT_ERR_LIMIT, "'words' in [cpu] has more than %u words",
                  TT_CPU_WORDS_MAX);
        } else if (!parse_number(words[i], &v) || v > UINT32_MAX) {
            wrong(p, TT_ERR_FORMAT, "'words' in [cpu] must be 32-bit numbers "
                  "with one space between, not '%.40s'", words[i]);
        } else {
            m->cpu_words[i] = v;
            m->n_cpu_words = i + 1;
        }
    }
}

static uint32_t parse_flags(Parser *p, const char *group)
{
    g_autofree char *text = get_text(p, group, "flags", true);

    if (p->status != TT_OK || !*text) {
        return 0;
    }
    if (strcmp(text, "rom") == 0) {
        return TT_BLOCK_ROM;
    }
    if (strcmp(text, "romd") == 0) {
        return TT_BLOCK_ROMD;
    }
    if (strcmp(text, "rom romd") == 0) {
        return TT_BLOCK_ROM | TT_BLOCK_ROMD;
    }
    wrong(p, TT_ERR_FORMAT, "'flags' in [%s] must be empty, 'rom', 'romd' or "
          "'rom romd', not '%.40s'", group, text);
    return 0;
}

static void parse_block(Parser *p, unsigned i, TtBlockInfo *b,
                        GHashTable *names)
{
    char group[24];

    snprintf(group, sizeof(group), "block-%u", i);
    g_autofree char *name = get_text(p, group, "name", true);
    if (p->status == TT_OK && (!*name || strlen(name) > TT_BLOCK_NAME_MAX)) {
        wrong(p, TT_ERR_LIMIT, "'name' in [%s] must have 1 to %u bytes", group,
              TT_BLOCK_NAME_MAX);
        return;
    }
    g_strlcpy(b->name, name, sizeof(b->name));
    if (p->status == TT_OK && !g_hash_table_add(names, b->name)) {
        wrong(p, TT_ERR_FORMAT, "[%s] has the name of another block", group);
    }
    b->max_bytes = get_number(p, group, "max-size", 1, TT_BLOCK_BYTES_MAX);
    b->size_bytes = get_number(p, group, "size", 0, b->max_bytes);
    b->flags = parse_flags(p, group);
}

static void parse_blocks(Parser *p, TtManifest *m)
{
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);

    m->n_blocks = get_number(p, "blocks", "count", 0, TT_BLOCKS_MAX);
    if (p->status != TT_OK) {
        m->n_blocks = 0;
        return;
    }
    m->blocks = g_new0(TtBlockInfo, MAX(m->n_blocks, 1));
    for (unsigned i = 0; i < m->n_blocks && p->status == TT_OK; i++) {
        parse_block(p, i, &m->blocks[i], names);
    }
}

/* Cases that GKeyFile would misunderstand, or report badly. */
static TtStatus check_text(const char *text, size_t len, TtDiag *diag)
{
    if (len > TT_MANIFEST_BYTES_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "manifest: it is larger than %u "
                       "bytes, so it is not a manifest", TT_MANIFEST_BYTES_MAX);
    }
    if (len == 0) {
        return tt_fail(diag, TT_ERR_FORMAT, "manifest: it is empty; was the "
                       "recording cut off before it began?");
    }
    if (!g_utf8_validate(text, len, NULL)) {
        return tt_fail(diag, TT_ERR_FORMAT, "manifest: it is not UTF-8 text");
    }
    return TT_OK;
}

/* The last line has the checksum of those before it. False: there is no such line. */
static bool check_sum(Parser *p, const char *text, size_t len)
{
    const size_t hex = 64, line = strlen(TT_MANIFEST_SUM) + hex + 1;
    g_autofree char *sum = NULL;
    const char *at;

    if (p->status != TT_OK || !g_strrstr_len(text, len, "\n" TT_MANIFEST_SUM)) {
        return false;
    }
    at = text + len - MIN(len, line);
    sum = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const uint8_t *)text,
                                      at - text);
    if (strncmp(at, TT_MANIFEST_SUM, strlen(TT_MANIFEST_SUM)) ||
        strncmp(at + strlen(TT_MANIFEST_SUM), sum, hex) || text[len - 1] != '\n') {
        wrong(p, TT_ERR_FORMAT, "it is damaged, or was edited: its last line is not "
              "the checksum of the others");
    }
    return true;
}

TtStatus tt_manifest_parse(const char *text, size_t len, TtManifest *m,
                           TtDiag *diag)
{
    g_autoptr(GKeyFile) kf = g_key_file_new();
    g_autoptr(GError) err = NULL;
    Parser p = { .kf = kf, .diag = diag };
    bool has_sum;

    memset(m, 0, sizeof(*m));
    p.status = check_text(text, len, diag);
    has_sum = check_sum(&p, text, len);
    if (p.status == TT_OK &&
        !g_key_file_load_from_data(kf, text, len, G_KEY_FILE_NONE, &err)) {
        wrong(&p, TT_ERR_FORMAT, "it is damaged (%s): take it from a copy of the run, such as "
              "a pack", err->message);
    }
    parse_run(&p, m);
    parse_sync_starts(&p, m);
    parse_parent(&p, m);
    parse_disks(&p, m);
    m->frames = m->features & TT_FEATURE_FRAMES ? get_name(&p, "frames", "path") : NULL;
    parse_cpu(&p, m);
    parse_blocks(&p, m);
    if (!has_sum && p.status == TT_OK && m->rules & TT_RULE_WHOLE_STATE) {
        wrong(&p, TT_ERR_FORMAT, "it is damaged: its last line, the checksum, is "
              "missing");
    }
    if (p.status != TT_OK) {
        tt_manifest_cleanup(m);
    }
    return p.status;
}

TtStatus tt_manifest_check_unpacked(const char *path, TtDiag *diag)
{
    g_autofree char *half = g_strconcat(path, TT_MANIFEST_UNPACKING, NULL);
    g_autofree char *dir = g_path_get_dirname(path);

    return g_file_test(path, G_FILE_TEST_EXISTS) ||
        !g_file_test(half, G_FILE_TEST_EXISTS) ? TT_OK :
        tt_fail(diag, TT_ERR_IO, "'%s' is an incomplete run: tt unpack is "
                "working there, or was killed: in that case delete it and unpack "
                "again", dir);
}

static TtStatus fail_missing(const char *path, TtDiag *diag)
{
    TtStatus status = tt_manifest_check_unpacked(path, diag);

    return status != TT_OK ? status :
        tt_fail(diag, TT_ERR_IO, "there is no file '%s': this is not a run, or "
                "its recorder ended before the VM ran and nothing was recorded",
                path);
}

TtStatus tt_manifest_load(const char *path, TtManifest *m, TtDiag *diag)
{
    g_autofree char *text = NULL;
    uint64_t size;
    size_t got;
    TtIo *io;
    TtStatus status = tt_io_posix_open(path, &io, diag);

    memset(m, 0, sizeof(*m));
    if (status == TT_ERR_IO && diag && diag->os_errno == ENOENT) {
        return fail_missing(path, diag);
    }
    if (status != TT_OK) {
        return status;
    }
    status = io->ops->size(io, &size, diag);
    if (status == TT_OK) {
        /* One byte more than allowed, so that parse sees it is too large. */
        size = MIN(size, TT_MANIFEST_BYTES_MAX + 1);
        text = g_malloc(size + 1);
        status = io->ops->read_at(io, 0, text, size, &got, diag);
    }
    tt_io_close(io);
    return status == TT_OK ? tt_manifest_parse(text, got, m, diag) : status;
}

TtStatus tt_manifest_check_rules(const TtManifest *m, uint64_t tlb_entries,
                                 TtDiag *diag)
{
    const uint64_t each = TT_RULE_KVM | TT_RULE_LIKE_HARDWARE;
    const uint64_t added = TT_RULE_WHOLE_STATE | TT_RULE_FETCH_FAULT;
    const char *text = m->tt_version ? m->tt_version : "";
    g_autofree char *version = g_strescape(text, NULL);

    if (m->features & TT_FEATURE_SCRUBBED) {
        return tt_fail(diag, TT_ERR_INVALID, "the run was scrubbed when it was "
                       "packed: it does not contain what the guest read and "
                       "cannot be replayed; ask for the complete run");
    }
    if (((m->rules & ~each) | added) == TT_MANIFEST_RULES &&
        m->tlb_entries == tlb_entries) {
        return TT_OK;
    }
    return tt_fail(diag, TT_ERR_VERSION, "manifest: the run was recorded with "
                   "rules (0x%" PRIx64 ", TLB %" PRIu64 ") that differ from "
                   "those of this version (0x%" PRIx64 ", TLB %" PRIu64 "): "
                   "replay it with the TTVM version that recorded it, %.40s",
                   m->rules, m->tlb_entries, TT_MANIFEST_RULES, tlb_entries,
                   *version ? version : "which it does not name");
}

bool tt_manifest_has(const char *path, uint64_t feature)
{
    TtManifest m = { 0 };
    TtDiag diag;
    bool has = tt_manifest_load(path, &m, &diag) == TT_OK && m.features & feature;

    tt_manifest_cleanup(&m);
    return has;
}

void tt_manifest_cleanup(TtManifest *m)
{
    g_free(m->qemu_version);
    g_free(m->tt_version);
    g_free(m->accel);
    g_free(m->command_line);
    g_free(m->directory);
    g_free(m->parent_path);
    g_strfreev(m->disks);
    g_free(m->frames);
    g_free(m->host);
    g_free(m->started);
    g_free(m->positions);
    g_free(m->cpu_type);
    g_free(m->blocks);
    g_free(m->sync_starts);
    memset(m, 0, sizeof(*m));
}
