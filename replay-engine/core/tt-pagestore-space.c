/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store with files: giving space back.
 *
 * A group of versions becomes a hole when nobody needs any of them. When much is
 * dead, what lives in the deadest groups is copied to the end first; the copies
 * have the same numbers, so that no record changes.
 */
#include "tt-pagestore-file.h"

#include <stdlib.h>

#define CLEAN_ROUNDS_MAX    64u     /* bounds the time of one flush */

typedef struct Move {
    TtPlace from;
    TtVersion version;
} Move;

static int move_compare(const void *a, const void *b)
{
    uint64_t x = ((const Move *)a)->from.id, y = ((const Move *)b)->from.id;

    return (x > y) - (x < y);
}

/* Collects the versions in the picked groups. */
static unsigned collect_moves(TtPageStore *ps, Move *move)
{
    unsigned n = 0;

    for (TtVersion v = tt_pagepool_next(ps->pool, 0); v;
         v = tt_pagepool_next(ps->pool, v)) {
        TtPlace place = tt_pagepool_place(ps->pool, v);

        if (place.id && tt_pagefile_is_picked(ps->file->pages, &place)) {
            g_assert(n < TT_F_GROUP_PAGES_MAX);
            move[n++] = (Move) { place, v };
        }
    }
    qsort(move, n, sizeof(*move), move_compare);
    return n;
}

/* Copies what lives in the picked groups into a new one. */
static TtStatus clean_once(TtPageStore *ps, Move *move, TtDiag *diag)
{
    TtPageFile *pf = ps->file->pages;
    unsigned n = collect_moves(ps, move);
    TtStatus st = tt_pagefile_begin(pf, true, diag);

    for (unsigned i = 0; i < n && st == TT_OK; i++) {
        st = tt_pagefile_put_copy(pf, &move[i].from, diag);
    }
    if (st == TT_OK) {
        st = tt_pagefile_commit(pf, diag);
    }
    for (unsigned i = 0; i < n && st == TT_OK; i++) {
        TtPlace place = tt_pagefile_placed(pf, i);

        tt_pagefile_disuse(pf, &move[i].from);
        tt_pagepool_set_place(ps->pool, move[i].version, &place);
    }
    return st;
}

/* Nothing is pending: what nobody refers to, no record needs (W3). */
TtStatus tt_storefile_give_back(TtPageStore *ps, TtDiag *diag)
{
    TtStoreFile *f = ps->file;
    g_autofree Move *move = NULL;
    TtStatus st = TT_OK;

    for (unsigned i = 0; i < CLEAN_ROUNDS_MAX && !f->no_cleaning &&
         tt_pagefile_wants_cleaning(f->pages) && tt_pagefile_pick(f->pages);
         i++) {
        move = move ? move : g_new(Move, TT_F_GROUP_PAGES_MAX);
        if (clean_once(ps, move, NULL) != TT_OK) {
            f->no_cleaning = true;      /* costs space, and nothing else */
        }
    }
    if (!tt_pagefile_has_garbage(f->pages)) {
        return TT_OK;
    }
    st = f->pages_io->ops->sync(f->pages_io, diag);             /* J6 */
    if (st == TT_OK) {
        st = f->journal_io->ops->sync(f->journal_io, diag);
    }
    return st == TT_OK ? tt_pagefile_give_back(f->pages, diag) : st;
}
