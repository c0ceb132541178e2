/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page tables of x86, as a debugger walks them, and sets of those that were used.
 * (Intel's manual, volume 3, 4.3 to 4.5.)
 */
#include "debug/tt-paging.h"

#include <glib.h>

#define PRESENT         1u
#define LARGE           0x80u
#define ADDRESS         0xffffffffff000ull      /* in an entry of 8 bytes */

/* ---- a walk ---- */

typedef struct Walk {
    const TtPaging *p;
    TtPagingEntry *entry;
    void *opaque;
    uint64_t found;
} Walk;

static TtPagingWalk step(Walk *w, uint64_t at, unsigned bytes)
{
    if (!w->entry(w->opaque, at, bytes, &w->found)) {
        return TT_WALK_UNKNOWN;
    }
    return w->found & PRESENT ? TT_WALK_MAPPED : TT_WALK_UNMAPPED;
}

/* Of tables of 512 entries; from the one at @table, whose entries map 2^@shift bytes. */
static TtPagingWalk walk_wide(Walk *w, uint64_t table, unsigned shift, uint64_t addr,
                              uint64_t *physical)
{
    for (;; shift -= 9) {
        TtPagingWalk s = step(w, (table & ADDRESS) + ((addr >> shift & 511) << 3), 8);

        if (s != TT_WALK_MAPPED) {
            return s;
        }
        if (shift == 12 || (shift <= 30 && w->found & LARGE)) {
            uint64_t inside = (1ull << shift) - 1;

            *physical = (w->found & ADDRESS & ~inside) | (addr & inside);
            return s;
        }
        table = w->found;
    }
}

static TtPagingWalk walk_long(Walk *w, uint64_t addr, uint64_t *physical)
{
    bool is_la57 = w->p->mode & TT_PAGING_LA57;
    int64_t sign = (int64_t)addr >> (is_la57 ? 56 : 47);

    if (sign != 0 && sign != -1) {
        return TT_WALK_UNMAPPED;
    }
    return walk_wide(w, w->p->root, is_la57 ? 48 : 39, addr, physical);
}

static TtPagingWalk walk_pae(Walk *w, uint64_t addr, uint64_t *physical)
{
    TtPagingWalk s = step(w, (w->p->root & ~0x1full) + (addr >> 27 & 0x18), 8);

    return s == TT_WALK_MAPPED ? walk_wide(w, w->found, 21, addr, physical) : s;
}

static TtPagingWalk walk_narrow(Walk *w, uint64_t addr, uint64_t *physical)
{
    TtPagingWalk s = step(w, (w->p->root & ~0xfffull) + (addr >> 20 & 0xffc), 4);

    if (s != TT_WALK_MAPPED) {
        return s;
    }
    if (w->found & LARGE && w->p->mode & TT_PAGING_PSE) {       /* PSE-36 */
        *physical = (w->found & 0xffc00000u) | (w->found & 0x1fe000) << 19 |
            (addr & 0x3fffff);
        return s;
    }
    s = step(w, (w->found & ~0xfffull) + (addr >> 10 & 0xffc), 4);
    if (s == TT_WALK_MAPPED) {
        *physical = (w->found & ~0xfffull) | (addr & 0xfff);
    }
    return s;
}

TtPagingWalk tt_paging_walk(const TtPaging *p, uint64_t addr, TtPagingEntry *entry,
                            void *opaque, uint64_t *physical)
{
    Walk w = { .p = p, .entry = entry, .opaque = opaque };

    if (p->mode & TT_PAGING_A20_OFF) {
        return TT_WALK_UNKNOWN;             /* nobody pages like that */
    }
    if (!(p->mode & TT_PAGING_ON)) {
        *physical = addr;
        return TT_WALK_MAPPED;
    }
    if (!(p->mode & TT_PAGING_PAE)) {
        return walk_narrow(&w, addr, physical);
    }
    return p->mode & TT_PAGING_LONG ? walk_long(&w, addr, physical) :
        walk_pae(&w, addr, physical);
}

bool tt_paging_address(bool is_long, uint64_t *addr)
{
    uint64_t low = (uint32_t)*addr;
    bool is = *addr == low || *addr == (uint64_t)(int32_t)low;

    if (is_long) {
        return true;
    }
    *addr = is ? low : *addr;
    return is;
}

/* ---- those that were used ---- */

struct TtPagings {
    uint64_t since;
    bool is_lost;
    GArray *all;                /* of TtPaging */
    GHashTable *known;          /* copies of those; NULL: they came from bytes */
};

static unsigned hash(gconstpointer key)
{
    const TtPaging *p = key;
    uint64_t h = (p->root ^ (uint64_t)p->cpu << 32 ^ p->mode) * 0x9e3779b97f4a7c15ull;

    return h >> 32;
}

static gboolean is_equal(gconstpointer a, gconstpointer b)
{
    const TtPaging *x = a, *y = b;

    return x->root == y->root && x->cpu == y->cpu && x->mode == y->mode;
}

TtPagings *tt_pagings_new(void)
{
    TtPagings *s = g_new0(TtPagings, 1);

    s->all = g_array_new(false, false, sizeof(TtPaging));
    s->known = g_hash_table_new_full(hash, is_equal, g_free, NULL);
    return s;
}

void tt_pagings_free(TtPagings *s)
{
    if (s) {
        g_array_free(s->all, true);
        g_clear_pointer(&s->known, g_hash_table_unref);
        g_free(s);
    }
}

void tt_pagings_begin(TtPagings *s, uint64_t since)
{
    s->since = since;
    s->is_lost = false;
    g_array_set_size(s->all, 0);
    g_hash_table_remove_all(s->known);
}

void tt_pagings_add(TtPagings *s, const TtPaging *p)
{
    if (s->is_lost || g_hash_table_contains(s->known, p)) {
        return;
    }
    if (s->all->len == TT_PAGINGS_MAX) {
        tt_pagings_lose(s);
        return;
    }
    g_array_append_val(s->all, *p);
    g_hash_table_add(s->known, g_memdup2(p, sizeof(*p)));
}

void tt_pagings_lose(TtPagings *s)
{
    s->is_lost = true;
}

bool tt_pagings_are_known(const TtPagings *s)
{
    return !s->is_lost;
}

uint64_t tt_pagings_since(const TtPagings *s)
{
    return s->since;
}

const TtPaging *tt_pagings_list(const TtPagings *s, size_t *n)
{
    *n = s->all->len;
    return (const TtPaging *)s->all->data;
}

/* ---- as bytes ---- */

#define AT_SINCE    0
#define AT_FLAGS    8
#define AT_COUNT    12
#define HEAD_BYTES  16
#define EACH_BYTES  16          /* root, vCPU, mode */
#define FLAG_LOST   1u

static int by_number(gconstpointer a, gconstpointer b)
{
    const TtPaging *x = a, *y = b;

    if (x->cpu != y->cpu) {
        return x->cpu < y->cpu ? -1 : 1;
    }
    if (x->root != y->root) {
        return x->root < y->root ? -1 : 1;
    }
    return x->mode < y->mode ? -1 : x->mode > y->mode;
}

uint8_t *tt_pagings_encode(const TtPagings *s, uint32_t *len)
{
    uint32_t n = s->is_lost ? 0 : s->all->len;
    uint8_t *bytes = g_malloc(HEAD_BYTES + n * EACH_BYTES);

    g_array_sort(s->all, by_number);
    tt_put_le64(bytes + AT_SINCE, s->since);
    tt_put_le32(bytes + AT_FLAGS, s->is_lost ? FLAG_LOST : 0);
    tt_put_le32(bytes + AT_COUNT, n);
    for (uint32_t i = 0; i < n; i++) {
        const TtPaging *p = &g_array_index(s->all, TtPaging, i);
        uint8_t *at = bytes + HEAD_BYTES + i * EACH_BYTES;

        tt_put_le64(at, p->root);
        tt_put_le32(at + 8, p->cpu);
        tt_put_le32(at + 12, p->mode);
    }
    *len = HEAD_BYTES + n * EACH_BYTES;
    return bytes;
}

TtPagings *tt_pagings_decode(const uint8_t *bytes, uint32_t len)
{
    uint32_t flags, n;
    TtPagings *s;

    if (len < HEAD_BYTES) {
        return NULL;
    }
    flags = tt_get_le32(bytes + AT_FLAGS);
    n = tt_get_le32(bytes + AT_COUNT);
    if (flags & ~FLAG_LOST || n > TT_PAGINGS_MAX || len != HEAD_BYTES + n * EACH_BYTES ||
        (!n && !(flags & FLAG_LOST))) {
        return NULL;
    }
    s = g_new0(TtPagings, 1);
    s->all = g_array_sized_new(false, false, sizeof(TtPaging), n);
    s->since = tt_get_le64(bytes + AT_SINCE);
    s->is_lost = flags & FLAG_LOST;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *at = bytes + HEAD_BYTES + i * EACH_BYTES;
        TtPaging p = {
            .root = tt_get_le64(at), .cpu = tt_get_le32(at + 8),
            .mode = tt_get_le32(at + 12),
        };

        s->is_lost |= p.mode & ~TT_PAGING_ALL;
        g_array_append_val(s->all, p);
    }
    return s;
}
