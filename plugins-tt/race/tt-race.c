/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The race finder: clocks, and what an access does with them.
 *
 * clock[u][v] is how far of v's accesses come before u's next one. A vCPU's own clock
 * goes on when it has let others know: releases, sends, writes a synchronisation. An
 * access with clock c of v comes before u's next one if c <= clock[u][v].
 */
#include "plugins-tt/race/tt-race-int.h"

#include <assert.h>
#include <string.h>

/* Locks by name that are known at a time; all are forgotten when there are more. */
#define LOCKS_MAX   (1u << 18)

struct TtRace {
    TtRaceLimits limits;
    Clocks clock[N_MAX];
    Clocks mail[N_MAX];         /* interrupts on their way to it */
    GHashTable *locks;          /* number -> Clocks */
    Shadow shadow;
    Pairs pairs;
    uint64_t accesses, atomics, resets;
    bool is_at_end;             /* a clock is: all is to be forgotten */
    TtRaceObserver *observer;
    void *opaque;
};

/* ---- clocks ---- */

static void start_clocks(TtRace *r)
{
    memset(r->clock, 0, sizeof(r->clock));
    memset(r->mail, 0, sizeof(r->mail));
    for (unsigned i = 0; i < N_MAX; i++) {
        r->clock[i].of[i] = 1;
    }
}

static void tick(TtRace *r, unsigned vcpu)
{
    r->is_at_end |= ++r->clock[vcpu].of[vcpu] >= r->limits.max_clock;
}

static bool is_before(const TtRace *r, uint32_t clock, unsigned of, unsigned vcpu)
{
    return clock <= r->clock[vcpu].of[of];
}

/* Between two calls only: nobody has a var then. */
static void forget_at_end(TtRace *r)
{
    if (r->is_at_end) {
        r->is_at_end = false;
        r->resets++;
        tt_race_shadow_clear(&r->shadow);
        g_hash_table_remove_all(r->locks);
        start_clocks(r);
    }
}

TtRace *tt_race_new(const TtRaceLimits *limits)
{
    TtRace *r = g_new0(TtRace, 1);

    assert(limits->n_vcpus && limits->n_vcpus <= N_MAX);
    assert(limits->max_bytes >= TT_RACE_BYTES_MIN);
    r->limits = *limits;
    r->limits.max_clock = limits->max_clock ? limits->max_clock : UINT32_MAX;
    r->locks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    tt_race_shadow_init(&r->shadow, limits->max_bytes);
    tt_race_pairs_init(&r->pairs, limits->max_pairs);
    start_clocks(r);
    return r;
}

void tt_race_free(TtRace *r)
{
    if (r) {
        g_hash_table_destroy(r->locks);
        tt_race_shadow_cleanup(&r->shadow);
        tt_race_pairs_cleanup(&r->pairs);
        g_free(r);
    }
}

/* ---- locks and interrupts ---- */

void tt_race_acquire(TtRace *r, unsigned vcpu, uint64_t lock)
{
    const Clocks *c = g_hash_table_lookup(r->locks, &lock);

    if (c) {
        clocks_join(r->clock[vcpu].of, c->of);
    }
}

void tt_race_release(TtRace *r, unsigned vcpu, uint64_t lock)
{
    Clocks *c = g_hash_table_lookup(r->locks, &lock);

    if (!c) {
        if (g_hash_table_size(r->locks) == LOCKS_MAX) {
            r->is_at_end = true;        /* the accesses that they order, too */
            forget_at_end(r);
        }
        c = g_new0(Clocks, 1);
        g_hash_table_insert(r->locks, g_memdup2(&lock, sizeof(lock)), c);
    }
    clocks_join(c->of, r->clock[vcpu].of);
    tick(r, vcpu);
    forget_at_end(r);
}

void tt_race_send(TtRace *r, unsigned vcpu, uint32_t to)
{
    for (unsigned i = 0; i < r->limits.n_vcpus; i++) {
        if (to >> i & 1) {
            clocks_join(r->mail[i].of, r->clock[vcpu].of);
        }
    }
    tick(r, vcpu);
    forget_at_end(r);
}

