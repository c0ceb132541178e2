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

/* How many events of the sender came before the receiver's event @end. */
static uint32_t n_sent_before(const TtCausal *c, const TtCausalPair *p, uint32_t end)
{
    uint32_t i = n_below(c->got + p->first, p->n, end);

    return i ? c->sent[p->first + i - 1] + 1 : 0;
}

/* ---- what follows ---- */

/* Event @at of @run follows, and all after it. @is_coarse: of a position all or
 * nothing. */
static void reach(TtCausal *c, unsigned run, uint32_t at, bool is_coarse)
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

/* mark[]: in each run the first event that follows what was reached. @only: it may end
 * when this run is known; n_runs: none. */
static void spread(TtCausal *c, bool is_coarse, unsigned only)
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
        for (uint32_t i = c->out_first[run]; i < c->out_first[run + 1]; i++) {
            uint32_t got = first_got(c, &c->out_pairs[i], c->mark[run]);

            if (got != TT_CAUSAL_END) {
                reach(c, c->out_pairs[i].peer, got, is_coarse);
            }
        }
    }
}

static void begin(TtCausal *c)
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

            if (n > out[from]) {
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

void tt_causal_cut_below(TtCausal *c, const uint64_t *at, uint64_t *out)
{
    begin(c);
    for (unsigned i = 0; i < c->n_runs; i++) {
        uint32_t first = tt_causal_find(&c->runs[i], at[i]);

        first = MIN(first, c->runs[i].lost_at);
        if (first < c->runs[i].n) {
            reach(c, i, first, true);
        }
    }
    spread(c, true, c->n_runs);
    for (unsigned i = 0; i < c->n_runs; i++) {
        const TtCausalRun *r = &c->runs[i];

        uint64_t first = c->mark[i] < r->n ? r->pos[c->mark[i]] : r->end;

        out[i] = MIN(first, at[i]);
    }
}

/* Of the frame at which the greatest cut of @run ends too early. */
static const char *why_early(const TtCausal *c, unsigned run)
{
    if (c->mark[run] == c->runs[run].lost_at) {
        return c->runs[run].is_pending ? "is in flight: its sender, which is still recorded, "
            "does not have it in its log yet" :
            "is lost, because its sender's log ends before it";
    }
    return c->totals.lost ? "follows from one that is lost, because its sender's log ends "
        "before it" : c->totals.pending ? "follows from one that is in flight: its sender, "
        "which is still recorded, does not have it in its log yet" :
        "cannot be told apart from what was sent at the same position";
}

TtStatus tt_causal_cut(TtCausal *c, unsigned run, uint64_t pos, uint64_t *out,
                       TtDiag *diag)
{
    g_autofree uint64_t *at = g_new(uint64_t, c->n_runs);
    char name[16];

    for (unsigned i = 0; i < c->n_runs; i++) {
        at[i] = i == run ? pos : UINT64_MAX;
    }
    tt_causal_cut_below(c, at, out);
    if (c->mark[run] < tt_causal_find(&c->runs[run], pos)) {
        return tt_fail(diag, TT_ERR_MISMATCH, "no consistent cut has %s at position "
                       "%" PRIu64 ": the frame that it received at %" PRIu64 " %s",
                       tt_causal_name(c, run, name), pos,
                       c->runs[run].pos[c->mark[run]], why_early(c, run));
    }
    out[run] = pos;
    return TT_OK;
}

TtStatus tt_causal_check_cut(const TtCausal *c, const uint64_t *at, TtDiag *diag)
{
    char name[16], other[16];

    for (unsigned to = 0; to < c->n_runs; to++) {
        uint32_t end = tt_causal_find(&c->runs[to], at[to]);

        if (c->runs[to].lost_at < end) {
            return tt_fail(diag, TT_ERR_MISMATCH, "%s received a frame at position "
                           "%" PRIu64 " that its sender's log does not have%s",
                           tt_causal_name(c, to, name),
                           c->runs[to].pos[c->runs[to].lost_at],
                           c->runs[to].is_pending ? " yet" : "");
        }
        for (uint32_t i = c->in_first[to]; i < c->in_first[to + 1]; i++) {
            unsigned from = c->in_pairs[i].peer;
            uint32_t n = n_sent_before(c, &c->in_pairs[i], end);

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

/* ---- order ---- */

/* Is what happened at @pos_a a cause of what happened at @pos_b? */
static bool leads_to(TtCausal *c, unsigned a, uint64_t pos_a, unsigned b, uint64_t pos_b)
{
    uint32_t start = tt_causal_find(&c->runs[a], pos_a);
    const TtCausalRun *r = &c->runs[b];

    begin(c);
    if (start == c->runs[a].n) {
        return false;
    }
    reach(c, a, start, false);
    spread(c, false, b);
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
