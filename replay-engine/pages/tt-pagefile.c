/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RUN/pages: groups, reading single pages, giving groups back.
 *
 *   file    head | group 0 | group 1 | ...
 *   group   header | table: hash and length of each | page data
 *
 * Invariants, cited below:
 * F1  Groups are sorted by offset and do not overlap; each place lies in one.
 * F2  n_live and live_bytes of a group are those of places in use; n_garbage
 *     counts groups with none that are not gone.
 *     A version that is inherited (P8) has no bytes: its place is the last byte of
 *     the table.
 * F3  `end` is where the next group goes, and the length of the file unless
 *     a failure left a tail that could not be cut (is_broken).
 */
#include "tt-pagefile-int.h"
#include "io/tt-bytes.h"

#include <inttypes.h>

/* Clean when a fifth of the page data is dead: then the file has at most 1.25
 * times what lives. Below the second number it is not worth the trouble. */
#define CLEAN_SHARE     5u
#define CLEAN_BYTES_MIN (256u << 10)

/* ---- groups ---- */

static TtPageGroup *group_at(const TtPageFile *pf, size_t i)
{
    return &g_array_index(pf->groups, TtPageGroup, i);
}

/* F1. Every place comes from a group, so there is one. */
static TtPageGroup *group_of(const TtPageFile *pf, const TtPlace *place)
{
    size_t lo = 0, hi = pf->groups->len;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;

        if (group_at(pf, mid)->offset <= place->offset) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    g_assert(hi > lo && group_at(pf, lo)->offset < place->offset);
    return group_at(pf, lo);
}

void tt_pagefile_use(TtPageFile *pf, const TtPlace *place)
{
    TtPageGroup *g;

    if (!place->offset) {
        return;                         /* gone: in no group */
    }
    g = group_of(pf, place);
    g_assert(!g->is_gone);                                      /* F2 */
    pf->n_garbage -= g->n_live == 0;
    g->n_live++;
    g->live_bytes += place->len;
    pf->live_bytes += place->len;
    pf->n_inherited += place->len == 0;
}

void tt_pagefile_disuse(TtPageFile *pf, const TtPlace *place)
{
    TtPageGroup *g;

    if (!place->offset) {
        return;
    }
    g = group_of(pf, place);
    g_assert(g->n_live > 0 && g->live_bytes >= place->len);     /* F2 */
    g->n_live--;
    g->live_bytes -= place->len;
    pf->live_bytes -= place->len;
    pf->n_inherited -= place->len == 0;
    pf->n_garbage += g->n_live == 0;
}

bool tt_pagefile_has_garbage(const TtPageFile *pf)
{
    return pf->n_garbage && !pf->no_holes && !pf->is_broken;
}

TtStatus tt_pagefile_give_back(TtPageFile *pf, TtDiag *diag)
{
    for (size_t i = 0; i < pf->groups->len && pf->n_garbage; i++) {
        TtPageGroup *g = group_at(pf, i);
        TtStatus st;

        if (g->is_gone || g->n_live) {
            continue;
        }
        if (!pf->io->ops->punch) {
            pf->no_holes = true;
            return TT_OK;
        }
        st = pf->io->ops->punch(pf->io, g->offset + g->header_bytes,
                                g->data_at - g->header_bytes + g->stored,
                                diag);
        if (st == TT_ERR_INVALID) {
            pf->no_holes = true;        /* this file system has none */
            return TT_OK;
        }
        if (st != TT_OK) {
            return st;
        }
        pf->stored_bytes -= g->stored;
        g->stored = 0;
        g->is_gone = true;
        pf->n_garbage--;
        pf->window_bytes = 0;
    }
    return TT_OK;
}

bool tt_pagefile_wants_cleaning(const TtPageFile *pf)
{
    uint64_t dead = pf->stored_bytes - pf->live_bytes;

    return !pf->no_holes && !pf->is_broken && !pf->max_bytes &&
           dead > CLEAN_BYTES_MIN &&
           dead > pf->stored_bytes / CLEAN_SHARE;
}

