/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Page pool: the page versions of one page store, each content kept once.
 *
 * Model: a version is a number that stands for the content of one page. Equal
 * contents have the same number, unequal ones different numbers, so comparing
 * two pages is comparing two numbers. Version 0 is the page of zeros, costs
 * nothing and needs no reference. Every other version lives while somebody
 * holds a reference.
 *
 * Context: one thread at a time. No I/O. Private to the page store.
 */
#ifndef TT_PAGEPOOL_H
#define TT_PAGEPOOL_H

#include "tt/pagestore.h"

/*
 * Memory of one store: every allocation that grows with the guest goes
 * through here, is counted, and may fail.
 */
typedef struct TtPageMem {
    uint64_t held_bytes;
    uint64_t fail_in;           /* tests: the Nth allocation from now on fails,
                                   and all after it; 0: none does */
} TtPageMem;

/* May the next allocation happen? Always yes outside tests. */
bool tt_pagemem_may(TtPageMem *m);
/* NULL when memory is short. Zeroed when @zero. */
void *tt_pagemem_try(TtPageMem *m, size_t bytes, bool zero);
/* @bytes: what was asked for. @p may be NULL. */
void tt_pagemem_free(TtPageMem *m, void *p, size_t bytes);

typedef uint32_t TtVersion;
#define TT_VERSION_ZERO 0u

typedef struct TtPagePool TtPagePool;

/* @mem is borrowed and must outlive the pool. */
TtPagePool *tt_pagepool_new(TtPageMem *mem);
void tt_pagepool_free(TtPagePool *pool);
/*
 * tt_pagepool_intern: the version of the page at @bytes, with one reference
 * False when memory is short; the pool is then unchanged. O(1): one hash of
 * the page, and a copy when the content is new.
 */
bool tt_pagepool_intern(TtPagePool *pool, const void *bytes, TtVersion *out);
void tt_pagepool_ref(TtPagePool *pool, TtVersion v);
void tt_pagepool_unref(TtPagePool *pool, TtVersion v);
/* NULL for the zero page; otherwise valid while a reference is held. */
const void *tt_pagepool_bytes(const TtPagePool *pool, TtVersion v);
/* Different contents held now, the zero page not counted. */
uint64_t tt_pagepool_count(const TtPagePool *pool);
/* Bytes of pages that are allocated and wait to be used. */
uint64_t tt_pagepool_idle_bytes(const TtPagePool *pool);

/* For tests: references to @v; and all invariants of the pool, O(memory). */
uint32_t tt_pagepool_refs(const TtPagePool *pool, TtVersion v);
void tt_pagepool_check(TtPagePool *pool);

/* For tests: see TtPageMem. Declared here, defined by the page store. */
void tt_pagestore_fail_alloc(TtPageStore *ps, uint64_t nth);
/* For tests: asserts every invariant of the store. Expensive: O(memory). */
void tt_pagestore_check(TtPageStore *ps);
/* For tests and statistics: different page contents held. */
uint64_t tt_pagestore_versions(const TtPageStore *ps);

#endif
