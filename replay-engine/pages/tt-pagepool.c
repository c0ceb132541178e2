/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page pool: versions, found by content through a hash table, and the frames
 * that hold the bytes of those that are in memory.
 *
 *   version v -> slot { hash, refs, next, frame, place on disk or pack }
 *   frame f   -> 4 KiB of bytes; its tag is the version it belongs to, or 0
 *   pack      -> the same, compressed, in memory
 *   bucket[hash & mask] -> v -> slot.next -> ... -> 0      (used slots)
 *
 * Invariants, cited below (I3 is that of tt-pageslab.c):
 * I1  Two used slots never hold equal bytes, and none holds only zeros.
 *     (Unless a place on disk could not be read, or a file says otherwise:
 *     then a content may be kept twice, which costs space and nothing else.)
 * I2  A slot is used exactly when refs > 0; then it is in exactly one chain.
 * I4  The order of chains and slabs decides where bytes lie, never which
 *     version numbers compare equal: no result depends on it.
 * I5  A used slot has a frame, or a place or a pack (never both), or a frame and
 *     one of these. With a frame alone it is pending: it is never evicted.
 * I6  n_clean is the number of slots with a frame and a place or a pack: those
 *     that can be evicted.
 *
 * Cost (bench-pagestore; 2026-11, 2 vCPUs of a Xeon, 25,000 pages): hash and
 * copy take 27 ms with memcpy and 20 ms with a copy that goes past the cache,
 * since nobody reads a version soon. New memory adds 40 ms in 4 KiB pages and
 * 15 ms in huge ones; hence slabs of one huge page, and a reserve of emptied
 * slabs, so that adding and thinning in turn takes no new memory at all.
 */
#define XXH_INLINE_ALL
#include "tt-pagepool-int.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define BUCKETS_MIN     1024u

/* ---- hash table ---- */

static TtVersion *chain_of(TtPagePool *pool, XXH128_hash_t hash)
{
    return &pool->bucket[hash.low64 & (pool->n_buckets - 1)];
}

/* Keeps the chains short. When memory is short they just grow longer; only
 * the very first table is needed. */
static bool table_grow(TtPagePool *pool)
{
    uint32_t n = pool->n_buckets ? pool->n_buckets * 2 : BUCKETS_MIN;
    TtVersion *old = pool->bucket;
    uint32_t n_old = pool->n_buckets;

    if (pool->slots.n_used < n_old || n_old >= 1u << 31) {
        return true;
    }
    pool->bucket = tt_pagemem_try(pool->mem, n * sizeof(*old), true);
    if (!pool->bucket) {
        pool->bucket = old;
        return old != NULL;
    }
    pool->n_buckets = n;
    for (uint32_t i = 0; i < n_old; i++) {
        for (TtVersion v = old[i], next; v; v = next) {
            Slot *slot = slot_of(pool, v);
            TtVersion *head = chain_of(pool, slot->hash);

            next = slot->next;
            slot->next = *head;
            *head = v;
        }
    }
    tt_pagemem_free(pool->mem, old, n_old * sizeof(*old));
    return true;
}

static void table_insert(TtPagePool *pool, TtVersion v)
{
    Slot *slot = slot_of(pool, v);
    TtVersion *head = chain_of(pool, slot->hash);

    slot->next = *head;
    *head = v;
}

/* Copies a page that nobody will read soon: it should not push the guest's
 * own data out of the cache, nor be read in only to be overwritten. */
static void page_copy_away(uint8_t *to, const void *from)
{
#ifdef __SSE2__
    const __m128i *in = from;
    __m128i *out = (__m128i *)to;

    for (size_t i = 0; i < TT_PAGE_BYTES / sizeof(*in); i += 4) {
        __m128i a = _mm_loadu_si128(in + i);
        __m128i b = _mm_loadu_si128(in + i + 1);
        __m128i c = _mm_loadu_si128(in + i + 2);
        __m128i d = _mm_loadu_si128(in + i + 3);

        _mm_stream_si128(out + i, a);
        _mm_stream_si128(out + i + 1, b);
        _mm_stream_si128(out + i + 2, c);
        _mm_stream_si128(out + i + 3, d);
    }
    _mm_sfence();
#else
    memcpy(to, from, TT_PAGE_BYTES);
#endif
}

static bool page_is_zero(const uint8_t *p)
{
    for (size_t i = 0; i < TT_PAGE_BYTES; i += 8 * sizeof(uint64_t)) {
        uint64_t w[8];

        memcpy(w, p + i, sizeof(w));
        if (w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7]) {
            return false;
        }
    }
    return true;
}

/* ---- interning ---- */

static bool slot_equals(TtPagePool *pool, const Slot *slot, const void *bytes)
{
    if (slot->frame) {
        return !memcmp(tt_slabs_at(&pool->frames, slot->frame), bytes,
                       TT_PAGE_BYTES);
    }
    return tt_pagepool_slot_load(pool, slot, pool->scratch) == TT_OK &&
           !memcmp(pool->scratch, bytes, TT_PAGE_BYTES);
}