/* The group with the greatest part dead of those that fit in @room. */
static TtPageGroup *group_deadest(const TtPageFile *pf, unsigned room)
{
    TtPageGroup *best = NULL;

    for (size_t i = 0; i < pf->groups->len; i++) {
        TtPageGroup *g = group_at(pf, i);

        if (g->is_gone || g->is_picked || !g->n_live || g->n_live > room ||
            g->live_bytes == g->stored) {
            continue;
        }
        if (!best || (uint64_t)g->live_bytes * best->stored <
                     (uint64_t)best->live_bytes * g->stored) {
            best = g;
        }
    }
    return best;
}

unsigned tt_pagefile_pick(TtPageFile *pf, unsigned room)
{
    /* Half of what is allowed stays dead, so as not to be back at once. */
    uint64_t goal = pf->stored_bytes - pf->live_bytes -
                    pf->stored_bytes / (2 * CLEAN_SHARE), freed = 0;
    unsigned n = 0;
    TtPageGroup *g;

    for (size_t i = 0; i < pf->groups->len; i++) {
        group_at(pf, i)->is_picked = false;
    }
    while (freed < goal && (g = group_deadest(pf, room - n))) {
        g->is_picked = true;
        n += g->n_live;
        freed += g->stored - g->live_bytes;
    }
    return n;
}

bool tt_pagefile_is_picked(const TtPageFile *pf, const TtPlace *place)
{
    return place->offset && group_of(pf, place)->is_picked;
}

/* ---- reading ---- */

static TtStatus fail_at(TtDiag *diag, TtStatus st, uint64_t offset,
                        const char *what, uint64_t id)
{
    tt_fail(diag, st, "pages: version %" PRIu64 " at byte %" PRIu64 " %s", id,
            offset, what);
    if (diag) {
        diag->offset = offset;
    }
    return st;
}

/*
 * The stored bytes of @place, from the window or by a read. Pages of a
 * checkpoint lie one after the other more often than not: a read that follows
 * the last one takes more than it needs.
 */
TtStatus tt_pagefile_read_stored(TtPageFile *pf, const TtPlace *place,
                                 const uint8_t **bytes, TtDiag *diag)
{
    uint64_t off = place->offset;
    size_t want = place->len, got;
    TtStatus st;

    if (off < pf->window_at || off + want > pf->window_at + pf->window_bytes) {
        bool goes_on = off >= pf->next_read &&
                       off - pf->next_read < TT_PAGE_WINDOW_BYTES / 4;

        pf->window_bytes = 0;
        pf->window_at = off;
        st = pf->io->ops->read_at(pf->io, off, pf->window,
                                  goes_on ? TT_PAGE_WINDOW_BYTES : want, &got,
                                  diag);
        if (st != TT_OK) {
            return st;
        }
        pf->window_bytes = got;
        if (got < want) {
            return fail_at(diag, TT_ERR_FORMAT, off,
                           "is cut off: the file became shorter", place->id);
        }
    }
    pf->next_read = off + want;
    *bytes = pf->window + (off - pf->window_at);
    return TT_OK;
}

static TtStatus load_inherited(TtPageFile *pf, const TtPlace *place, void *to,
                          TtDiag *diag)
{
    TtStatus st = pf->origin ? pf->origin(pf->origin_opaque, place->hash, to, diag)
                           : TT_END;

    return st <= 0 ? st :
        fail_at(diag, TT_ERR_FORMAT, place->offset, pf->origin ?
                "is inherited, and the run that it comes from no longer has it" :
                "is inherited from another run, which is not available", place->id);
}

static TtStatus load_stored(TtPageFile *pf, const TtPlace *place, void *to,
                            TtDiag *diag)
{
    const uint8_t *stored;
    TtStatus st = tt_pagefile_read_stored(pf, place, &stored, diag);

    if (st != TT_OK) {
        return st;
    }
    if (place->len == TT_PAGE_BYTES) {
        memcpy(to, stored, TT_PAGE_BYTES);
    } else if (ZSTD_decompressDCtx(pf->dctx, to, TT_PAGE_BYTES, stored,
                                   place->len) != TT_PAGE_BYTES) {
        return fail_at(diag, TT_ERR_FORMAT, place->offset,
                       "is damaged: it cannot be decompressed", place->id);
    }
    return TT_OK;
}

