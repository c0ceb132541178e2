/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page pool: which versions have their bytes in a frame, which are packed, and which
 * are only on disk. A clock algorithm chooses the versions that leave memory.
 * Invariants I1 to I6: see tt-pagepool.c.
 */
#include "tt-pagepool-int.h"

/* A pack is worth it when it saves an eighth. */
#define PACK_BYTES_MAX  (TT_PAGE_BYTES * 7 / 8)
#define PACK_LEVEL      1

void tt_pagepool_pack_drop(TtPagePool *pool, Slot *slot)
{
    if (!slot->id && slot->pack) {
        pool->stats.packed_bytes -= slot->len;
        tt_pagemem_free(pool->mem, slot->pack, slot->len);
        slot->pack = NULL;
    }
}

TtStatus tt_pagepool_slot_load(TtPagePool *pool, const Slot *slot, void *to)
{
    TtPlace place = place_of(slot);
    TtStatus st;

    if (!slot->id) {
        size_t n = ZSTD_decompressDCtx(pool->dctx, to, TT_PAGE_BYTES,
                                       slot->pack, slot->len);

        g_assert(n == TT_PAGE_BYTES);   /* we made it, in this memory */
        return TT_OK;
    }
    st = pool->backing.load(pool->backing.opaque, &place, to);
    pool->stats.n_loads++;
    if (st != TT_OK) {
        pool->stats.n_bad_loads++;
        pool->may_repeat = true;
    }
    return st;
}

void tt_pagepool_frame_drop(TtPagePool *pool, Slot *slot)
{
    if (slot->frame) {
        pool->n_clean -= is_backed(slot);                       /* I6 */
        tt_slabs_give(&pool->frames, slot->frame);
        slot->frame = 0;
    }
}

/* The clock: the next slot that has a frame, and was not read since the hand
 * went by last. NULL: none of the next @steps slabs and frames. */
static Slot *clock_next(TtPagePool *pool, uint64_t *steps)
{
    uint32_t end = pool->frames.n_slabs * TT_SLAB_ITEMS;

    while (*steps && end) {
        uint32_t frame = pool->hand < end ? pool->hand + 1 : 1;
        TtVersion v;
        Slot *slot;

        --*steps;
        pool->hand = frame;
        if (!tt_slab_of(&pool->frames, frame) ||
            !tt_slab_of(&pool->frames, frame)->used) {
            pool->hand = (frame - 1 + TT_SLAB_ITEMS) / TT_SLAB_ITEMS *
                         TT_SLAB_ITEMS;
            continue;
        }
        /* A free frame's tag is another frame, whose slot does not name it. */
        v = tt_slabs_tag(&pool->frames, frame);
        if (!v || (v - 1) / TT_SLAB_ITEMS >= pool->slots.n_slabs ||
            !tt_slab_of(&pool->slots, v)) {
            continue;
        }
        slot = slot_of(pool, v);
        if (slot->frame != frame) {
            continue;
        }
        if (slot->is_recent) {
            slot->is_recent = false;
            continue;
        }
        return slot;
    }
    return NULL;
}

/* Gives up one frame whose bytes are elsewhere, too. False: there is none. */
static bool evict_one(TtPagePool *pool)
{
    uint64_t steps = UINT64_MAX;

    while (pool->n_clean) {
        Slot *slot = clock_next(pool, &steps);

        if (is_backed(slot)) {
            tt_pagepool_frame_drop(pool, slot);
            pool->stats.n_evicted++;
            return true;
        }
    }
    return false;
}

/* Compresses what is in @slot's frame alone, if that is of use. */
static void pack_one(TtPagePool *pool, Slot *slot)
{
    uint8_t to[TT_PAGE_BYTES];
    size_t len;

    if (slot->is_dense) {
        return;
    }
    len = ZSTD_compressCCtx(pool->cctx, to, PACK_BYTES_MAX,
                            tt_slabs_at(&pool->frames, slot->frame),
                            TT_PAGE_BYTES, PACK_LEVEL);
    if (ZSTD_isError(len)) {
        slot->is_dense = true;
        return;
    }
    slot->pack = tt_pagemem_try(pool->mem, len, false);
    if (!slot->pack) {
        return;
    }
    memcpy(slot->pack, to, len);
    slot->len = len;
    pool->n_clean++;                                            /* I6 */
    pool->stats.packed_bytes += len;
}

void tt_pagepool_pack(TtPagePool *pool, uint64_t pending, uint64_t all)
{
    /* Two rounds: the first one may only take the mark of what was read. */
    uint64_t steps = 2ull * pool->frames.n_slabs * TT_SLAB_ITEMS;
    Slot *slot;

    if (!pool->cctx) {
        pool->cctx = ZSTD_createCCtx();
        pool->dctx = ZSTD_createDCtx();
        g_assert(pool->cctx && pool->dctx);
    }
    while ((pool->frames.n_used - pool->n_clean) * TT_PAGE_BYTES > pending &&
           (slot = clock_next(pool, &steps))) {
        if (!is_backed(slot)) {
            pack_one(pool, slot);
        }
    }
    while (pool->frames.n_used * TT_PAGE_BYTES > all && evict_one(pool)) {
    }
}

void tt_pagepool_trim(TtPagePool *pool)
{
    while (pool->frames.n_used > pool->max_frames && evict_one(pool)) {
    }
}

TtStatus tt_pagepool_read(TtPagePool *pool, TtVersion v, const void **bytes)
{
    Slot *slot;
    uint32_t frame;
    void *to;
    TtStatus st;

    *bytes = NULL;
    if (v == TT_VERSION_ZERO) {
        return TT_OK;
    }
    slot = slot_of(pool, v);
    slot->is_recent = true;
    if (slot->frame) {
        *bytes = tt_slabs_at(&pool->frames, slot->frame);
        return TT_OK;
    }
    while (pool->frames.n_used >= pool->max_frames && evict_one(pool)) {
    }
    frame = tt_slabs_take(&pool->frames, v);
    to = frame ? tt_slabs_at(&pool->frames, frame) : pool->scratch;
    st = tt_pagepool_slot_load(pool, slot, to);
    if (st != TT_OK) {
        if (frame) {
            tt_slabs_give(&pool->frames, frame);
        }
        return st;
    }
    if (frame) {
        slot->frame = frame;
        pool->n_clean++;                                        /* I6 */
    }
    *bytes = to;
    return TT_OK;
}
