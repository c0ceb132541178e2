/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Insides of the page pool: versions as slots, and their frames. Invariants I1
 * to I6: see tt-pagepool.c.
 */
#ifndef TT_PAGEPOOL_INT_H
#define TT_PAGEPOOL_INT_H

#include "tt-pagepool.h"

#include <glib.h>
#include <xxhash.h>
#include <zstd.h>

typedef struct Slot {
    XXH128_hash_t hash;
    uint32_t refs;
    TtVersion next;             /* in the hash chain */
    uint32_t frame;             /* 0: not in memory */
    uint16_t len;               /* of the place, or of the pack */
    bool is_recent;             /* read since the hand went by */
    bool is_marked : 1;
    bool is_dense : 1;          /* packing it is no use */
    uint64_t id;                /* of the place; 0: none */
    union {
        uint64_t offset;        /* of the place */
        void *pack;             /* without a place; NULL: none */
    };
} Slot;

struct TtPagePool {
    TtPageMem *mem;
    TtSlabs slots, frames;      /* versions, bytes */
    TtVersion *bucket;
    uint32_t n_buckets;         /* a power of two, or 0 at first */
    TtPageBacking backing;
    uint64_t max_frames;
    uint64_t n_clean;           /* I6 */
    uint32_t hand;              /* frame - 1 that the clock looks at next */
    bool may_repeat;            /* see I1 */
    ZSTD_CCtx *cctx;            /* NULL: nothing was packed yet */
    ZSTD_DCtx *dctx;
    TtPagePoolStats stats;
    uint8_t scratch[TT_PAGE_BYTES];
};

static inline Slot *slot_of(const TtPagePool *pool, TtVersion v)
{
    g_assert(v != TT_VERSION_ZERO &&
             (v - 1) / TT_SLAB_ITEMS < pool->slots.n_slabs);
    return tt_slabs_at(&pool->slots, v);
}

/* Are its bytes somewhere besides a frame? */
static inline bool is_backed(const Slot *slot)
{
    return slot->id || slot->pack;
}

static inline TtPlace place_of(const Slot *slot)
{
    return (TtPlace) { slot->id, slot->id ? slot->offset : 0, slot->len,
                       { slot->hash.low64, slot->hash.high64 } };
}

/* ---- tt-pageframes.c ---- */

/* @slot's bytes from its pack or its place into @to. Not TT_OK: what the
 * backing said. */
TtStatus tt_pagepool_slot_load(TtPagePool *pool, const Slot *slot, void *to);
void tt_pagepool_pack_drop(TtPagePool *pool, Slot *slot);
void tt_pagepool_frame_drop(TtPagePool *pool, Slot *slot);

#endif
