/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Questions to the causal index: clocks, cuts, order; see the model in tt-causal.h.
 */
#include "tt-causal-int.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

TtCausalTotals tt_causal_totals(const TtCausal *c)
{
    return c->totals;
}

uint64_t tt_causal_end_of(const TtCausal *c, unsigned run)
{
    return c->runs[run].end;
}

uint32_t tt_causal_n_events(const TtCausal *c, unsigned run)
{
    return c->runs[run].n;
}

uint64_t tt_causal_pos(const TtCausal *c, unsigned run, uint32_t event)
{
    return c->runs[run].pos[event];
}

uint32_t tt_causal_find(const TtCausalRun *r, uint64_t pos)
{
    uint32_t from = 0, to = r->n;

    while (from < to) {
        uint32_t mid = from + (to - from) / 2;

        if (r->pos[mid] < pos) {
            from = mid + 1;
        } else {
            to = mid;
        }
    }
    return from;
}

/* How many of @n values, which rise, are below @value. */
static uint32_t n_below(const uint32_t *v, uint32_t n, uint32_t value)
{
    uint32_t from = 0, to = n;

    while (from < to) {
        uint32_t mid = from + (to - from) / 2;

        if (v[mid] < value) {
            from = mid + 1;
        } else {
            to = mid;
        }
    }
    return from;
}

/* The first delivery of what was sent with or after event @sent; or TT_CAUSAL_END. */
static uint32_t first_got(const TtCausal *c, const TtCausalPair *p, uint32_t sent)
{
    uint32_t i = n_below(c->sent + p->first, p->n, sent);

    return i < p->n ? c->got[p->first + i] : TT_CAUSAL_END;
}

/* How many events of the sender came before the receiver's event @end; one more than there are
 * if one of them is behind its log. */
static uint32_t n_before(const TtCausal *c, const TtCausalPair *p, uint32_t end)
{
    uint32_t i = n_below(c->got + p->first, p->n, end);

    return i ? c->sent[p->first + i - 1] + 1 : 0;
}

/* Of those that its log has. */
static uint32_t n_sent_before(const TtCausal *c, const TtCausalPair *p, uint32_t end)
{
    return MIN(n_before(c, p, end), c->runs[p->peer].n);
}

/* ---- a heap ---- */

void tt_heap_push(TtHeap *h, uint32_t key, uint32_t value)
{
    uint32_t at = h->n++;

    if (at == h->room) {
        h->room = h->room ? 2 * h->room : 64;
        h->items = g_renew(TtHeapItem, h->items, h->room);
    }
    while (at && h->items[(at - 1) / 2].key > key) {
        h->items[at] = h->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    h->items[at] = (TtHeapItem) { key, value };
}

TtHeapItem tt_heap_pop(TtHeap *h)
{
    TtHeapItem top = h->items[0], last = h->items[--h->n];
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < h->n && h->items[child + 1].key < h->items[child].key) {
            child++;
        }
        if (child >= h->n || h->items[child].key >= last.key) {
            break;
        }
        h->items[at] = h->items[child];
        at = child;
    }
    h->items[at] = last;
    return top;
}

/* ---- what follows ---- */

void tt_causal_reach(TtCausal *c, unsigned run, uint32_t at, bool is_coarse)
{
    const TtCausalRun *r = &c->runs[run];

    if (is_coarse && at < r->n) {
        at = tt_causal_find(r, r->pos[at]);
    }
    if (at < c->mark[run]) {
        c->mark[run] = at;
        tt_heap_push(&c->heap, r->rank[at], run);
    }
}

/* The same of what others got of what @run sent with or after event @at, which may be n: what
 * its log does not have. */
static void reach_peers(TtCausal *c, unsigned run, uint32_t at, bool is_coarse)
{
    for (uint32_t i = c->out_first[run]; i < c->out_first[run + 1]; i++) {
        uint32_t got = first_got(c, &c->out_pairs[i], at);

        if (got != TT_CAUSAL_END) {
            tt_causal_reach(c, c->out_pairs[i].peer, got, is_coarse);
        }
    }
}

void tt_causal_spread(TtCausal *c, bool is_coarse, unsigned only)
{
    while (c->heap.n) {
        TtHeapItem top = tt_heap_pop(&c->heap);
        unsigned run = top.value;

        if (c->runs[run].rank[c->mark[run]] != top.key) {
            continue;               /* an earlier one was found since */
        }
        if (run == only) {
            c->heap.n = 0;
            return;
        }
        reach_peers(c, run, c->mark[run], is_coarse);
    }
}

void tt_causal_clear(TtCausal *c)
{
    c->heap.n = 0;
    for (unsigned i = 0; i < c->n_runs; i++) {
        c->mark[i] = c->runs[i].n;
    }
}

/* ---- clocks ---- */

