/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Travels of the toy VM: see sim-travel.h.
 *
 * The straight run leaves behind, for every position, the digest, which stops
 * fire there and which pages were written on the way to it. From that an oracle
 * says how each movement must end; the timeline may take any way there.
 *
 * While a movement runs, the schedule adds and removes checkpoints, lets memory
 * get short, interrupts, and reports divergences. The first checkpoint is only
 * removed between movements: otherwise where a movement may end would depend on
 * the moment.
 */
#include "sim-travel.h"
#include "toyvm.h"
#include "tt-pagepool.h"
#include "tt/pagestore.h"
#include "tt/timeline.h"

#include <glib.h>

#define CPS_MAX     14

typedef struct SimCheckpoint {
    TtCheckpointId id;
    TtNodeId node;
    ToyRegs regs;
} SimCheckpoint;

typedef struct Sim {
    GRand *rng;                 /* one of the two: */
    const uint8_t *in, *in_end;

    ToyVm vm;
    uint64_t end;
    ToyVm *straight;            /* scratch of the straight run */
    uint64_t *digest, *acc;     /* per position */
    uint32_t *written;          /* per position: mask of pages */

    TtTimeline *tl;
    TtPageStore *ps;
    SimCheckpoint cp[CPS_MAX];
    unsigned n_cps;
    TtCheckpointId last_id;
    TtNodeId base;

    ToyStops stops;
    TtStopReason injected;      /* by the schedule, in this movement */
    SimStats *stats;
} Sim;

/* ---- schedule ---- */

/* A number below @n. */
static uint64_t pick(Sim *s, uint64_t n)
{
    uint64_t v = 0;

    if (s->rng) {
        return g_rand_int_range(s->rng, 0, n);
    }
    for (uint64_t left = n - 1; left && s->in < s->in_end; left >>= 8) {
        v = v << 8 | *s->in++;
    }
    return v % n;
}

static bool is_exhausted(const Sim *s)
{
    return !s->rng && s->in == s->in_end;
}

/* ---- straight run ---- */

static void run_straight(Sim *s, uint32_t seed)
{
    ToyVm *vm = g_new0(ToyVm, 1);

    s->digest = g_new0(uint64_t, s->end + 1);
    s->acc = g_new0(uint64_t, s->end + 1);
    s->written = g_new0(uint32_t, s->end + 1);
    for (toyvm_reset(vm, seed); ; toyvm_step(vm)) {
        uint64_t pos = vm->regs.pos;

        s->digest[pos] = toyvm_digest(vm);
        s->acc[pos] = vm->regs.acc;
        for (unsigned i = 0; i < TOYVM_PAGES; i++) {
            s->written[pos] |= (uint32_t)vm->was_written[i] << i;
        }
        if (pos == s->end) {
            break;
        }
    }
    g_free(vm);
}

static bool straight_breaks(const Sim *s, uint64_t pos)
{
    return s->stops.break_modulus && s->acc[pos] % s->stops.break_modulus == 0;
}

static bool straight_watches(const Sim *s, uint64_t pos)
{
    return s->stops.watch_page >= 0 &&
           (s->written[pos] >> s->stops.watch_page & 1);
}

static void check_state(const Sim *s)
{
    g_assert_cmpuint(s->vm.regs.pos, <=, s->end);
    g_assert_cmphex(toyvm_digest(&s->vm), ==, s->digest[s->vm.regs.pos]);
}

/* ---- checkpoints ---- */

static const void *fetch(void *opaque, uint64_t page)
{
    Sim *s = opaque;

    g_assert_cmpuint(page, <, TOYVM_PAGES);
    return s->vm.ram[page];
}

static void put(void *opaque, uint64_t page, const void *bytes)
{
    Sim *s = opaque;

    g_assert_cmpuint(page, <, TOYVM_PAGES);
    if (bytes) {
        memcpy(s->vm.ram[page], bytes, TOYVM_PAGE);
    } else {
        memset(s->vm.ram[page], 0, TOYVM_PAGE);
    }
}

static size_t dirty_list(const Sim *s, uint64_t *list)
{
    static const uint8_t zero[TOYVM_PAGE];
    size_t n = 0;

    for (unsigned i = 0; i < TOYVM_PAGES; i++) {
        if (s->base ? s->vm.is_dirty[i]
                    : memcmp(s->vm.ram[i], zero, TOYVM_PAGE) != 0) {
            list[n++] = i;
        }
    }
    return n;
}

static SimCheckpoint *cp_by_id(Sim *s, TtCheckpointId id)
{
    for (unsigned i = 0; i < s->n_cps; i++) {
        if (s->cp[i].id == id) {
            return &s->cp[i];
        }
    }
    g_assert_not_reached();
}

/* Makes base = the nearest checkpoint before here that is not @not, or else
 * any. False: memory is short. */
static bool rebase(Sim *s, const SimCheckpoint *not)
{
    const SimCheckpoint *to = NULL;
    uint64_t *pages;
    size_t n;

    for (unsigned i = 0; i < s->n_cps; i++) {
        const SimCheckpoint *c = &s->cp[i];
        bool is_before = c->regs.pos <= s->vm.regs.pos;

        if (c != not && (!to || (is_before && (to->regs.pos < c->regs.pos ||
                                    to->regs.pos > s->vm.regs.pos)))) {
            to = c;
        }
    }
    if (!to) {
        s->base = 0;
        return true;
    }
    pages = tt_pagestore_rebase(s->ps, s->base, to->node, &n);
    if (!pages) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        s->vm.is_dirty[pages[i]] = true;
    }
    g_free(pages);
    s->base = to->node;
    return true;
}

