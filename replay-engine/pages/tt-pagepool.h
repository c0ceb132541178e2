/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page pool: the page versions of one page store, each content kept once.
 *
 * Model: a version is a number that stands for the content of one page. Equal
 * contents have the same number, unequal ones different numbers, so comparing
 * two pages is comparing two numbers. Version 0 is the page of zeros, costs
 * nothing and needs no reference. Every other version lives while somebody
 * holds a reference. Its bytes are in a frame in memory, at a *place* on disk (or
 * packed in memory, see tt_pagepool_pack), or both; what is both may lose its
 * frame when memory gets tight.
 *
 * Context: one thread at a time. I/O only in the functions of TtPageBacking,
 * if there are any. Private to the page store.
 */
#ifndef TT_PAGEPOOL_H
#define TT_PAGEPOOL_H

#include "pages/tt-page.h"
#include "tt-pageslab.h"

typedef uint32_t TtVersion;
#define TT_VERSION_ZERO 0u

typedef struct TtPagePool TtPagePool;

/* Where a version lies on disk, and what tells that it is the right one. */
typedef struct TtPlace {
    uint64_t id;                /* number in the file; 0: nowhere */
    uint64_t offset;
    uint16_t len;
    uint64_t hash[2];           /* XXH3-128: low, high */
} TtPlace;

typedef struct TtPageBacking {
    /* Puts the page at @place into @to and checks it. */
    TtStatus (*load)(void *opaque, const TtPlace *place, void *to);
    /* The last reference to what lies at @place went. */
    void (*gone)(void *opaque, const TtPlace *place);
    void *opaque;
} TtPageBacking;

typedef struct TtPagePoolStats {
    uint64_t cached_bytes, pending_bytes;   /* in frames; only there */
    uint64_t packed_bytes;      /* compressed, in memory */
    uint64_t n_shared;          /* interned and found, zero pages not counted */
    uint64_t n_loads, n_bad_loads, n_evicted;
} TtPagePoolStats;

/* @mem is borrowed and must outlive the pool. */
TtPagePool *tt_pagepool_new(TtPageMem *mem);
void tt_pagepool_free(TtPagePool *pool);
/* @cache_bytes: pages in memory beyond this are dropped if they are on disk. */
void tt_pagepool_set_backing(TtPagePool *pool, const TtPageBacking *backing,
                             uint64_t cache_bytes);
/*
 * tt_pagepool_intern: the version of the page at @bytes, with one reference
 * False when memory is short; the pool is then unchanged. O(1): one hash of
 * the page, and a copy when the content is new.
 */
bool tt_pagepool_intern(TtPagePool *pool, const void *bytes, TtVersion *out);
/* The version with this hash; 0: there is none. Takes no reference. */
TtVersion tt_pagepool_find(TtPagePool *pool, const uint64_t hash[2]);
/* Is the page at @bytes @v, by its hash? Nothing is read. */
bool tt_pagepool_is_like(TtPagePool *pool, TtVersion v, const void *bytes);
void tt_pagepool_ref(TtPagePool *pool, TtVersion v);
void tt_pagepool_unref(TtPagePool *pool, TtVersion v);
/* A version that is on disk only, with one reference. False: memory. */
bool tt_pagepool_adopt(TtPagePool *pool, const TtPlace *place, TtVersion *out);
/* NULL for the zero page, and for what is on disk only; otherwise valid while
 * a reference is held and nothing is read. */
const void *tt_pagepool_bytes(const TtPagePool *pool, TtVersion v);
/* The same, from disk if it must be: *@bytes is valid until the next call. Not
 * TT_OK: what the backing said. Works without memory. */
TtStatus tt_pagepool_read(TtPagePool *pool, TtVersion v, const void **bytes);
/* Drops from memory what is above the limit and on disk. */
void tt_pagepool_trim(TtPagePool *pool);
/* Compresses pages that are in a frame alone, until those have @pending bytes;
 * then drops frames until all have @all; each as far as it goes. Some
 * microseconds a page. */
void tt_pagepool_pack(TtPagePool *pool, uint64_t pending, uint64_t all);
/* id 0: none yet. */
TtPlace tt_pagepool_place(const TtPagePool *pool, TtVersion v);
void tt_pagepool_set_place(TtPagePool *pool, TtVersion v,
                           const TtPlace *place);
/* Marks @v as waiting to be written, until it has a place or is unmarked; false
 * when it was marked already. */
bool tt_pagepool_mark(TtPagePool *pool, TtVersion v);
void tt_pagepool_unmark(TtPagePool *pool, TtVersion v);
/* The versions one after the other, from @v = 0 on; 0 is the end. */
TtVersion tt_pagepool_next(const TtPagePool *pool, TtVersion v);
TtPagePoolStats tt_pagepool_stats(const TtPagePool *pool);
/* Different contents held now, the zero page not counted. */
uint64_t tt_pagepool_count(const TtPagePool *pool);
/* Bytes of pages that are allocated and wait to be used. */
uint64_t tt_pagepool_idle_bytes(const TtPagePool *pool);

/* For tests: references to @v; and all invariants of the pool, O(memory). */
uint32_t tt_pagepool_refs(const TtPagePool *pool, TtVersion v);
void tt_pagepool_check(TtPagePool *pool);

#endif
