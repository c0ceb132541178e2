/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file that was cut off: which clusters of the disk and of its versions lie behind its
 * end. They stay in the map, to be told from zeros; all others are as they were.
 */
#include "block-tt/tt-blockmap-int.h"

#define NAMED_MAX       8               /* versions that the sentence names */

typedef struct Lost {
    const TtBlockTable *table;
    uint64_t needs_bytes;               /* that the file should have at least */
} Lost;

/* 1: it is. */
static unsigned is_lost(Lost *l, uint32_t cluster, uint32_t v)
{
    unsigned bits = l->table->cluster_bits;
    uint64_t len = MIN(1ull << bits, l->table->size_bytes - ((uint64_t)cluster << bits));

    if (!tt_table_is_lost(l->table, cluster, v)) {
        return 0;
    }
    l->needs_bytes = MAX(l->needs_bytes, ((uint64_t)v << bits) + len);
    return 1;
}

/* By id: a parent comes first. What a version has and its parent had not, and so on. */
static void count_versions(TtBlockMap *bm, Lost *l)
{
    for (guint i = 0; i < bm->versions->len; i++) {
        TtBlockVersion *v = bm->versions->pdata[i];

        v->lost = v->parent ? v->parent->lost : 0;
        for (size_t k = 0; k < v->n; k++) {
            const TtBlockChange *c = &v->change[k];

            v->lost += is_lost(l, c->cluster, c->is);
            v->lost -= is_lost(l, c->cluster, c->was);
        }
    }
}

static uint64_t count_head(const TtBlockMap *bm, Lost *l)
{
    uint64_t n = bm->parent ? bm->parent->lost : 0;

    for (guint i = 0; i < bm->changed->len; i++) {
        const TtHeadChange *c = &g_array_index(bm->changed, TtHeadChange, i);

        n += is_lost(l, c->cluster, tt_table_get(&bm->table, c->cluster));
        n -= is_lost(l, c->cluster, c->was);
    }
    return n;
}

static void name_versions(const TtBlockMap *bm, GString *text)
{
    unsigned n = 0;

    for (guint i = 0; i < bm->versions->len; i++) {
        const TtBlockVersion *v = bm->versions->pdata[i];

        if (v->lost && n++ < NAMED_MAX) {
            g_string_append_printf(text, "%s%" G_GUINT32_FORMAT, n > 1 ? ", " :
                                   "; versions that need missing clusters: ", v->info.id);
        }
    }
    if (n > NAMED_MAX) {
        g_string_append_printf(text, " and %u more", n - NAMED_MAX);
    }
    if (!n && bm->versions->len) {
        g_string_append(text, "; no version needs a missing cluster");
    }
}

void tt_cut_find(TtBlockMap *bm, bool is_short)
{
    Lost l = { .table = &bm->table };
    uint64_t in_head = 0;
    GString *text;

    if (bm->names_lost) {
        count_versions(bm, &l);
        in_head = count_head(bm, &l);
    }
    if (!l.needs_bytes && !is_short) {
        bm->table.file_bytes = UINT64_MAX;
        bm->alloc.lost_from = UINT32_MAX;
        return;
    }
    bm->is_cut = true;
    text = g_string_new(NULL);
    g_string_printf(text, "the disk's file has been cut off at byte %" G_GUINT64_FORMAT,
                    bm->table.file_bytes);
    if (is_short) {
        g_string_append(text, ", within its journal: what was written later is lost");
    }
    if (l.needs_bytes) {
        g_string_append_printf(text, ", and needs %" G_GUINT64_FORMAT " bytes; clusters "
                               "that are missing in the disk as it is now: "
                               "%" G_GUINT64_FORMAT, l.needs_bytes, in_head);
        name_versions(bm, text);
    }
    g_string_append(text, "; restore the file from a copy, or convert what is whole");
    g_free(bm->damage);
    bm->damage = g_string_free(text, FALSE);
}
