/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slabs: numbered items of one size, taken and given back in any order.
 *
 * Model: an item is a number from 1 on; its bytes stay where they are while it
 * is taken, and it carries a tag of 32 bits. Items live in slabs of 512. Empty
 * slabs go back to the system, but for a reserve, so that taking and giving in
 * turn needs no new memory.
 *
 * Context: one thread at a time. No I/O. Private to the page store, whose
 * memory is counted here, too.
 */
#ifndef TT_PAGESLAB_H
#define TT_PAGESLAB_H

#include "io/tt-base.h"

/*
 * Memory of one store: every allocation that grows with the guest goes
 * through here, is counted, and may fail.
 */
typedef struct TtPageMem {
    uint64_t held_bytes;
    uint64_t fail_in;           /* tests: the Nth allocation from now on fails,
                                   and all after it; 0: none does */
    bool fails_once;            /* ... and none after it */
} TtPageMem;

/* May the next allocation happen? Always yes outside tests. */
bool tt_pagemem_may(TtPageMem *m);
/* NULL when memory is short. Zeroed when @zero. */
void *tt_pagemem_try(TtPageMem *m, size_t bytes, bool zero);
/* @bytes: what was asked for. @p may be NULL. */
void tt_pagemem_free(TtPageMem *m, void *p, size_t bytes);

#define TT_SLAB_ITEMS           512u
#define TT_SLABS_MAX            ((1u << 31) / TT_SLAB_ITEMS)
#define TT_SLAB_RESERVE_SHARE   8u  /* one empty slab is kept for so many */

typedef struct TtSlab {
    uint8_t *data;
    uint32_t number;
    uint32_t used;
    uint32_t free;              /* item, the chain goes on in its tag */
    struct TtSlab *prev, *next; /* room or empty list, I3 */
    uint32_t tag[TT_SLAB_ITEMS];
} TtSlab;

typedef struct TtSlabs {
    TtPageMem *mem;
    size_t item_bytes;
    bool is_huge;               /* a slab's data is one huge page */
    TtSlab **slab;              /* by number; NULL where one was freed */
    uint32_t n_slabs, cap_slabs;
    uint32_t n_live, n_empty;   /* slabs that are there; with no item used */
    TtSlab *room, *empty;       /* I3 */
    uint64_t n_used;            /* items */
} TtSlabs;

/* @mem is borrowed. @item_bytes: a page, or something small. */
void tt_slabs_init(TtSlabs *s, TtPageMem *mem, size_t item_bytes);
void tt_slabs_cleanup(TtSlabs *s);
/* 0 when memory is short. The bytes are what they
 * were when it was given back; of a new one undefined if huge, else 0. */
uint32_t tt_slabs_take(TtSlabs *s, uint32_t tag);
void tt_slabs_give(TtSlabs *s, uint32_t item);

static inline TtSlab *tt_slab_of(const TtSlabs *s, uint32_t item)
{
    return s->slab[(item - 1) / TT_SLAB_ITEMS];
}

static inline void *tt_slabs_at(const TtSlabs *s, uint32_t item)
{
    return tt_slab_of(s, item)->data +
           (item - 1) % TT_SLAB_ITEMS * s->item_bytes;
}

/* Of an item that is taken; whose are told apart from free ones by the user. */
static inline uint32_t tt_slabs_tag(const TtSlabs *s, uint32_t item)
{
    return tt_slab_of(s, item)->tag[(item - 1) % TT_SLAB_ITEMS];
}

/* Bytes of items that wait to be taken. */
static inline uint64_t tt_slabs_idle_bytes(const TtSlabs *s)
{
    return ((uint64_t)s->n_live * TT_SLAB_ITEMS - s->n_used) * s->item_bytes;
}

/* For tests: I3. */
void tt_slabs_check(const TtSlabs *s);

#endif