void tt_race_receive(TtRace *r, unsigned vcpu)
{
    clocks_join(r->clock[vcpu].of, r->mail[vcpu].of);
}

/* ---- accesses ---- */

typedef struct At {
    TtRace *r;
    Page *page;
    const TtRaceAccess *a;
    uint32_t *clock;            /* of the vCPU */
} At;

static uint64_t address_of(const At *at, const Var *v)
{
    return at->page->number * TT_RACE_PAGE + v->cell * CELL + v->first;
}

static void found(const At *at, Var *v, const Stamp *s, unsigned vcpu, bool was_write)
{
    const TtRaceAccess *a = at->a;
    TtRaceSide earlier = { s->position, s->place, vcpu, was_write };
    TtRaceSide later = { a->position, a->place, a->vcpu, a->is_write };
    uint64_t addr = address_of(at, v);

    if (at->r->observer) {
        at->r->observer(at->r->opaque, addr, v->len, &earlier, &later);
    }
    v->has_example |= tt_race_pairs_add(&at->r->pairs, at->r->accesses, addr, v->len,
                                        &earlier, &later);
}

/* The last write of it, if any, is taken for a message that all its vCPU has done so far
 * comes before. */
static void make_sync(const At *at, Var *v)
{
    TtRace *r = at->r;
    Clocks message = { 0 };

    if (v->write.clock && v->writer != at->a->vcpu) {
        message = r->clock[v->writer];
        tick(r, v->writer);
    }
    tt_race_shadow_join_left(&r->shadow, at->page->number, message.of);
    clocks_join(at->clock, message.of);
    if (v->wide) {
        tt_race_shadow_narrow(at->page, v);
    }
    tt_race_shadow_widen(&r->shadow, at->page, v);
    memcpy(at->page->wides[v->wide].clock, message.of, sizeof(message));
    v->write = v->read = (Stamp) { 0 };
    v->reader = 0;
    v->is_sync = true;
    v->is_flag = false;
}

/* What others wrote as synchronisations comes before this access. */
static void take_clocks(const At *at, Var *v)
{
    const TtRaceAccess *a = at->a;

    if (a->is_atomic && !v->is_sync) {
        make_sync(at, v);
        if (v->has_example) {
            tt_race_pairs_note(&at->r->pairs, address_of(at, v), v->len);
        }
    }
    if (v->is_sync && !a->is_write) {
        clocks_join(at->clock, at->page->wides[v->wide].clock);
    }
}

static bool races_with(const At *at, const Stamp *s, unsigned vcpu)
{
    return s->clock && vcpu != at->a->vcpu && !is_before(at->r, s->clock, vcpu, at->a->vcpu);
}

/* Returns whether it races with one that read, or several. */
static bool check_readers(const At *at, Var *v)
{
    bool has_raced = false;

    if (v->reader != BY_SEVERAL) {
        has_raced = races_with(at, &v->read, v->reader);
        if (has_raced) {
            found(at, v, &v->read, v->reader, false);
        }
        return has_raced;
    }
    for (unsigned i = 0; i < at->r->limits.n_vcpus; i++) {
        const Stamp *s = &at->page->wides[v->wide].read[i];

        if (races_with(at, s, i)) {
            found(at, v, s, i, false);
            has_raced = true;
        }
    }
    return has_raced;
}

static void stamp_read(const At *at, Var *v, const Stamp *s)
{
    unsigned vcpu = at->a->vcpu;

    if (v->reader != BY_SEVERAL && races_with(at, &v->read, v->reader)) {
        tt_race_shadow_widen(&at->r->shadow, at->page, v);
        at->page->wides[v->wide].read[v->reader] = v->read;
        v->reader = BY_SEVERAL;
    }
    if (v->reader == BY_SEVERAL) {
        at->page->wides[v->wide].read[vcpu] = *s;
    } else {                            /* the one before it comes before this one */
        v->read = *s;
        v->reader = vcpu;
    }
}

