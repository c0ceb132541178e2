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

#define CLEAN_VERSIONS_MAX  16384u  /* bounds the time of one flush */

typedef struct Move {
    TtPlace from;
    TtVersion version;
} Move;

static int move_compare(const void *a, const void *b)
{
    uint64_t x = ((const Move *)a)->from.id, y = ((const Move *)b)->from.id;

    return (x > y) - (x < y);
}

/* Collects the versions in the picked groups: there are @cap. O(versions). */
static unsigned collect_moves(TtPageStore *ps, Move *move, unsigned cap)
{
    unsigned n = 0;

    for (TtVersion v = tt_pagepool_next(ps->pool, 0); v;
         v = tt_pagepool_next(ps->pool, v)) {
        TtPlace place = tt_pagepool_place(ps->pool, v);

        if (place.id && tt_pagefile_is_picked(ps->file->pages, &place)) {
            g_assert(n < cap);
            move[n++] = (Move) { place, v };
        }
    }
    qsort(move, n, sizeof(*move), move_compare);
    return n;
}

/* Copies @n versions into a new group. */
static TtStatus move_group(TtPageStore *ps, const Move *move, unsigned n)
{
    TtPageFile *pf = ps->file->pages;
    TtStatus st = tt_pagefile_begin(pf, true, NULL);

    for (unsigned i = 0; i < n && st == TT_OK; i++) {
        st = tt_pagefile_put_copy(pf, &move[i].from, NULL);
    }
    if (st == TT_OK) {
        st = tt_pagefile_commit(pf, NULL);
    }
    for (unsigned i = 0; i < n && st == TT_OK; i++) {
        TtPlace place = tt_pagefile_placed(pf, i);

        tt_pagefile_disuse(pf, &move[i].from);
        tt_pagepool_set_place(ps->pool, move[i].version, &place);
    }
    return st;
}

/* Empties the groups that are picked. */
static TtStatus clean(TtPageStore *ps)
{
    unsigned n = tt_pagefile_pick(ps->file->pages, CLEAN_VERSIONS_MAX);
    g_autofree Move *move = g_new(Move, MAX(n, 1));
    TtStatus st = TT_OK;

    n = n ? collect_moves(ps, move, n) : 0;
    for (unsigned i = 0; i < n && st == TT_OK; i += TT_F_GROUP_PAGES_MAX) {
        st = move_group(ps, move + i, MIN(n - i, TT_F_GROUP_PAGES_MAX));
    }
    return st;
}

TtStatus tt_storefile_give_back(TtPageStore *ps, TtDiag *diag)
{
    TtStoreFile *f = ps->file;
    TtStatus st;

    /* A failure costs space, and nothing else: the next flush tries again,
     * unless the file is damaged. */
    if (!f->no_cleaning && tt_pagefile_wants_cleaning(f->pages) &&
        clean(ps) == TT_ERR_FORMAT) {
        f->no_cleaning = true;
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