static TtVersion table_find(TtPagePool *pool, XXH128_hash_t hash,
                            const void *bytes)
{
    for (TtVersion v = *chain_of(pool, hash); v; v = slot_of(pool, v)->next) {
        const Slot *slot = slot_of(pool, v);

        if (XXH128_isEqual(slot->hash, hash) &&
            slot_equals(pool, slot, bytes)) {
            return v;
        }
    }
    return TT_VERSION_ZERO;
}

bool tt_pagepool_is_like(TtPagePool *pool, TtVersion v, const void *bytes)
{
    return v ? XXH128_isEqual(slot_of(pool, v)->hash, XXH3_128bits(bytes, TT_PAGE_BYTES)) :
        page_is_zero(bytes);
}

bool tt_pagepool_intern(TtPagePool *pool, const void *bytes, TtVersion *out)
{
    XXH128_hash_t hash;
    uint32_t frame;
    TtVersion v;

    if (page_is_zero(bytes)) {
        *out = TT_VERSION_ZERO;
        return true;
    }
    if (!table_grow(pool)) {
        return false;
    }
    hash = XXH3_128bits(bytes, TT_PAGE_BYTES);
    v = table_find(pool, hash, bytes);
    if (v) {
        tt_pagepool_ref(pool, v);
        pool->stats.n_shared++;
        *out = v;
        return true;
    }
    v = tt_slabs_take(&pool->slots, 0);
    frame = v ? tt_slabs_take(&pool->frames, v) : 0;
    if (!frame) {
        if (v) {
            tt_slabs_give(&pool->slots, v);
        }
        return false;
    }
    page_copy_away(tt_slabs_at(&pool->frames, frame), bytes);
    *slot_of(pool, v) = (Slot) { .hash = hash, .refs = 1, .frame = frame };
    table_insert(pool, v);
    *out = v;
    return true;
}

bool tt_pagepool_adopt(TtPagePool *pool, const TtPlace *place, TtVersion *out)
{
    TtVersion v;

    g_assert(place->id && pool->backing.load);                  /* I5 */
    if (!table_grow(pool)) {
        return false;
    }
    v = tt_slabs_take(&pool->slots, 0);
    if (!v) {
        return false;
    }
    *slot_of(pool, v) = (Slot) {
        .hash = { .low64 = place->hash[0], .high64 = place->hash[1] },
        .refs = 1, .len = place->len, .id = place->id,
        .offset = place->offset,
    };
    table_insert(pool, v);
    pool->may_repeat = true;
    *out = v;
    return true;
}

TtVersion tt_pagepool_find(TtPagePool *pool, const uint64_t hash[2])
{
    XXH128_hash_t wanted = { .low64 = hash[0], .high64 = hash[1] };
    TtVersion v = pool->n_buckets ? *chain_of(pool, wanted) : TT_VERSION_ZERO;

    while (v && !XXH128_isEqual(slot_of(pool, v)->hash, wanted)) {
        v = slot_of(pool, v)->next;
    }
    return v;
}

void tt_pagepool_ref(TtPagePool *pool, TtVersion v)
{
    if (v != TT_VERSION_ZERO) {
        Slot *slot = slot_of(pool, v);

        g_assert(slot->refs > 0 && slot->refs < UINT32_MAX);    /* I2 */
        slot->refs++;
    }
}

void tt_pagepool_unref(TtPagePool *pool, TtVersion v)
{
    TtVersion *link;
    Slot *slot;

    if (v == TT_VERSION_ZERO) {
        return;
    }
    slot = slot_of(pool, v);
    g_assert(slot->refs > 0);                                   /* I2 */
    if (--slot->refs > 0) {
        return;
    }
    for (link = chain_of(pool, slot->hash); *link != v;
         link = &slot_of(pool, *link)->next) {
        g_assert(*link);
    }
    *link = slot->next;
    tt_pagepool_frame_drop(pool, slot);
    tt_pagepool_pack_drop(pool, slot);
    if (slot->id && pool->backing.gone) {
        TtPlace place = place_of(slot);

        pool->backing.gone(pool->backing.opaque, &place);
    }
    slot->id = 0;
    tt_slabs_give(&pool->slots, v);
}

/* ---- places ---- */

TtPlace tt_pagepool_place(const TtPagePool *pool, TtVersion v)
{
    return place_of(slot_of(pool, v));
}

void tt_pagepool_set_place(TtPagePool *pool, TtVersion v, const TtPlace *place)
{
    Slot *slot = slot_of(pool, v);

    g_assert(slot->refs > 0 && place->id);
    pool->n_clean += slot->frame && !is_backed(slot);           /* I6 */
    tt_pagepool_pack_drop(pool, slot);
    slot->id = place->id;
    slot->offset = place->offset;
    slot->len = place->len;
    slot->is_marked = false;
}