void tt_causal_clock(TtCausal *c, unsigned run, uint64_t pos, uint32_t *out)
{
    memset(out, 0, c->n_runs * sizeof(*out));
    out[run] = tt_causal_find(&c->runs[run], pos);
    c->heap.n = 0;
    if (out[run]) {
        tt_heap_push(&c->heap, ~c->runs[run].rank[out[run] - 1], run);
    }
    while (c->heap.n) {
        TtHeapItem top = tt_heap_pop(&c->heap);
        unsigned to = top.value;

        if (c->runs[to].rank[out[to] - 1] != ~top.key) {
            continue;
        }
        for (uint32_t i = c->in_first[to]; i < c->in_first[to + 1]; i++) {
            unsigned from = c->in_pairs[i].peer;
            uint32_t n = n_sent_before(c, &c->in_pairs[i], out[to]);

            if (n > out[from]) {        /* so there are events of it */
                out[from] = n;
                tt_heap_push(&c->heap, ~c->runs[from].rank[n - 1], from);
            }
        }
    }
}

/* ---- cuts ---- */

void tt_causal_set_names(TtCausal *c, const char *const *names)
{
    c->names = names;
}

const char *tt_causal_name(const TtCausal *c, unsigned run, char buf[16])
{
    snprintf(buf, 16, "run %u", run);
    return c->names ? c->names[run] : buf;
}

/* The first frame that @run got and that is in no cut. @is_sure: nor will be. */
static uint32_t lost_at(const TtCausalRun *r, bool is_sure)
{
    return is_sure ? r->gone_at : r->lost_at;
}

static void cut_below(TtCausal *c, const uint64_t *at, bool is_sure, uint64_t *out)
{
    tt_causal_clear(c);
    for (unsigned i = 0; i < c->n_runs; i++) {
        uint32_t first = tt_causal_find(&c->runs[i], at[i]);

        first = MIN(first, lost_at(&c->runs[i], is_sure));
        if (first < c->runs[i].n) {
            tt_causal_reach(c, i, first, true);
        } else if (is_sure && at[i] != UINT64_MAX) {
            reach_peers(c, i, first, true);     /* what it sent behind its log */
        }
    }
    tt_causal_spread(c, true, c->n_runs);
    for (unsigned i = 0; i < c->n_runs; i++) {
        const TtCausalRun *r = &c->runs[i];

        uint64_t first = c->mark[i] < r->n ? r->pos[c->mark[i]] : r->end;

        out[i] = MIN(first, at[i]);
    }
}

void tt_causal_cut_below(TtCausal *c, const uint64_t *at, uint64_t *out)
{
    cut_below(c, at, false, out);
}

unsigned tt_causal_lost_before(TtCausal *c, unsigned run, uint64_t pos)
{
    g_autofree uint32_t *clock = g_new(uint32_t, c->n_runs);
    unsigned found = c->n_runs;

    tt_causal_clock(c, run, pos, clock);
    for (unsigned i = 0; i < c->n_runs; i++) {
        const TtCausalRun *r = &c->runs[i];

        if (clock[i] > r->lost_at &&
            (found == c->n_runs || r->fate > c->runs[found].fate)) {
            found = i;
        }
    }
    return found;
}

const char *tt_causal_fate(const TtCausalRun *r)
{
    static const char *const words[] = {
        [TT_CAUSAL_PENDING] = "is in flight: its sender, which is still recorded, does not "
                              "have it in its log yet",
        [TT_CAUSAL_UNKNOWN] = "is not in its sender's window, which does not tell whether it "
                              "was sent before that or after it",
        [TT_CAUSAL_LOST] = "is lost, because its sender's log ends before it",
    };

    return words[r->fate];
}

/* Of what @run got at @pos, where its greatest cut ends too early; g_free. */
static char *why_early(TtCausal *c, unsigned run, uint64_t pos)
{
    const TtCausalRun *r = &c->runs[run];
    unsigned by;

    if (r->lost_at < r->n && r->pos[r->lost_at] == pos) {
        return g_strdup(tt_causal_fate(r));
    }
    by = tt_causal_lost_before(c, run, pos + 1);
    return by == c->n_runs ?
        g_strdup("cannot be told apart from what was sent at the same position") :
        g_strdup_printf("follows from one that %s", tt_causal_fate(&c->runs[by]));
}

TtStatus tt_causal_cut(TtCausal *c, unsigned run, uint64_t pos, uint64_t *out,
                       TtDiag *diag)
{
    g_autofree uint64_t *at = g_new(uint64_t, c->n_runs);
    g_autofree char *why = NULL;
    uint64_t early;
    char name[16];

    for (unsigned i = 0; i < c->n_runs; i++) {
        at[i] = i == run ? pos : UINT64_MAX;
    }
    tt_causal_cut_below(c, at, out);
    if (c->mark[run] < tt_causal_find(&c->runs[run], pos)) {
        early = c->runs[run].pos[c->mark[run]];
        why = why_early(c, run, early);
        return tt_fail(diag, TT_ERR_MISMATCH, "no consistent cut has %s at position "
                       "%" PRIu64 ": the frame that it received at %" PRIu64 " %s",
                       tt_causal_name(c, run, name), pos, early, why);
    }
    out[run] = pos;
    return tt_causal_in_windows(c, run, out, diag);
}

/* The last event of another run that leads to @pos by the plain order, against the first that
 * follows from it by the coarse one. If it leads there only by the coarse order, it leads to
 * another tie by the plain one. */
