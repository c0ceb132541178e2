/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known of bytes, page by page. A page has its own two arrays, so that forgetting
 * it is freeing these. Who is forgotten: a hand goes around, and takes the first page
 * that was not used since it came past.
 */
#include "plugins-tt/race/tt-race-int.h"

#include <assert.h>
#include <string.h>

/* One, which is none, and a power of two: a page of words, or bytes, that are all used has
 * room. */
#define FIRST_VARS  (1 + 16)
#define FIRST_WIDES (1 + 4)

/* Pages with synchronisations that are forgotten one by one; all together when there are
 * more. */
#define LEFT_MAX    (1u << 14)

static_assert(sizeof(Var) == 48, "memory per var");
static_assert(sizeof(Wide) == 16 * N_MAX, "memory per wide");

static size_t page_bytes(const Page *p)
{
    return sizeof(*p) + p->max_vars * sizeof(Var) + p->max_wides * sizeof(Wide);
}

static void page_free(gpointer page)
{
    Page *p = page;

    g_free(p->vars);
    g_free(p->wides);
    g_free(p);
}

void tt_race_shadow_init(Shadow *s, size_t max_bytes)
{
    *s = (Shadow) { .max_bytes = max_bytes };
    s->pages = g_hash_table_new(g_int64_hash, g_int64_equal);
    s->left = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    s->ring = g_ptr_array_new_with_free_func(page_free);
}

void tt_race_shadow_clear(Shadow *s)
{
    g_hash_table_remove_all(s->pages);
    g_ptr_array_set_size(s->ring, 0);
    g_hash_table_remove_all(s->left);
    s->left_by_all = (Clocks) { 0 };
    memset(s->cache, 0, sizeof(s->cache));
    s->bytes = 0;
    s->hand = 0;
}

void tt_race_shadow_cleanup(Shadow *s)
{
    g_hash_table_destroy(s->pages);
    g_hash_table_destroy(s->left);
    g_ptr_array_free(s->ring, true);
}

/* ---- pages ---- */

static Clocks *left_of(Shadow *s, uint64_t number)
{
    Clocks *c = g_hash_table_lookup(s->left, &number);
    GHashTableIter all;
    gpointer other;

    if (!c && g_hash_table_size(s->left) == LEFT_MAX) {
        g_hash_table_iter_init(&all, s->left);
        while (g_hash_table_iter_next(&all, NULL, &other)) {
            clocks_join(s->left_by_all.of, ((Clocks *)other)->of);
        }
        g_hash_table_remove_all(s->left);
    }
    if (!c) {
        c = g_new0(Clocks, 1);
        g_hash_table_insert(s->left, g_memdup2(&number, sizeof(number)), c);
    }
    return c;
}

static void leave_clocks(Shadow *s, const Page *p)
{
    for (unsigned i = 1; i < p->n_vars; i++) {
        if (p->vars[i].is_sync) {
            clocks_join(left_of(s, p->number)->of, p->wides[p->vars[i].wide].clock);
        }
    }
}

void tt_race_shadow_join_left(const Shadow *s, uint64_t number, uint32_t clock[N_MAX])
{
    const Clocks *c = s->forgotten ? g_hash_table_lookup(s->left, &number) : NULL;

    if (c) {
        clocks_join(clock, c->of);
    }
    clocks_join(clock, s->left_by_all.of);
}

static void forget(Shadow *s, Page *p)
{
    Page **cached = &s->cache[p->number % CACHE_SIZE];

    leave_clocks(s, p);
    if (*cached == p) {
        *cached = NULL;
    }
    s->bytes -= page_bytes(p);
    s->forgotten++;
    g_hash_table_remove(s->pages, &p->number);
    g_ptr_array_remove_index_fast(s->ring, s->hand);    /* frees it */
}

/* @keep is in use. Ends: a second round finds none that was used. */
static void make_room(Shadow *s, size_t more, const Page *keep)
{
    while (s->bytes + more > s->max_bytes && s->ring->len > (keep ? 1 : 0)) {
        Page *p;

        s->hand = s->hand < s->ring->len ? s->hand : 0;
        p = s->ring->pdata[s->hand];
        if (p == keep || p->was_used) {
            p->was_used = p == keep;
            s->hand++;
        } else {
            forget(s, p);
        }
    }
    s->bytes += more;
    s->peak_bytes = MAX(s->peak_bytes, s->bytes);
}