bool tt_pagepool_mark(TtPagePool *pool, TtVersion v)
{
    Slot *slot = slot_of(pool, v);
    bool was_marked = slot->is_marked;

    slot->is_marked = true;
    return !was_marked;
}

void tt_pagepool_unmark(TtPagePool *pool, TtVersion v)
{
    slot_of(pool, v)->is_marked = false;
}

TtVersion tt_pagepool_next(const TtPagePool *pool, TtVersion v)
{
    uint32_t end = pool->slots.n_slabs * TT_SLAB_ITEMS;

    for (v++; v <= end; v++) {
        const TtSlab *slab = tt_slab_of(&pool->slots, v);

        if (!slab || !slab->used) {
            v += TT_SLAB_ITEMS - 1 - (v - 1) % TT_SLAB_ITEMS;
        } else if (slot_of(pool, v)->refs) {
            return v;
        }
    }
    return TT_VERSION_ZERO;
}

/* ---- questions ---- */

const void *tt_pagepool_bytes(const TtPagePool *pool, TtVersion v)
{
    const Slot *slot = v == TT_VERSION_ZERO ? NULL : slot_of(pool, v);

    return slot && slot->frame ? tt_slabs_at(&pool->frames, slot->frame)
                               : NULL;
}

uint64_t tt_pagepool_count(const TtPagePool *pool)
{
    return pool->slots.n_used;
}

uint64_t tt_pagepool_idle_bytes(const TtPagePool *pool)
{
    return tt_slabs_idle_bytes(&pool->frames);
}

uint32_t tt_pagepool_refs(const TtPagePool *pool, TtVersion v)
{
    return slot_of(pool, v)->refs;
}

TtPagePoolStats tt_pagepool_stats(const TtPagePool *pool)
{
    TtPagePoolStats st = pool->stats;

    st.cached_bytes = pool->frames.n_used * TT_PAGE_BYTES;
    st.pending_bytes = (pool->frames.n_used - pool->n_clean) * TT_PAGE_BYTES;
    return st;
}

/* ---- for tests ---- */

static void check_slot(TtPagePool *pool, TtVersion v, const Slot *slot)
{
    const uint8_t *p = tt_pagepool_bytes(pool, v);

    g_assert(slot->frame || is_backed(slot));                   /* I5 */
    if (p) {
        g_assert(tt_slabs_tag(&pool->frames, slot->frame) == v);
        g_assert(!page_is_zero(p) || pool->may_repeat);         /* I1 */
        g_assert(pool->may_repeat ||
                 table_find(pool, slot->hash, p) == v);         /* I1 */
    }
}

void tt_pagepool_check(TtPagePool *pool)
{
    uint64_t n_used = 0, n_chained = 0, n_framed = 0, n_clean = 0, packed = 0;

    for (TtVersion v = tt_pagepool_next(pool, 0); v;
         v = tt_pagepool_next(pool, v)) {
        const Slot *slot = slot_of(pool, v);

        check_slot(pool, v, slot);
        n_used++;
        n_framed += slot->frame != 0;
        n_clean += slot->frame && is_backed(slot);
        packed += slot->id || !slot->pack ? 0 : slot->len;
    }
    for (uint32_t i = 0; i < pool->n_buckets; i++) {
        for (TtVersion v = pool->bucket[i]; v; v = slot_of(pool, v)->next) {
            g_assert(slot_of(pool, v)->refs > 0);               /* I2 */
            n_chained++;
        }
    }
    g_assert(n_used == n_chained && n_used == pool->slots.n_used);
    g_assert(n_framed == pool->frames.n_used && n_clean == pool->n_clean);
    g_assert(packed == pool->stats.packed_bytes);
    tt_slabs_check(&pool->slots);
    tt_slabs_check(&pool->frames);
}

/* ---- life ---- */

TtPagePool *tt_pagepool_new(TtPageMem *mem)
{
    TtPagePool *pool = g_new0(TtPagePool, 1);

    pool->mem = mem;
    pool->max_frames = UINT64_MAX;
    tt_slabs_init(&pool->slots, mem, sizeof(Slot));
    tt_slabs_init(&pool->frames, mem, TT_PAGE_BYTES);
    return pool;
}

void tt_pagepool_set_backing(TtPagePool *pool, const TtPageBacking *backing,
                             uint64_t cache_bytes)
{
    pool->backing = *backing;
    pool->max_frames = cache_bytes / TT_PAGE_BYTES;
}

void tt_pagepool_free(TtPagePool *pool)
{
    for (TtVersion v = tt_pagepool_next(pool, 0);
         v && pool->stats.packed_bytes; v = tt_pagepool_next(pool, v)) {
        tt_pagepool_pack_drop(pool, slot_of(pool, v));
    }
    ZSTD_freeCCtx(pool->cctx);
    ZSTD_freeDCtx(pool->dctx);
    tt_slabs_cleanup(&pool->slots);
    tt_slabs_cleanup(&pool->frames);
    tt_pagemem_free(pool->mem, pool->bucket,
                    pool->n_buckets * sizeof(*pool->bucket));
    g_free(pool);
}