static void remove_checkpoint(Sim *s, TtCheckpointId id)
{
    SimCheckpoint *c = cp_by_id(s, id);

    if (c->node == s->base && !rebase(s, c)) {
        s->stats->n_nomem++;
        return;
    }
    tt_pagestore_delete(s->ps, c->node);
    tt_timeline_remove(s->tl, id);
    *c = s->cp[--s->n_cps];
    s->stats->n_removed++;
}

/* Removes some checkpoint; the first one only when @first_too. */
static void remove_some(Sim *s, bool first_too)
{
    TtCheckpointId first, id;
    uint64_t at;

    if (!s->n_cps) {
        return;
    }
    first = tt_timeline_find_after(s->tl, 0, &at);
    first = tt_timeline_find(s->tl, 0, NULL) ?: first;
    id = s->cp[pick(s, s->n_cps)].id;
    if (id != first || first_too) {
        remove_checkpoint(s, id);
    }
}

static void add_checkpoint(Sim *s)
{
    uint64_t list[TOYVM_PAGES], at, pos = s->vm.regs.pos;
    TtNodeId node;
    TtStatus st;

    if (tt_timeline_find(s->tl, pos, &at) && at == pos) {
        return;
    }
    if (s->n_cps == CPS_MAX) {
        TtCheckpointId id = tt_timeline_thin(s->tl, pos);

        if (id) {
            remove_checkpoint(s, id);
            s->stats->n_thinned++;
        }
        if (s->n_cps == CPS_MAX) {
            return;
        }
    }
    st = tt_pagestore_add(s->ps, pos, s->base, list, dirty_list(s, list),
                          fetch, s, &node);
    if (st == TT_ERR_NOMEM) {
        s->stats->n_nomem++;
        return;
    }
    if (st == TT_ERR_INVALID) {
        /* Only right when all checkpoints left lie later than here. */
        g_assert_true(!tt_timeline_find(s->tl, pos, NULL));
        return;
    }
    g_assert_cmpint(st, ==, TT_OK);
    s->cp[s->n_cps++] = (SimCheckpoint) { ++s->last_id, node, s->vm.regs };
    g_assert_cmpint(tt_timeline_add(s->tl, s->last_id, pos, pick(s, 8) == 0),
                    ==, TT_OK);
    if (s->base == 0 || pick(s, 2)) {
        s->base = node;
        memset(s->vm.is_dirty, 0, sizeof(s->vm.is_dirty));
    }
    s->stats->n_added++;
}

/* Something happens to the checkpoints, or nothing. */
static void disturb(Sim *s)
{
    switch (pick(s, 8)) {
    case 0:
        tt_pagestore_fail_alloc(s->ps, 1 + pick(s, 8));
        add_checkpoint(s);
        break;
    case 1:
        tt_pagestore_fail_alloc(s->ps, 1);
        remove_some(s, false);
        break;
    case 2:
        remove_some(s, false);
        break;
    case 3:
    case 4:
    case 5:
        add_checkpoint(s);
        break;
    default:
        break;
    }
    tt_pagestore_fail_alloc(s->ps, 0);
}

/* ---- carrying steps out ---- */

static void restore(Sim *s, const TtStep *step)
{
    SimCheckpoint *c = cp_by_id(s, step->checkpoint);
    uint64_t list[TOYVM_PAGES];
    size_t n = dirty_list(s, list);

    g_assert_cmpuint(c->regs.pos, ==, step->pos);
    g_assert_cmpint(tt_pagestore_restore(s->ps, c->node, s->base, list, n, put,
                                         s, NULL), ==, TT_OK);
    s->base = c->node;
    s->vm.regs = c->regs;
    memset(s->vm.is_dirty, 0, sizeof(s->vm.is_dirty));
    memset(s->vm.was_written, 0, sizeof(s->vm.was_written));
    check_state(s);
    tt_timeline_done(s->tl, c->regs.pos, TT_STOP_NONE);
}

static void report_hit(Sim *s)
{
    tt_timeline_hit(s->tl, s->vm.regs.pos);
    if (pick(s, 4) == 0) {
        tt_timeline_hit(s->tl, s->vm.regs.pos);
    }
}

/* Executes up to @to, or up to where the schedule interferes. */
static void execute(Sim *s, uint64_t to, bool is_scan)
{
    uint64_t stride = 1 + pick(s, 100), from = s->vm.regs.pos;
    uint64_t cut = pick(s, 40) ? UINT64_MAX : from + pick(s, 50);

    if (is_scan && toyvm_at_break(&s->vm, &s->stops)) {
        report_hit(s);
    }
    while (s->vm.regs.pos < MIN(to, MIN(s->end, cut))) {
        toyvm_step(&s->vm);
        s->stats->n_positions++;
        if (is_scan && (toyvm_at_break(&s->vm, &s->stops) ||
                        toyvm_at_watch(&s->vm, &s->stops))) {
            report_hit(s);
        }
        if (s->vm.regs.pos % stride == 0) {
            disturb(s);
        }
    }
    if (s->vm.regs.pos == cut) {
        s->injected = pick(s, 2) ? TT_STOP_INTERRUPTED : TT_STOP_DIVERGED;
    }
}

static void carry_out(Sim *s, const TtStep *step)
{
    uint64_t pos;

    if (pick(s, 8) == 0) {
        disturb(s);
        *step = tt_timeline_step(s->tl);
    }
}