static Page *page_new(Shadow *s, uint64_t number)
{
    Page *p = g_new0(Page, 1);

    p->number = number;
    p->max_vars = FIRST_VARS;
    p->n_vars = 1;
    p->vars = g_new(Var, p->max_vars);
    p->n_wides = 1;
    make_room(s, page_bytes(p), NULL);
    g_hash_table_insert(s->pages, &p->number, p);
    g_ptr_array_add(s->ring, p);
    return p;
}

Page *tt_race_shadow_page(Shadow *s, uint64_t number)
{
    Page **cached = &s->cache[number % CACHE_SIZE];
    Page *p = *cached;

    if (!p || p->number != number) {
        p = g_hash_table_lookup(s->pages, &number);
        p = p ? p : page_new(s, number);
        *cached = p;
    }
    p->was_used = true;
    return p;
}

/* ---- vars ---- */

/* Returns its index; moves all vars of the page. A cell has at most CELL of them. */
static uint16_t var_new(Shadow *s, Page *p)
{
    if (p->n_vars == p->max_vars) {
        make_room(s, (p->max_vars - 1) * sizeof(Var), p);
        p->max_vars += p->max_vars - 1;
        p->vars = g_renew(Var, p->vars, p->max_vars);
    }
    return p->n_vars++;
}

void tt_race_shadow_widen(Shadow *s, Page *p, Var *v)
{
    assert(!v->wide);
    if (p->free_wide) {
        v->wide = p->free_wide;
        p->free_wide = p->wides[v->wide].next_free;
    } else {
        if (p->n_wides >= p->max_wides) {
            uint16_t max = p->max_wides ? 2 * p->max_wides - 1 : FIRST_WIDES;

            make_room(s, (max - p->max_wides) * sizeof(Wide), p);
            p->max_wides = max;
            p->wides = g_renew(Wide, p->wides, max);
        }
        v->wide = p->n_wides++;
    }
    memset(&p->wides[v->wide], 0, sizeof(Wide));
}

void tt_race_shadow_narrow(Page *p, Var *v)
{
    p->wides[v->wide].next_free = p->free_wide;
    p->free_wide = v->wide;
    v->wide = 0;
}

/* The bytes from @at on, of the cell, become a var of their own that knows the same. */
static void cut(Shadow *s, Page *p, uint16_t index, unsigned at)
{
    uint16_t rest = var_new(s, p);
    Var *v = &p->vars[index], *w = &p->vars[rest];

    *w = *v;
    w->first = at;
    w->len = v->first + v->len - at;
    v->len = at - v->first;
    v->next = rest;
    if (v->wide) {
        w->wide = 0;
        tt_race_shadow_widen(s, p, w);
        p->wides[w->wide] = p->wides[v->wide];
    }
}

/* A var for a gap before @next, as the first of the cell or behind @before. */
static uint16_t fill(Shadow *s, Page *p, uint16_t *head, uint16_t before, uint16_t next,
                     unsigned first, unsigned len)
{
    uint16_t index = var_new(s, p);

    p->vars[index] = (Var) {
        .first = first, .len = len, .next = next, .cell = head - p->cells,
    };
    if (before) {
        p->vars[before].next = index;
    } else {
        *head = index;
    }
    return index;
}

/* Those of one cell, for the bytes from @low to @high. */
static unsigned vars_of_cell(Shadow *s, Page *p, uint16_t *head, unsigned low,
                             unsigned high, uint16_t *list)
{
    uint16_t before = 0, index = *head;
    unsigned n = 0;

    while (low < high) {
        const Var *v = &p->vars[index];

        if (index && v->first + v->len <= low) {
            before = index;
            index = v->next;
            continue;
        }
        if (!index || v->first > low) {
            unsigned end = index ? MIN(high, v->first) : high;

            before = fill(s, p, head, before, index, low, end - low);
            list[n++] = before;
            low = end;
            continue;
        }
        if (v->first < low) {
            cut(s, p, index, low);
            continue;                   /* then it ends there */
        }
        if (v->first + v->len > high) {
            cut(s, p, index, high);
        }
        list[n++] = index;
        low += p->vars[index].len;
    }
    return n;
}

unsigned tt_race_shadow_vars(Shadow *s, Page *p, unsigned offset, unsigned size,
                             uint16_t list[TT_RACE_ACCESS_MAX])
{
    unsigned end = offset + size, n = 0;

    assert(size && size <= TT_RACE_ACCESS_MAX && end <= TT_RACE_PAGE);
    while (offset < end) {
        unsigned cell = offset / CELL, low = offset % CELL;
        unsigned high = MIN(CELL, low + end - offset);

        n += vars_of_cell(s, p, &p->cells[cell], low, high, list + n);
        offset += high - low;
    }
    return n;
}
