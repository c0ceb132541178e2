/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Host clusters: how many changes name each (I1), and which are free.
 *
 * Free ones are given out in the order of the file, from a cursor on, so what is
 * written one after the other lies side by side, whatever it is for. The cursor goes
 * back to the front only when an eighth of the file is free: until then the file
 * grows, which keeps runs long and the search short.
 *
 * A host that is freed passes through three lists: free_next (freed now), free_now (a
 * commit that began later is under way), freed (that commit is durable; the caller may
 * give the space back first). Only then it is free (J3).
 */
#include "block-tt/tt-blockmap-int.h"

#define GROW_HOSTS      4096u           /* a multiple of 64 */
#define FREE_SHARE      8

void tt_alloc_init(TtBlockAlloc *a)
{
    memset(a, 0, sizeof(*a));
    a->lost_from = UINT32_MAX;
    a->free_next = g_array_new(FALSE, FALSE, sizeof(TtHostRun));
    a->free_now = g_array_new(FALSE, FALSE, sizeof(TtHostRun));
    a->freed = g_array_new(FALSE, FALSE, sizeof(TtHostRun));
    a->held_next = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    a->held_now = g_array_new(FALSE, FALSE, sizeof(uint32_t));
}

void tt_alloc_cleanup(TtBlockAlloc *a)
{
    g_free(a->ref);
    g_free(a->busy);
    g_free(a->held);
    if (a->freed) {
        g_array_unref(a->held_next);
        g_array_unref(a->held_now);
        g_array_unref(a->free_next);
        g_array_unref(a->free_now);
        g_array_unref(a->freed);
    }
}

/* Zeroed by calloc: what nobody touches takes no memory, however long the file is. */
static bool grow(TtBlockAlloc *a, uint64_t n)
{
    uint64_t room = MAX(n, (uint64_t)a->room + a->room / 4);
    uint32_t *ref;
    uint64_t *busy, *held;

    room = MIN((room + GROW_HOSTS - 1) / GROW_HOSTS * GROW_HOSTS,
               TT_BLOCKMAP_HOSTS_MAX);
    ref = g_try_new0(uint32_t, room);
    busy = g_try_new0(uint64_t, room / 64);
    held = g_try_new0(uint64_t, room / 64);
    if (!ref || !busy || !held) {
        g_free(ref);
        g_free(busy);
        g_free(held);
        return false;
    }
    if (a->room) {
        memcpy(ref, a->ref, a->room * sizeof(*ref));
        memcpy(busy, a->busy, a->room / 64 * sizeof(*busy));
        memcpy(held, a->held, a->room / 64 * sizeof(*held));
    }
    g_free(a->ref);
    g_free(a->busy);
    g_free(a->held);
    a->ref = ref;
    a->busy = busy;
    a->held = held;
    a->room = room;
    return true;
}

bool tt_alloc_reserve(TtBlockAlloc *a, uint64_t n)
{
    if (n > TT_BLOCKMAP_HOSTS_MAX || (n > a->room && !grow(a, n))) {
        return false;
    }
    if (n > a->n) {
        a->n_free += n - a->n;
        a->n = n;
    }
    return true;
}

void tt_alloc_trim(TtBlockAlloc *a)
{
    while (a->n && !tt_bit(a->busy, a->n - 1)) {
        a->n--;
        a->n_free--;
    }
    a->cursor = a->n;
}

static void mark_busy(TtBlockAlloc *a, uint32_t host, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        assert(!tt_bit(a->busy, host + i));
        tt_bit_put(a->busy, host + i, true);
    }
    a->n_free -= n;
}

void tt_alloc_untake(TtBlockAlloc *a, uint32_t host, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        assert(tt_bit(a->busy, host + i) && a->ref[host + i] == 0);
        tt_bit_put(a->busy, host + i, false);
    }
    a->n_free += n;
}

bool tt_alloc_claim(TtBlockAlloc *a, uint32_t host, uint32_t n)
{
    assert(host <= a->n && n <= a->n - host);
    for (uint32_t i = 0; i < n; i++) {
        if (tt_bit(a->busy, host + i)) {
            return false;
        }
    }
    mark_busy(a, host, n);
    return true;
}

/* The first free host from the cursor on; a->n: there is none. */
static uint32_t next_free(const TtBlockAlloc *a)
{
    uint32_t i = a->cursor;

    while (i < a->n) {
        uint64_t free = ~(a->busy[i / 64] >> i % 64);

        /* The shift brought in zeros, which look free: stop at the word's end. */
        if (i % 64) {
            free &= UINT64_MAX >> i % 64;
        }
        if (free) {
            return MIN(i + __builtin_ctzll(free), a->n);
        }
        i = (i / 64 + 1) * 64;
    }
    return a->n;
}

