/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes hostile checkpoints of good ones: what is beside the pages (state of the
 * vCPUs, memory map, RAM blocks, place in the log) is changed, and all checksums
 * are right.
 *
 *   tt-forge-points RUN NEW-CHECKPOINTS SEED
 *   tt-forge-points RUN NEW-CHECKPOINTS small    each RAM block has one page
 *   tt-forge-points RUN NEW-CHECKPOINTS banks    after the first one, each vCPU
 *                                                has too many for its array
 *   tt-forge-points RUN NEW-CHECKPOINTS full     not hostile: all are full ones
 */
#include "run/tt-cpstate.h"
#include "run/tt-manifest.h"
#include "pages/tt-pagestore.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

static GRand *rng;

/* A few bytes, in the head more often than elsewhere; or cut, or longer. */
static void change(void **blob, size_t *len, uint32_t *flags)
{
    uint8_t *p = *blob = g_realloc(*blob, *len + 64);

    if (!*len || g_rand_int_range(rng, 0, 4) == 0) {
        return;
    }
    switch (g_rand_int_range(rng, 0, 8)) {
    case 0:
        *len = g_rand_int_range(rng, 0, *len);
        return;
    case 1:
        memset(p + *len, 0xa5, 64);
        *len += 64;
        return;
    case 2:
        *flags ^= 1u << g_rand_int_range(rng, 0, 2);
        return;
    default:
        for (unsigned n = g_rand_int_range(rng, 1, 6); n; n--) {
            size_t at = g_rand_int_range(rng, 0, 3) ?
                g_rand_int_range(rng, 0, *len) :
                g_rand_int_range(rng, 0, MIN(*len, 200));

            p[at] = g_rand_int_range(rng, 0, 3) ? g_rand_int(rng) : 0xff;
        }
    }
}

/* All that the page list names lies outside, then. The map shows nothing. */
static void shrink(void **blob, size_t *len, uint32_t *flags)
{
    GByteArray *blocks = g_byte_array_new();
    TtCpState s;
    TtCpBlock b;
    TtDiag diag;
    uint32_t n;

    if (tt_cpstate_decode((TtBytes) { *blob, *len }, &s, &diag) != TT_OK) {
        fprintf(stderr, "tt-forge-points: %s\n", diag.text);
        exit(1);
    }
    for (TtBytes rest = s.blocks; tt_cpstate_next_block(&rest, &b); ) {
        uint8_t head[16];

        tt_put_le64(head, TT_PAGE_BYTES);
        tt_put_le32(head + 8, b.flags);
        tt_put_le32(head + 12, b.name.len);
        g_byte_array_append(blocks, head, sizeof(head));
        g_byte_array_append(blocks, b.name.data, b.name.len);
    }
    s.blocks = (TtBytes) { blocks->data, blocks->len };
    s.map[0].len = s.map[1].len = 0;
    *blob = tt_cpstate_encode(&s, &n);
    *len = n;
}

static void add_banks(void **blob, size_t *len, uint32_t *flags)
{
    static const uint8_t honest[] = { 0, 0, 0, 0, 1, 0, 1, 10 };
    static bool is_behind;

    for (uint8_t *p = *blob; is_behind && p + 8 <= (uint8_t *)*blob + *len; p++) {
        if (!memcmp(p, honest, sizeof(honest))) {
            p[7] = 0x3f;
        }
    }
    is_behind = true;
}

static void make_full(void **blob, size_t *len, uint32_t *flags)
{
    *flags |= TT_CHECKPOINT_FULL;
}

typedef void Way(void **blob, size_t *len, uint32_t *flags);

static Way *way_of(const char *name)
{
    return !strcmp(name, "small") ? shrink : !strcmp(name, "banks") ? add_banks :
        !strcmp(name, "full") ? make_full : change;
}

int main(int argc, char **argv)
{
    TtPageStoreOptions opt = { .read_only = true };
    g_autofree char *manifest = NULL, *pages = NULL, *points = NULL;
    TtPageStore *ps;
    TtManifest m;
    TtDiag diag;
    TtIo *to;

    if (argc != 4) {
        fprintf(stderr, "usage: tt-forge-points RUN NEW-CHECKPOINTS "
                "SEED|small|banks|full\n");
        return 2;
    }
    rng = g_rand_new_with_seed(strtoul(argv[3], NULL, 0));
    manifest = g_build_filename(argv[1], "manifest", NULL);
    pages = g_build_filename(argv[1], "pages", NULL);
    points = g_build_filename(argv[1], "checkpoints", NULL);
    if (tt_manifest_load(manifest, &m, &diag) != TT_OK ||
        tt_io_posix_open(pages, &opt.pages, &diag) != TT_OK ||
        tt_io_posix_open(points, &opt.checkpoints, &diag) != TT_OK ||
        (memcpy(opt.uuid, m.uuid, 16),
         tt_pagestore_open(&opt, &ps, &diag) != TT_OK) ||
        tt_io_posix_create(argv[2], &to, &diag) != TT_OK ||
        tt_pagestore_export(ps, to, m.uuid, way_of(argv[3]), &diag) != TT_OK) {
        fprintf(stderr, "tt-forge-points: %s\n", diag.text);
        return 1;
    }
    tt_io_close(to);
    tt_pagestore_free(ps);
    tt_manifest_cleanup(&m);
    g_rand_free(rng);
    return 0;
}
