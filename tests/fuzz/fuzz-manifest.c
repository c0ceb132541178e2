/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target of the manifest's parser: any text; what is accepted keeps the
 * limits, and can be saved and loaded again.
 */
#include "run/tt-manifest.h"

#include <stdlib.h>
#include <unistd.h>
#include <glib.h>
#include <glib/gstdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) do { if (!(x)) { abort(); } } while (0)

static void check_limits(const TtManifest *m)
{
    CHECK(!(m->features & ~TT_MANIFEST_FEATURES) && *m->accel && *m->cpu_type);
    CHECK(m->n_cpus >= 1 && m->n_cpus <= TT_CPUS_MAX);
    CHECK(m->n_cpu_words <= TT_CPU_WORDS_MAX && m->n_blocks <= TT_BLOCKS_MAX);
    for (unsigned i = 0; i < m->n_blocks; i++) {
        const TtBlockInfo *b = &m->blocks[i];
        CHECK(b->name[0] && strlen(b->name) <= TT_BLOCK_NAME_MAX);
        CHECK(b->size_bytes <= b->max_bytes && b->max_bytes > 0);
        CHECK(b->max_bytes <= TT_BLOCK_BYTES_MAX && b->flags <= 3);
    }
}

static void check_saved(const TtManifest *m)
{
    g_autofree char *path = g_strdup_printf("%s/tt-fuzz-manifest-%d",
                                            g_get_tmp_dir(), getpid());
    TtManifest again;

    CHECK(tt_manifest_save(m, path, NULL) == TT_OK);
    CHECK(tt_manifest_load(path, &again, NULL) == TT_OK);
    CHECK(memcmp(m->uuid, again.uuid, 16) == 0);
    CHECK(strcmp(m->command_line, again.command_line) == 0);
    CHECK(strcmp(m->cpu_type, again.cpu_type) == 0);
    CHECK(m->n_blocks == again.n_blocks);
    tt_manifest_cleanup(&again);
    g_unlink(path);
}

static void check_text(const char *text, size_t size)
{
    TtManifest m;
    TtDiag d = { 0 };
    TtStatus status = tt_manifest_parse(text, size, &m, &d);

    if (status == TT_OK) {
        check_limits(&m);
        status = tt_manifest_check_rules(&m, 4096, &d);
        CHECK(status == TT_OK || (d.status == status && d.text[0]));
        if (size % 16 == 0) {           /* it flushes to disk: not each time */
            check_saved(&m);
        }
    } else {
        CHECK(d.status == status && d.text[0] && !m.blocks && !m.accel);
    }
    tt_manifest_cleanup(&m);
}

/* As it is, and with a last line that is its checksum. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *sum = g_compute_checksum_for_data(G_CHECKSUM_SHA256, data, size);
    g_autoptr(GString) summed = g_string_new_len((const char *)data, size);

    check_text((const char *)data, size);
    g_string_append_printf(summed, TT_MANIFEST_SUM "%s\n", sum);
    check_text(summed->str, summed->len);
    return 0;
}