bool tt_causal_ties(TtCausal *c, unsigned run, uint64_t pos, unsigned *other, uint64_t *at)
{
    g_autofree uint32_t *before = g_new(uint32_t, c->n_runs);
    uint32_t first = tt_causal_find(&c->runs[run], pos);

    tt_causal_clock(c, run, pos + 1, before);
    tt_causal_clear(c);
    if (first < c->runs[run].n) {
        tt_causal_reach(c, run, first, true);
    }
    tt_causal_spread(c, true, c->n_runs);
    for (unsigned i = 0; i < c->n_runs; i++) {
        const TtCausalRun *r = &c->runs[i];

        if (i != run && before[i] && c->mark[i] < tt_causal_find(r, r->pos[before[i] - 1])) {
            *other = i;
            *at = r->pos[before[i] - 1];
            return true;
        }
    }
    return false;
}

static TtStatus check_cut(const TtCausal *c, const uint64_t *at, bool is_sure, TtDiag *diag)
{
    char name[16], other[16];

    for (unsigned to = 0; to < c->n_runs; to++) {
        uint32_t end = tt_causal_find(&c->runs[to], at[to]);
        uint32_t lost = lost_at(&c->runs[to], is_sure);

        if (lost < end) {
            return tt_fail(diag, TT_ERR_MISMATCH, "%s received a frame at position "
                           "%" PRIu64 " that its sender's log does not have%s",
                           tt_causal_name(c, to, name),
                           c->runs[to].pos[lost],
                           !is_sure && c->runs[to].fate == TT_CAUSAL_PENDING ? " yet" : "");
        }
        for (uint32_t i = c->in_first[to]; i < c->in_first[to + 1]; i++) {
            unsigned from = c->in_pairs[i].peer;
            uint32_t n = n_before(c, &c->in_pairs[i], end);

            if (n > c->runs[from].n) {
                return tt_fail(diag, TT_ERR_MISMATCH, "%s has received what %s sent behind "
                               "the end of its log, and so after the cut",
                               tt_causal_name(c, to, name),
                               tt_causal_name(c, from, other));
            }
            if (n > tt_causal_find(&c->runs[from], at[from])) {
                return tt_fail(diag, TT_ERR_MISMATCH, "%s has received what %s sent at "
                               "position %" PRIu64 ", after the cut",
                               tt_causal_name(c, to, name),
                               tt_causal_name(c, from, other),
                               c->runs[from].pos[n - 1]);
            }
        }
    }
    return TT_OK;
}

TtStatus tt_causal_check_cut(const TtCausal *c, const uint64_t *at, TtDiag *diag)
{
    return check_cut(c, at, false, diag);
}

TtStatus tt_causal_check_places(TtCausal *c, const uint64_t *at, bool is_sure, TtDiag *diag)
{
    g_autofree uint64_t *most = g_new(uint64_t, c->n_runs);
    bool is_whole = true;
    char name[16];

    for (unsigned i = 0; i < c->n_runs; i++) {
        is_whole &= at[i] != UINT64_MAX;
    }
    if (is_whole) {
        return check_cut(c, at, is_sure, diag);
    }
    cut_below(c, at, is_sure, most);
    for (unsigned i = 0; i < c->n_runs; i++) {
        if (at[i] != UINT64_MAX && most[i] < MIN(at[i], c->runs[i].end)) {
            return tt_fail(diag, TT_ERR_MISMATCH, "no consistent cut has %s at position %"
                           PRIu64, tt_causal_name(c, i, name), at[i]);
        }
    }
    return TT_OK;
}

/* ---- order ---- */

/* Is what happened at @pos_a a cause of what happened at @pos_b? */
static bool leads_to(TtCausal *c, unsigned a, uint64_t pos_a, unsigned b, uint64_t pos_b)
{
    uint32_t start = tt_causal_find(&c->runs[a], pos_a);
    const TtCausalRun *r = &c->runs[b];

    tt_causal_clear(c);
    if (start < c->runs[a].n) {
        tt_causal_reach(c, a, start, false);
    } else if (pos_a <= c->runs[a].end) {
        reach_peers(c, a, start, false);    /* of lost frames, which it sent later */
    }
    tt_causal_spread(c, false, b);
    return c->mark[b] < r->n && r->pos[c->mark[b]] <= pos_b;
}

TtCausalOrder tt_causal_order(TtCausal *c, unsigned run_a, uint64_t pos_a,
                              unsigned run_b, uint64_t pos_b)
{
    bool before, after;

    if (run_a == run_b) {
        return pos_a < pos_b ? TT_CAUSAL_BEFORE : pos_a > pos_b ? TT_CAUSAL_AFTER :
               TT_CAUSAL_SAME;
    }
    before = leads_to(c, run_a, pos_a, run_b, pos_b);
    after = leads_to(c, run_b, pos_b, run_a, pos_a);
    return before && after ? TT_CAUSAL_BOTH : before ? TT_CAUSAL_BEFORE :
           after ? TT_CAUSAL_AFTER : TT_CAUSAL_CONCURRENT;
}
