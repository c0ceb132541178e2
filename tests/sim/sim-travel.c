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
#include "tt-pagestore-test.h"
#include "pages/tt-pagestore.h"
#include "timeline/tt-timeline.h"

#include <glib.h>

#define CPS_MAX     14
#define SLACK       32          /* positions in a row where no VM can stand */

typedef struct SimCheckpoint {
    TtCheckpointId id;
    TtNodeId node;
    ToyRegs regs;
} SimCheckpoint;

/* What the straight run saw, by position. */
typedef struct History {
    uint64_t end;
    bool *stands;               /* can the VM stand here? If not, the rest
                                   is unknown */
    uint64_t *digest, *acc;
    uint32_t *written;          /* mask of pages */
} History;

typedef struct Sim {
    GRand *rng;                 /* one of the two: */
    const uint8_t *in, *in_end;

    ToyVm vm;
    const History *h;

    TtTimeline *tl;
    TtPageStore *ps;
    SimCheckpoint cp[CPS_MAX];
    unsigned n_cps;
    TtCheckpointId last_id;
    TtNodeId base;

    ToyStops stops;
    TtStopReason injected;      /* by the schedule, in this movement */
    bool is_lost;               /* the VM is none of history */
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

static History *history_new(uint32_t seed, uint64_t end)
{
    History *h = g_new0(History, 1);
    ToyVm *vm = g_new0(ToyVm, 1);

    h->stands = g_new0(bool, end + SLACK);
    h->digest = g_new0(uint64_t, end + SLACK);
    h->acc = g_new0(uint64_t, end + SLACK);
    h->written = g_new0(uint32_t, end + SLACK);
    for (toyvm_reset(vm, seed); ; toyvm_step(vm)) {
        uint64_t pos = vm->regs.pos;

        g_assert_cmpuint(pos, <, end + SLACK);
        h->stands[pos] = true;
        h->digest[pos] = toyvm_digest(vm);
        h->acc[pos] = vm->regs.acc;
        for (unsigned i = 0; i < TOYVM_PAGES; i++) {
            h->written[pos] |= (uint32_t)vm->was_written[i] << i;
        }
        if (pos >= end) {
            h->end = pos;
            break;
        }
    }
    g_free(vm);
    return h;
}

static void history_free(History *h)
{
    g_free(h->stands);
    g_free(h->digest);
    g_free(h->acc);
    g_free(h->written);
    g_free(h);
}

static bool straight_breaks(const Sim *s, uint64_t pos)
{
    return s->h->stands[pos] && s->stops.break_modulus &&
           s->h->acc[pos] % s->stops.break_modulus == 0;
}

static bool straight_watches(const Sim *s, uint64_t pos)
{
    return s->stops.watch_page >= 0 &&
           (s->h->written[pos] >> s->stops.watch_page & 1);
}

/* Where the VM stands when it is told to run to @pos. */
static uint64_t landing(const Sim *s, uint64_t pos)
{
    while (!s->h->stands[pos]) {
        pos++;
    }
    return pos;
}

static void check_state(const Sim *s)
{
    g_assert_cmpuint(s->vm.regs.pos, <=, s->h->end);
    g_assert_true(s->h->stands[s->vm.regs.pos]);
    g_assert_cmphex(toyvm_digest(&s->vm), ==, s->h->digest[s->vm.regs.pos]);
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
        TtCheckpointId id = tt_timeline_thin(s->tl, pos, 0);

        if (id) {
            remove_checkpoint(s, id);
        }
        if (s->n_cps == CPS_MAX) {
            return;
        }
        s->stats->n_thinned++;
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

/* Position of the first checkpoint; UINT64_MAX if there is none. */
static uint64_t first_pos(const Sim *s)
{
    uint64_t first = UINT64_MAX;

    for (unsigned i = 0; i < s->n_cps; i++) {
        first = MIN(first, s->cp[i].regs.pos);
    }
    return first;
}

/* The first one never fails (replay-engine/travel/tt-checkpoints.c). */
static bool fails_half_way(Sim *s, const TtStep *step)
{
    if (step->pos == first_pos(s) || pick(s, 16) < 15) {
        return false;
    }
    s->vm.regs.acc = ~s->vm.regs.acc;
    tt_timeline_lost(s->tl);
    remove_checkpoint(s, step->checkpoint);
    s->is_lost = true;
    s->stats->n_lost++;
    return true;
}

static void restore(Sim *s, const TtStep *step)
{
    SimCheckpoint *c = cp_by_id(s, step->checkpoint);
    uint64_t list[TOYVM_PAGES];
    size_t n = dirty_list(s, list);

    if (fails_half_way(s, step)) {
        return;
    }
    s->is_lost = false;
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
    while (s->vm.regs.pos < MIN(to, MIN(s->h->end, cut))) {
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
    if (s->vm.regs.pos >= cut) {
        s->injected = pick(s, 2) ? TT_STOP_INTERRUPTED : TT_STOP_DIVERGED;
    }
}

static void run_or_scan(Sim *s, const TtStep *step)
{
    bool is_scan = step->kind == TT_STEP_SCAN;

    execute(s, step->pos, is_scan);
    check_state(s);
    if (s->injected != TT_STOP_NONE) {
        tt_timeline_done(s->tl, s->vm.regs.pos, s->injected);
    } else if (s->vm.regs.pos < step->pos || pick(s, 4) == 0) {
        /* At the end; the end may also be just where the step led. */
        bool at_end = s->vm.regs.pos == s->h->end;

        g_assert_true(at_end || s->vm.regs.pos >= step->pos);
        tt_timeline_done(s->tl, s->vm.regs.pos,
                         at_end ? TT_STOP_END : TT_STOP_TARGET);
    } else {
        tt_timeline_done(s->tl, s->vm.regs.pos, TT_STOP_NONE);
    }
}

static void check_progress(const Sim *s, uint64_t *before)
{
    uint64_t done, total;

    tt_timeline_progress(s->tl, &done, &total);
    g_assert_cmpuint(done, <=, total);
    g_assert_cmpuint(done, >=, *before);
    *before = done;
}

/* Carries a movement out; returns how the timeline says it ended. */
static TtStep travel(Sim *s)
{
    uint64_t done = 0;

    s->injected = TT_STOP_NONE;
    for (unsigned n_steps = 0; tt_timeline_is_moving(s->tl); n_steps++) {
        TtStep step = tt_timeline_step(s->tl);

        /* Two steps an interval, and two to go. */
        g_assert_cmpuint(n_steps, <=, 2 * CPS_MAX + 4);
        check_progress(s, &done);
        g_assert_true(!s->is_lost || step.kind == TT_STEP_RESTORE);
        if (!s->is_lost && pick(s, 8) == 0) {
            disturb(s);
            step = tt_timeline_step(s->tl);
        }
        if (!s->is_lost && pick(s, 100) == 0) {
            s->injected = TT_STOP_INTERRUPTED;
            tt_timeline_done(s->tl, s->vm.regs.pos, s->injected);
        } else if (step.kind == TT_STEP_RESTORE) {
            restore(s, &step);
        } else {
            run_or_scan(s, &step);
        }
    }
    check_progress(s, &done);
    return tt_timeline_step(s->tl);
}

/* ---- oracle ---- */

typedef struct Ending {
    TtStopReason reason;
    uint64_t pos;
} Ending;

static Ending foresee_goto(const Sim *s, uint64_t now, uint64_t target)
{
    uint64_t first = first_pos(s);

    if (target >= now) {
        return target > s->h->end
            ? (Ending) { TT_STOP_END, s->h->end }
            : (Ending) { TT_STOP_TARGET, landing(s, target) };
    }
    if (first <= target) {
        return (Ending) { TT_STOP_TARGET, landing(s, target) };
    }
    return (Ending) { TT_STOP_START, MIN(first, now) };
}

static Ending foresee_reverse(const Sim *s, uint64_t now, uint64_t start)
{
    uint64_t first = first_pos(s), low = MAX(start, first);

    if (now <= low) {
        return (Ending) { TT_STOP_START, now };
    }
    for (uint64_t pos = now; pos-- > low; ) {
        /* No run reaches @first, so no watchpoint fires there. */
        if (straight_breaks(s, pos) ||
            (pos > first && straight_watches(s, pos))) {
            return (Ending) { TT_STOP_HIT, pos };
        }
    }
    return (Ending) { TT_STOP_START, landing(s, low) };
}

static bool may_hit(void *opaque, uint64_t from, uint64_t to)
{
    Sim *s = opaque;
    uint64_t at = 0;
    TtCheckpointId id = tt_timeline_find(s->tl, to, &at);

    g_assert_cmpuint(from, <, to);
    if (s->stops.break_modulus || !id || at != to) {
        return true;
    }
    if (s->stops.watch_page >= 0 &&
        tt_pagestore_changed(s->ps, cp_by_id(s, id)->node,
                             s->stops.watch_page)) {
        return true;
    }
    s->stats->n_skipped++;
    return false;
}

/* ---- movements ---- */

static void count(SimStats *st, TtStopReason reason)
{
    switch (reason) {
    case TT_STOP_TARGET:
        st->n_target++;
        return;
    case TT_STOP_HIT:
        st->n_hit++;
        return;
    case TT_STOP_START:
        st->n_start++;
        return;
    case TT_STOP_END:
        st->n_end++;
        return;
    case TT_STOP_DIVERGED:
        st->n_diverged++;
        return;
    case TT_STOP_INTERRUPTED:
        st->n_interrupted++;
        return;
    case TT_STOP_DAMAGED:       /* no plan says so */
    case TT_STOP_NONE:
        break;
    }
    g_assert_not_reached();
}

static void travel_and_check(Sim *s, Ending want)
{
    TtStep step = travel(s);

    g_assert_cmpint(step.kind, ==, TT_STEP_DONE);
    g_assert_cmpuint(step.pos, ==, s->vm.regs.pos);
    if (s->injected != TT_STOP_NONE) {
        want = (Ending) { s->injected, s->vm.regs.pos };
    }
    g_assert_cmpint(step.reason, ==, want.reason);
    g_assert_cmpuint(step.pos, ==, want.pos);
    check_state(s);
    count(s->stats, step.reason);
}

static void move_to(Sim *s)
{
    uint64_t now = s->vm.regs.pos, target = pick(s, s->h->end + 1);

    switch (pick(s, 8)) {
    case 0:
        target = now - MIN(now, 1);
        break;
    case 1:
        target = s->h->end + 1 + pick(s, 50);
        break;
    case 2:
        target = (uint64_t[]) { now, 0, s->h->end }[pick(s, 3)];
        break;
    case 3:
        if (s->n_cps) {
            target = s->cp[pick(s, s->n_cps)].regs.pos;
        }
        break;
    default:
        break;
    }
    s->stats->n_goto++;
    tt_timeline_goto(s->tl, now, target);
    travel_and_check(s, foresee_goto(s, now, target));
}

static void move_back(Sim *s)
{
    static const uint32_t moduli[] = { 0, 0, 3, 29, 401, 5003, 1000003 };
    uint64_t now = s->vm.regs.pos, start = 0;

    s->stops.break_modulus = moduli[pick(s, G_N_ELEMENTS(moduli))];
    s->stops.watch_page = (int)pick(s, TOYVM_PAGES + 1) - 1;
    if (pick(s, 4) == 0) {
        start = pick(s, s->h->end);
    }
    /* Whether a run reaches the start, so that a watchpoint fires right there,
     * depends on where checkpoints are. */
    while (start && straight_watches(s, start)) {
        start--;
    }
    tt_timeline_set_filter(s->tl, pick(s, 4) ? may_hit : NULL, s);
    s->stats->n_reverse++;
    tt_timeline_reverse_continue(s->tl, now, start);
    travel_and_check(s, foresee_reverse(s, now, start));
}

/* History cannot be reached any more before the first checkpoint: when little
 * is left, take it up from the beginning. */
static void start_over(Sim *s)
{
    while (s->n_cps) {
        remove_checkpoint(s, s->cp[0].id);
    }
    g_assert_cmpuint(tt_pagestore_versions(s->ps), ==, 0);
    toyvm_reset(&s->vm, s->vm.seed);
    add_checkpoint(s);
}

static void one_move(Sim *s)
{
    if (first_pos(s) > s->h->end / 4 && pick(s, 4) == 0) {
        start_over(s);
    }
    if (pick(s, 6) == 0) {
        disturb(s);
    }
    if (pick(s, 40) == 0) {
        for (uint64_t n = pick(s, CPS_MAX + 1); n > 0; n--) {
            remove_some(s, true);
        }
    }
    if (pick(s, 2)) {
        move_to(s);
    } else {
        move_back(s);
    }
    g_assert_cmpuint(tt_timeline_count(s->tl), ==, s->n_cps);
}

/* ---- life ---- */

static Sim *sim_new(uint32_t seed, const History *h, SimStats *stats)
{
    Sim *s = g_new0(Sim, 1);

    s->h = h;
    s->stats = stats;
    s->tl = tt_timeline_new();
    s->ps = tt_pagestore_new();
    toyvm_reset(&s->vm, seed);
    return s;
}

static void sim_free(Sim *s)
{
    tt_pagestore_check(s->ps);
    tt_pagestore_free(s->ps);
    tt_timeline_free(s->tl);
    g_free(s);
}

void sim_travel_seed(uint32_t seed, unsigned n_moves, uint64_t end,
                     SimStats *stats)
{
    History *h = history_new(seed, end);
    Sim *s = sim_new(seed, h, stats);

    s->rng = g_rand_new_with_seed(seed);
    add_checkpoint(s);
    for (unsigned i = 0; i < n_moves; i++) {
        one_move(s);
        if (i % 16 == 0) {
            tt_pagestore_check(s->ps);
        }
    }
    g_rand_free(s->rng);
    sim_free(s);
    history_free(h);
}

void sim_travel_bytes(const uint8_t *bytes, size_t len, SimStats *stats)
{
    /* A fuzzer comes again and again: a few programs, run once. */
    static History *history[8];
    uint32_t seed = len ? bytes[0] % G_N_ELEMENTS(history) : 0;
    Sim *s;

    if (!history[seed]) {
        history[seed] = history_new(seed, 160);
    }
    s = sim_new(seed, history[seed], stats);
    s->in = bytes + MIN(len, 1);
    s->in_end = bytes + len;
    add_checkpoint(s);
    while (!is_exhausted(s)) {
        one_move(s);
    }
    sim_free(s);
}
