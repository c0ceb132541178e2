/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What follows from the beginning of a window: in each run the first event, for all cuts the
 * same. Of a few windows each is asked for alone. Of many one pass over the deliveries, in
 * the order of their ranks, finds all: a run learns of windows by what it gets, and most know
 * all that they ever will soon.
 */
#include "tt-causal-int.h"

#define ALONE_MAX   16          /* windows */
#define WORD_BITS   64

/* Which windows each run knows, as bits; @may: that it can ever know by what it got. */
typedef struct Pass {
    TtCausal *c;
    size_t n_words;
    uint64_t *knows, *may;
    uint32_t *next;             /* of each of out_pairs: deliveries that were passed */
    uint32_t *from;             /* of each of these: the sender */
    TtHeap heap;                /* of these, by the rank of the next delivery */
} Pass;

static uint32_t *new_row(TtCausal *c)
{
    uint32_t *row = g_new(uint32_t, c->n_runs);

    for (unsigned i = 0; i < c->n_runs; i++) {
        row[i] = c->runs[i].n;
    }
    return row;
}

static bool is_done(const Pass *p, unsigned run)
{
    return !memcmp(p->knows + run * p->n_words, p->may + run * p->n_words, p->n_words * 8);
}

/* may[]: over all ways, whenever they were. */
static void close_ways(Pass *p)
{
    bool is_new = true;

    memcpy(p->may, p->knows, p->c->n_runs * p->n_words * 8);
    while (is_new) {
        is_new = false;
        for (uint32_t k = 0; k < p->c->out_first[p->c->n_runs]; k++) {
            const uint64_t *from = p->may + p->from[k] * p->n_words;
            uint64_t *to = p->may + p->c->out_pairs[k].peer * p->n_words;

            for (size_t w = 0; w < p->n_words; w++) {
                is_new |= from[w] & ~to[w];
                to[w] |= from[w];
            }
        }
    }
}

static void push_next(Pass *p, uint32_t pair)
{
    const TtCausalPair *k = &p->c->out_pairs[pair];

    if (p->next[pair] < k->n && !is_done(p, k->peer)) {
        uint32_t got = p->c->got[k->first + p->next[pair]];

        tt_heap_push(&p->heap, p->c->runs[k->peer].rank[got], pair);
    }
}

static void begin(Pass *p)
{
    TtCausal *c = p->c;

    for (unsigned i = 0; i < c->n_runs; i++) {
        for (uint32_t k = c->out_first[i]; k < c->out_first[i + 1]; k++) {
            p->from[k] = i;
        }
        if (c->runs[i].is_window && !c->runs[i].follows) {
            c->runs[i].follows = new_row(c);
        }
        if (c->runs[i].is_window && c->runs[i].n) {
            c->runs[i].follows[i] = 0;
            p->knows[i * p->n_words + i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
        }
    }
    close_ways(p);
    for (uint32_t k = 0; k < c->out_first[c->n_runs]; k++) {
        push_next(p, k);
    }
}

/* One delivery: of what its sender knew when it sent that, or before. */
static void learn(Pass *p, unsigned from, uint32_t sent, unsigned to, uint32_t got)
{
    const uint64_t *theirs = p->knows + from * p->n_words;
    uint64_t *mine = p->knows + to * p->n_words;

    for (size_t w = 0; w < p->n_words; w++) {
        for (uint64_t left = theirs[w] & ~mine[w]; left; left &= left - 1) {
            unsigned bit = __builtin_ctzll(left);
            uint32_t *row = p->c->runs[w * WORD_BITS + bit].follows;

            if (row[from] <= sent) {
                row[to] = got;
                mine[w] |= UINT64_C(1) << bit;
            }
        }
    }
}

void tt_causal_follow_all(TtCausal *c)
{
    uint32_t n_pairs = c->out_first[c->n_runs];
    size_t n_words = c->n_runs / WORD_BITS + 1;
    g_autofree uint64_t *knows = g_new0(uint64_t, c->n_runs * n_words);
    g_autofree uint64_t *may = g_new0(uint64_t, c->n_runs * n_words);
    g_autofree uint32_t *next = g_new0(uint32_t, n_pairs + 1);
    g_autofree uint32_t *from = g_new0(uint32_t, n_pairs + 1);
    Pass p = { .c = c, .n_words = n_words, .knows = knows, .may = may, .next = next,
               .from = from };

    begin(&p);
    while (p.heap.n) {
        uint32_t pair = tt_heap_pop(&p.heap).value;
        const TtCausalPair *k = &c->out_pairs[pair];
        uint64_t at = k->first + p.next[pair]++;

        learn(&p, from[pair], c->sent[at], k->peer, c->got[at]);
        push_next(&p, pair);
    }
    g_free(p.heap.items);
}

void tt_causal_follow_one(TtCausal *c, unsigned run)
{
    tt_causal_clear(c);
    if (c->runs[run].n) {
        tt_causal_reach(c, run, 0, false);
        tt_causal_spread(c, false, c->n_runs);
    }
    c->runs[run].follows = g_memdup2(c->mark, c->n_runs * sizeof(*c->mark));
}

const uint32_t *tt_causal_follows(TtCausal *c, unsigned run)
{
    unsigned n_windows = 0;

    if (c->runs[run].follows) {
        return c->runs[run].follows;
    }
    for (unsigned i = 0; i < c->n_runs; i++) {
        n_windows += c->runs[i].is_window;
    }
    if (n_windows > ALONE_MAX) {
        tt_causal_follow_all(c);
    } else {
        tt_causal_follow_one(c, run);
    }
    return c->runs[run].follows;
}