static uint32_t free_from(const TtBlockAlloc *a, uint32_t host, uint32_t n)
{
    uint32_t got = 0;

    while (got < n && host + got < a->n && !tt_bit(a->busy, host + got)) {
        got++;
    }
    return got;
}

TtStatus tt_alloc_take(TtBlockAlloc *a, uint32_t n, bool whole, TtHostRun *run,
                       TtDiag *diag)
{
    uint32_t host = a->n, got = 0;

    if (a->n_free && !whole) {
        host = next_free(a);
        if (host == a->n && a->n_free > a->n / FREE_SHARE) {
            a->cursor = 0;
            host = next_free(a);
        }
        got = free_from(a, host, n);
    }
    if (!got) {
        /* At the end; and there what is free already, before it. */
        host = a->n;
        while (host > 0 && a->n - host < n && !tt_bit(a->busy, host - 1)) {
            host--;
        }
        if (n > TT_BLOCKMAP_HOSTS_MAX - host) {
            return tt_fail(diag, TT_ERR_LIMIT, "the image has reached its limit of "
                           "clusters: delete versions, or convert it to an image with "
                           "larger clusters");
        }
        if (!tt_alloc_reserve(a, (uint64_t)host + n)) {
            return tt_fail(diag, TT_ERR_NOMEM, "not enough memory to make the image "
                           "larger");
        }
        got = n;
    }
    mark_busy(a, host, got);
    *run = (TtHostRun) { host, got };
    if (!whole) {
        a->cursor = host + got;
    }
    return TT_OK;
}

static void add_run(GArray *runs, uint32_t host, uint32_t n)
{
    TtHostRun run = { host, n };
    TtHostRun *last = runs->len ? &g_array_index(runs, TtHostRun, runs->len - 1) :
                      NULL;

    if (last && last->host + last->n == host) {
        last->n += n;
    } else {
        g_array_append_val(runs, run);
    }
}

void tt_alloc_free_later(TtBlockAlloc *a, uint32_t host, uint32_t n)
{
    add_run(a->free_next, host, n);
}

void tt_alloc_ref(TtBlockAlloc *a, uint32_t v)
{
    if (tt_v_is_host(v) && v < a->lost_from) {
        assert(v < a->n && tt_bit(a->busy, v) && a->ref[v] < UINT32_MAX);
        a->n_named += !a->ref[v]++;
    }
}

void tt_alloc_unref(TtBlockAlloc *a, uint32_t v)
{
    if (tt_v_is_host(v) && v < a->lost_from) {
        assert(a->ref[v] > 0);
        if (--a->ref[v] == 0) {
            a->n_named--;
            tt_alloc_free_later(a, v, 1);
        } else {
            g_array_append_val(a->held_next, v);
            tt_bit_put(a->held, v, true);
        }
    }
}

static void move_runs(GArray *to, GArray *from)
{
    for (guint i = 0; i < from->len; i++) {
        const TtHostRun *r = &g_array_index(from, TtHostRun, i);

        add_run(to, r->host, r->n);
    }
    g_array_set_size(from, 0);
}

void tt_alloc_commit_begin(TtBlockAlloc *a)
{
    move_runs(a->free_now, a->free_next);
    g_array_append_vals(a->held_now, a->held_next->data, a->held_next->len);
    g_array_set_size(a->held_next, 0);
}

static void put_held(TtBlockAlloc *a, const GArray *hosts, bool on)
{
    for (guint i = 0; i < hosts->len; i++) {
        tt_bit_put(a->held, g_array_index(hosts, uint32_t, i), on);
    }
}

void tt_alloc_let_go(TtBlockAlloc *a)
{
    put_held(a, a->held_now, false);
    put_held(a, a->held_next, true);    /* one may stand in both */
    g_array_set_size(a->held_now, 0);
}

void tt_alloc_commit_end(TtBlockAlloc *a, bool ok)
{
    if (ok) {
        move_runs(a->freed, a->free_now);
        a->frees += a->freed->len > 0;
        tt_alloc_let_go(a);
    }
}

uint64_t tt_blockmap_frees(const TtBlockMap *bm)
{
    return bm->alloc.frees;
}

bool tt_blockmap_next_freed(TtBlockMap *bm, uint64_t *host_offset, uint64_t *len)
{
    GArray *freed = bm->alloc.freed;

    if (!freed->len) {
        return false;
    }
    *host_offset = tt_host_offset(bm, g_array_index(freed, TtHostRun,
                                                    freed->len - 1).host);
    *len = tt_host_offset(bm, g_array_index(freed, TtHostRun, freed->len - 1).n);
    g_array_set_size(freed, freed->len - 1);
    return true;
}

void tt_blockmap_release(TtBlockMap *bm, uint64_t host_offset, uint64_t len)
{
    tt_alloc_untake(&bm->alloc, host_offset >> bm->table.cluster_bits,
                    len >> bm->table.cluster_bits);
}