TtStatus tt_pagefile_load(TtPageFile *pf, const TtPlace *place, void *to,
                          TtDiag *diag)
{
    XXH128_hash_t hash;
    TtStatus st;

    if (!place->offset) {
        return tt_fail(diag, TT_ERR_FORMAT, "pages: version %" PRIu64 " is lost: "
                       "its part of the file is damaged", place->id);
    }
    st = place->len ? load_stored(pf, place, to, diag)
                    : load_inherited(pf, place, to, diag);
    if (st != TT_OK) {
        return st;
    }
    hash = XXH3_128bits(to, TT_PAGE_BYTES);
    if (hash.low64 != place->hash[0] || hash.high64 != place->hash[1]) {
        return fail_at(diag, TT_ERR_FORMAT, place->offset,
                       "is damaged: its hash is wrong", place->id);
    }
    return TT_OK;
}

bool tt_pagefile_broken(const TtPageFile *pf)
{
    return pf->is_broken;
}

/* ---- life ---- */

uint64_t tt_pagefile_live_bytes(const TtPageFile *pf)
{
    uint64_t n = 0;

    for (size_t i = 0; i < pf->groups->len; i++) {
        n += g_array_index(pf->groups, TtPageGroup, i).n_live;
    }
    return TT_F_PHEAD_BYTES + pf->live_bytes + n * (TT_F_ENTRY_BYTES + 8) +
           (n / TT_F_GROUP_PAGES_MAX + 1) * TT_F_GROUP_BYTES;
}

void tt_pagefile_scan_done(TtPageFile *pf)
{
    g_free(pf->entry);
    pf->entry = NULL;
    pf->cap_entries = 0;
    if (pf->before) {
        g_hash_table_destroy(pf->before);
        pf->before = NULL;
    }
}

TtPageFileStats tt_pagefile_stats(const TtPageFile *pf)
{
    return (TtPageFileStats) {
        .file_bytes = pf->end,
        .stored_bytes = pf->stored_bytes,
        .live_bytes = pf->live_bytes,
        .torn_bytes = pf->torn_bytes,
        .n_versions = pf->n_versions,
        .n_inherited = pf->n_inherited,
        .n_damaged_groups = pf->n_damaged,
    };
}

TtPageFile *tt_pagefile_new(TtIo *io, const uint8_t uuid[16])
{
    TtPageFile *pf = g_new0(TtPageFile, 1);

    pf->io = io;
    memcpy(pf->uuid, uuid, sizeof(pf->uuid));
    pf->seed = tt_page_seed(uuid);
    pf->groups = g_array_new(false, false, sizeof(TtPageGroup));
    pf->end = TT_F_PHEAD_BYTES;
    pf->cctx = ZSTD_createCCtx();
    pf->dctx = ZSTD_createDCtx();
    g_assert(pf->cctx && pf->dctx);
    return pf;
}

void tt_pagefile_set_origin(TtPageFile *pf, TtPageOrigin origin, void *opaque)
{
    pf->origin = origin;
    pf->origin_opaque = opaque;
}

TtStatus tt_pagefile_create(TtIo *io, const uint8_t uuid[16],
                            TtPageFile **out, TtDiag *diag)
{
    TtStatus st = tt_page_head_write(io, TT_F_PAGES_MAGIC, uuid, 0, diag);

    *out = st == TT_OK ? tt_pagefile_new(io, uuid) : NULL;
    return st;
}

void tt_pagefile_free(TtPageFile *pf)
{
    if (pf) {
        tt_pagefile_scan_done(pf);
        g_array_free(pf->groups, true);
        ZSTD_freeCCtx(pf->cctx);
        ZSTD_freeDCtx(pf->dctx);
        g_free(pf->draft);
        g_free(pf);
    }
}