static void stamp_write(const At *at, Var *v, const Stamp *s)
{
    if (v->wide) {
        tt_race_shadow_narrow(at->page, v);
    }
    v->write = *s;
    v->writer = at->a->vcpu;
    v->read = (Stamp) { 0 };
    v->reader = 0;
}

static void check(const At *at, Var *v)
{
    const TtRaceAccess *a = at->a;
    const Stamp now = { a->position, at->clock[a->vcpu], a->place };
    bool has_raced = races_with(at, &v->write, v->writer);

    if (has_raced) {
        found(at, v, &v->write, v->writer, true);
    }
    if (a->is_write) {
        has_raced |= check_readers(at, v);
    }
    if (has_raced && at->r->limits.has_flags) {
        v->is_flag = true;              /* when all of the access is looked at */
    } else if (a->is_write) {
        stamp_write(at, v, &now);
    } else {
        stamp_read(at, v, &now);
    }
}

/* Who reads it comes after this write. */
static bool give_clocks(const At *at, Var *v)
{
    if (v->is_sync) {
        memcpy(at->page->wides[v->wide].clock, at->clock, sizeof(Clocks));
    }
    return v->is_sync;
}

/* The usual case: bytes that are always used together, and are no synchronisation. True:
 * that is all. */
static bool access_alone(const At *at)
{
    unsigned offset = at->a->addr % TT_RACE_PAGE;
    uint16_t index = at->page->cells[offset / CELL];
    Var *v = &at->page->vars[index];

    if (!index || v->first != offset % CELL || v->len != at->a->size || v->is_sync ||
        at->a->is_atomic || at->r->limits.has_flags) {
        return false;
    }
    at->r->accesses++;
    check(at, v);
    return true;
}

/* First it comes after others, then it is looked at, then others come after it: as a
 * whole, however many vars it has. */
void tt_race_access(TtRace *r, const TtRaceAccess *a)
{
    At at = {
        .r = r, .a = a, .clock = r->clock[a->vcpu].of,
        .page = tt_race_shadow_page(&r->shadow, a->addr / TT_RACE_PAGE),
    };
    uint16_t list[TT_RACE_ACCESS_MAX];
    bool has_given = false;
    unsigned n;

    assert(a->vcpu < r->limits.n_vcpus);
    if (access_alone(&at)) {
        return;
    }
    n = tt_race_shadow_vars(&r->shadow, at.page, a->addr % TT_RACE_PAGE, a->size, list);
    r->accesses++;
    r->atomics += a->is_atomic && a->is_write;
    for (unsigned i = 0; i < n; i++) {
        take_clocks(&at, &at.page->vars[list[i]]);
    }
    for (unsigned i = 0; i < n; i++) {
        Var *v = &at.page->vars[list[i]];

        if (!v->is_sync) {
            check(&at, v);
        }
    }
    for (unsigned i = 0; i < n; i++) {
        if (at.page->vars[list[i]].is_flag) {
            make_sync(&at, &at.page->vars[list[i]]);
        }
    }
    for (unsigned i = 0; a->is_write && i < n; i++) {
        has_given |= give_clocks(&at, &at.page->vars[list[i]]);
    }
    if (has_given) {
        tick(r, a->vcpu);
    }
    forget_at_end(r);
}

/* ---- what was found ---- */

size_t tt_race_count(const TtRace *r)
{
    return r->pairs.all->len;
}

void tt_race_get(const TtRace *r, size_t i, TtRacePair *pair)
{
    assert(i < tt_race_count(r));
    *pair = *tt_race_pairs_at(&r->pairs, i);
}

void tt_race_stats(const TtRace *r, TtRaceStats *stats)
{
    *stats = (TtRaceStats) {
        .accesses = r->accesses, .atomics = r->atomics, .races = r->pairs.races,
        .not_kept = r->pairs.not_kept, .forgotten_pages = r->shadow.forgotten,
        .resets = r->resets, .peak_bytes = r->shadow.peak_bytes,
    };
}

void tt_race_observe(TtRace *r, TtRaceObserver *observer, void *opaque)
{
    r->observer = observer;
    r->opaque = opaque;
}
