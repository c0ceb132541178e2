/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slabs: numbered items of one size.
 *
 *   item i        ->  slab (i - 1) / 512, place (i - 1) % 512
 *   slab.free     ->  item -> its tag -> ... -> 0          (free items)
 *   slabs.room    ->  slab -> slab.next -> ...             (some items used)
 *   slabs.empty   ->  slab -> slab.next -> ...             (no item used)
 *
 * I3  A slab is in the empty list when no item is used, in no list when all
 *     are, else in the room list. (I1 and I2 are the pool's.)
 */
#include "tt-pageslab.h"

#include <glib.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_BYTES      (2u << 20)

/* ---- memory ---- */

bool tt_pagemem_may(TtPageMem *m)
{
    if (m->fail_in == 0) {
        return true;
    }
    if (m->fail_in > 1) {
        m->fail_in--;
        return true;
    }
    m->fail_in = !m->fails_once;
    return false;
}

void *tt_pagemem_try(TtPageMem *m, size_t bytes, bool zero)
{
    void *p;

    if (!tt_pagemem_may(m)) {
        return NULL;
    }
    p = zero ? g_try_malloc0(MAX(bytes, 1)) : g_try_malloc(MAX(bytes, 1));
    if (p) {
        m->held_bytes += bytes;
    }
    return p;
}

void tt_pagemem_free(TtPageMem *m, void *p, size_t bytes)
{
    if (p) {
        g_assert(m->held_bytes >= bytes);
        m->held_bytes -= bytes;
        g_free(p);
    }
}

static size_t data_bytes(const TtSlabs *s)
{
    return s->item_bytes * TT_SLAB_ITEMS;
}

static uint8_t *data_new(TtSlabs *s)
{
    void *p;

    if (!s->is_huge) {
        return tt_pagemem_try(s->mem, data_bytes(s), true);
    }
    if (!tt_pagemem_may(s->mem) ||
        posix_memalign(&p, HUGE_BYTES, data_bytes(s))) {
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    (void)madvise(p, data_bytes(s), MADV_HUGEPAGE);     /* speed only */
#endif
    s->mem->held_bytes += data_bytes(s);
    return p;
}

static void data_free(TtSlabs *s, uint8_t *data)
{
    if (s->is_huge) {
        s->mem->held_bytes -= data_bytes(s);
        free(data);
    } else {
        tt_pagemem_free(s->mem, data, data_bytes(s));
    }
}

/* ---- lists ---- */

static void list_link(TtSlab **list, TtSlab *s)
{
    s->prev = NULL;
    s->next = *list;
    if (s->next) {
        s->next->prev = s;
    }
    *list = s;
}

static void list_unlink(TtSlab **list, TtSlab *s)
{
    if (s->prev) {
        s->prev->next = s->next;
    } else {
        g_assert(*list == s);
        *list = s->next;
    }
    if (s->next) {
        s->next->prev = s->prev;
    }
}

/* ---- slabs ---- */

/* A number for a new slab: one that was freed, or the next. False: none. */
static bool slab_number(TtSlabs *s, uint32_t *number)
{
    uint32_t cap = MAX(s->cap_slabs * 2, 64u);
    TtSlab **bigger;

    if (s->n_slabs < s->cap_slabs) {
        *number = s->n_slabs;
        return true;
    }
    for (uint32_t i = 0; i < s->n_slabs; i++) {
        if (!s->slab[i]) {
            *number = i;
            return true;
        }
    }
    if (s->n_slabs >= TT_SLABS_MAX) {
        return false;
    }
    bigger = tt_pagemem_try(s->mem, cap * sizeof(*bigger), true);
    if (!bigger) {
        return false;
    }
    if (s->n_slabs) {
        memcpy(bigger, s->slab, s->n_slabs * sizeof(*bigger));
    }
    tt_pagemem_free(s->mem, s->slab, s->cap_slabs * sizeof(*bigger));
    s->slab = bigger;
    s->cap_slabs = cap;
    *number = s->n_slabs;
    return true;
}

static bool slab_add(TtSlabs *s)
{
    uint32_t number;
    TtSlab *slab;

    if (!slab_number(s, &number)) {
        return false;
    }
    slab = tt_pagemem_try(s->mem, sizeof(*slab), true);
    if (!slab) {
        return false;
    }
    slab->data = data_new(s);
    if (!slab->data) {
        tt_pagemem_free(s->mem, slab, sizeof(*slab));
        return false;
    }
    slab->number = number;
    for (unsigned i = TT_SLAB_ITEMS; i-- > 0; ) {
        slab->tag[i] = slab->free;
        slab->free = number * TT_SLAB_ITEMS + i + 1;
    }
    s->slab[number] = slab;
    s->n_slabs = MAX(s->n_slabs, number + 1);
    list_link(&s->empty, slab);
    s->n_live++;
    s->n_empty++;
    return true;
}

static void slab_free(TtSlabs *s, TtSlab *slab)
{
    s->slab[slab->number] = NULL;
    s->n_live--;
    data_free(s, slab->data);
    tt_pagemem_free(s->mem, slab, sizeof(*slab));
}

uint32_t tt_slabs_take(TtSlabs *s, uint32_t tag)
{
    TtSlab *slab = s->room;
    uint32_t item;

    if (!slab) {
        if (!s->empty && !slab_add(s)) {
            return 0;
        }
        slab = s->empty;
        list_unlink(&s->empty, slab);
        s->n_empty--;
        list_link(&s->room, slab);
    }
    item = slab->free;
    slab->free = slab->tag[(item - 1) % TT_SLAB_ITEMS];
    slab->tag[(item - 1) % TT_SLAB_ITEMS] = tag;
    slab->used++;
    s->n_used++;
    if (!slab->free) {
        list_unlink(&s->room, slab);
    }
    return item;
}

void tt_slabs_give(TtSlabs *s, uint32_t item)
{
    TtSlab *slab = tt_slab_of(s, item);

    if (!slab->free) {
        list_link(&s->room, slab);
    }
    slab->tag[(item - 1) % TT_SLAB_ITEMS] = slab->free;
    slab->free = item;
    s->n_used--;
    if (--slab->used > 0) {
        return;
    }
    list_unlink(&s->room, slab);
    if (s->n_empty > s->n_live / TT_SLAB_RESERVE_SHARE) {
        slab_free(s, slab);
    } else {
        list_link(&s->empty, slab);
        s->n_empty++;
    }
}

void tt_slabs_init(TtSlabs *s, TtPageMem *mem, size_t item_bytes)
{
    *s = (TtSlabs) { .mem = mem, .item_bytes = item_bytes };
    s->is_huge = item_bytes * TT_SLAB_ITEMS == HUGE_BYTES;
}

void tt_slabs_cleanup(TtSlabs *s)
{
    for (uint32_t i = 0; i < s->n_slabs; i++) {
        if (s->slab[i]) {
            slab_free(s, s->slab[i]);
        }
    }
    tt_pagemem_free(s->mem, s->slab, s->cap_slabs * sizeof(*s->slab));
}

void tt_slabs_check(const TtSlabs *s)
{
    uint64_t n_used = 0, n_room = 0, n_empty = 0;

    for (uint32_t i = 0; i < s->n_slabs; i++) {
        const TtSlab *slab = s->slab[i];

        n_used += slab ? slab->used : 0;
        n_room += slab && slab->used && slab->free;
        n_empty += slab && !slab->used;
    }
    for (const TtSlab *slab = s->room; slab; slab = slab->next) {
        g_assert(slab->used && slab->free && n_room-- > 0);     /* I3 */
    }
    g_assert(n_room == 0 && n_empty == s->n_empty);
    for (const TtSlab *slab = s->empty; slab; slab = slab->next) {
        g_assert(!slab->used && n_empty-- > 0);                 /* I3 */
    }
    g_assert(n_empty == 0 && n_used == s->n_used);
}
