/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page store with files: giving space back.
 *
 * A group of versions becomes a hole when none of them is needed. When much is dead,
 * the live versions of the deadest groups are copied to the end first; the copies have
 * the same numbers, so that no record changes.
 */
#include "tt-storefile.h"

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
static unsigned collect_moves(TtStoreFile *f, Move *move, unsigned cap)
{
    unsigned n = 0;

    for (TtVersion v = tt_pagepool_next(f->map->pool, 0); v;
         v = tt_pagepool_next(f->map->pool, v)) {
        TtPlace place = tt_pagepool_place(f->map->pool, v);

        if (place.id && tt_pagefile_is_picked(f->pages, &place)) {
            g_assert(n < cap);
            move[n++] = (Move) { place, v };
        }
    }
    qsort(move, n, sizeof(*move), move_compare);
    return n;
}

/* Copies @n versions into a new group. */
static TtStatus move_group(TtStoreFile *f, const Move *move, unsigned n)
{
    TtPageFile *pf = f->pages;
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
        tt_pagepool_set_place(f->map->pool, move[i].version, &place);
    }
    return st;
}

/* Empties the groups that are picked. */
static TtStatus clean(TtStoreFile *f)
{
    unsigned n = tt_pagefile_pick(f->pages, CLEAN_VERSIONS_MAX);
    g_autofree Move *move = g_new(Move, MAX(n, 1));
    TtStatus st = TT_OK;

    n = n ? collect_moves(f, move, n) : 0;
    for (unsigned i = 0; i < n && st == TT_OK; i += TT_F_GROUP_PAGES_MAX) {
        st = move_group(f, move + i, MIN(n - i, TT_F_GROUP_PAGES_MAX));
    }
    return st;
}

/* ---- a cap ---- */

/* All versions that have a place, by number. */
static Move *collect_all(TtStoreFile *f, size_t *n)
{
    Move *move = g_try_new(Move, tt_pagepool_count(f->map->pool) + 1);

    *n = 0;
    for (TtVersion v = tt_pagepool_next(f->map->pool, 0); move && v;
         v = tt_pagepool_next(f->map->pool, v)) {
        TtPlace place = tt_pagepool_place(f->map->pool, v);

        if (place.offset) {
            move[(*n)++] = (Move) { place, v };
        }
    }
    if (move) {
        qsort(move, *n, sizeof(*move), move_compare);
    }
    return move;
}

static TtStatus copy_all(TtPageFile *pf, TtPageFile *fresh, const Move *move,
                         size_t n, TtPlace *places, TtDiag *diag)
{
    g_autofree TtPlace *from = g_new(TtPlace, TT_F_GROUP_PAGES_MAX);
    TtStatus st = TT_OK;

    for (size_t i = 0; i < n && st == TT_OK; i += TT_F_GROUP_PAGES_MAX) {
        unsigned k, some = MIN(n - i, TT_F_GROUP_PAGES_MAX);

        for (k = 0; k < some; k++) {
            from[k] = move[i + k].from;
        }
        st = tt_pagefile_anew_put(pf, fresh, from, places + i, some, diag);
    }
    return st;
}

/* P7. Nothing is pending, and the journal has reached the disk (J6). */
static TtStatus make_anew(TtStoreFile *f, TtDiag *diag)
{
    TtPageFile *pf = f->pages, *fresh;
    size_t n;
    g_autofree Move *move = collect_all(f, &n);
    g_autofree TtPlace *places = g_try_new(TtPlace, n + 1);
    TtStatus st;

    if (!move || !places) {
        return tt_fail(diag, TT_ERR_NOMEM, "not enough memory to rewrite the "
                       "pages");
    }
    st = tt_pagefile_anew_begin(pf, &fresh, diag);
    if (st != TT_OK) {
        return st;
    }
    st = copy_all(pf, fresh, move, n, places, diag);
    if (st != TT_OK) {
        tt_pagefile_anew_abort(fresh);
        return st;
    }
    st = tt_pagefile_anew_end(pf, fresh, diag);
    for (size_t i = 0; i < n && st == TT_OK; i++) {
        tt_pagepool_set_place(f->map->pool, move[i].version, &places[i]);
    }
    return st;
}

bool tt_storefile_wants_thinning(const TtStoreFile *f, uint64_t bytes)
{

    return f && f->max_bytes &&
           tt_pagefile_live_bytes(f->pages) + tt_storefile_journal_live(f) +
           bytes > f->max_bytes / 5 * 2;
}

TtStatus tt_storefile_make_room(TtStoreFile *f, uint64_t bytes,
                                TtDiag *diag)
{
    uint64_t live, length;
    TtStatus st;

    if (!f || !f->max_bytes || !f->is_writable || f->is_behind ||
        f->pending->len) {
        return TT_OK;
    }
    live = tt_pagefile_live_bytes(f->pages);
    length = tt_pagefile_stats(f->pages).file_bytes;
    if (length <= live + live / 8 ||
        length + live + tt_pagejournal_bytes(f->journal) +
        tt_storefile_journal_live(f) + 2 * bytes <= f->max_bytes / 8 * 7) {
        return TT_OK;
    }
    st = f->journal_io->ops->sync(f->journal_io, diag);         /* J6 */
    return st == TT_OK ? make_anew(f, diag) : st;
}

/* ---- without one ---- */

/*
 * A group that was given back leaves a header, 4 KiB of some 1 MiB, and a table in
 * memory. So what is dead, holes included, is at most so many times what lives.
 */
#define HOLES_SHARE     8

void tt_storefile_renew(TtStoreFile *f, uint64_t least)
{
    uint64_t live;

    if (!f || !f->is_writable || f->is_behind || f->pending->len) {
        return;
    }
    live = tt_pagefile_live_bytes(f->pages);
    if (tt_pagefile_stats(f->pages).file_bytes >
        live * HOLES_SHARE + least &&
        f->journal_io->ops->sync(f->journal_io, NULL) == TT_OK) {   /* J6 */
        (void)make_anew(f, NULL);
    }
}

TtStatus tt_storefile_sync(TtStoreFile *f, TtDiag *diag)
{
    TtStatus st;

    if (!f || !f->is_writable) {
        return TT_OK;
    }
    st = f->pages_io->ops->sync(f->pages_io, diag);
    return st == TT_OK ? f->journal_io->ops->sync(f->journal_io, diag) : st;
}

TtStatus tt_storefile_give_back(TtStoreFile *f, TtDiag *diag)
{
    TtStatus st;

    /* A failure costs space, and nothing else: the next flush tries again,
     * unless the file is damaged. */
    if (!f->no_cleaning && tt_pagefile_wants_cleaning(f->pages) &&
        clean(f) == TT_ERR_FORMAT) {
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
