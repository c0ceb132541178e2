/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes the causal index: takes the events of all runs, ranks them so that an event
 * that came before another has the smaller rank, and sorts the deliveries by pairs of
 * runs.
 */
#include "tt-causal-int.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

TtCausal *tt_causal_new(unsigned n_runs)
{
    TtCausal *c = g_new0(TtCausal, 1);

    assert(n_runs && n_runs <= TT_CAUSAL_RUNS_MAX);
    c->n_runs = n_runs;
    c->runs = g_new0(TtCausalRun, n_runs);
    return c;
}

static void forget_events(TtCausalRun *r)
{
    g_clear_pointer(&r->from, g_free);
    g_clear_pointer(&r->seq, g_free);
}

void tt_causal_free(TtCausal *c)
{
    if (!c) {
        return;
    }
    for (unsigned i = 0; i < c->n_runs; i++) {
        forget_events(&c->runs[i]);
        g_free(c->runs[i].pos);
        g_free(c->runs[i].rank);
    }
    g_free(c->runs);
    g_free(c->out_pairs);
    g_free(c->in_pairs);
    g_free(c->out_first);
    g_free(c->in_first);
    g_free(c->got);
    g_free(c->sent);
    g_free(c->mark);
    g_free(c->heap.items);
    g_free(c);
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

/* ---- events ---- */

static bool make_room(void *array, size_t size, uint32_t n)
{
    void **p = array, *more = g_try_realloc_n(*p, n, size);

    if (more) {
        *p = more;
    }
    return more;
}

static TtStatus add_event(TtCausal *c, unsigned run, uint64_t pos, uint32_t from,
                          TtDiag *diag)
{
    TtCausalRun *r = &c->runs[run];

    assert(run < c->n_runs && !c->got);
    if (pos > INT64_MAX || (r->n && pos < r->pos[r->n - 1])) {
        return tt_fail(diag, TT_ERR_FORMAT, "the log goes back from position %" PRIu64
                       " to %" PRIu64, r->n ? r->pos[r->n - 1] : 0, pos);
    }
    if (c->totals.sends + c->totals.deliveries >= UINT32_MAX - 1) {
        return tt_fail(diag, TT_ERR_LIMIT, "the group has more than %" PRIu32
                       " frames", UINT32_MAX - 1);
    }
    if (r->n == r->room) {
        uint32_t room = r->room ? r->room + r->room / 2 : 1024;

        if (!make_room(&r->pos, sizeof(*r->pos), room) ||
            !make_room(&r->from, sizeof(*r->from), room)) {
            return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for the frames of the "
                           "group");
        }
        r->room = room;
    }
    r->from[r->n] = from;
    r->pos[r->n++] = pos;
    r->end = pos + 1;
    return TT_OK;
}

TtStatus tt_causal_sent(TtCausal *c, unsigned run, uint64_t pos, uint64_t seq,
                        TtDiag *diag)
{
    TtCausalRun *r = &c->runs[run];
    TtStatus st;

    if (!r->n_sends) {
        r->first_seq = seq;
    }
    if (seq - r->first_seq != r->n_sends) {
        return tt_fail(diag, TT_ERR_FORMAT, "the log has frame %" PRIu64 " where frame "
                       "%" PRIu64 " should be", seq, r->first_seq + r->n_sends);
    }
    st = add_event(c, run, pos, TT_CAUSAL_SENT, diag);
    if (!st) {
        r->n_sends++;
        c->totals.sends++;
    }
    return st;
}

TtStatus tt_causal_delivered(TtCausal *c, unsigned run, uint64_t pos, unsigned from,
                             uint64_t seq, TtDiag *diag)
{
    TtCausalRun *r = &c->runs[run];
    TtStatus st;

    assert(from < c->n_runs);
    if (r->n_got == r->got_room) {
        uint32_t room = r->got_room ? r->got_room + r->got_room / 2 : 1024;

        if (!make_room(&r->seq, sizeof(*r->seq), room)) {
            return tt_fail(diag, TT_ERR_NOMEM, "not enough memory for the frames of the "
                           "group");
        }
        r->got_room = room;
    }
    st = add_event(c, run, pos, from, diag);
    if (!st) {
        r->seq[r->n_got++] = seq;
        c->totals.deliveries++;
    }
    return st;
}

void tt_causal_early(TtCausal *c)
{
    c->totals.deliveries++;
    c->totals.early++;
}

void tt_causal_goes_on(TtCausal *c, unsigned run)
{
    c->runs[run].goes_on = true;
}

void tt_causal_ends(TtCausal *c, unsigned run, uint64_t pos)
{
    TtCausalRun *r = &c->runs[run];

    r->end = pos > r->end ? pos : r->end;
}

/* ---- ranks ---- */

/* A run on its way through its events. */
typedef struct Walk {
    uint32_t at, n_sent, n_got;
    TtHeap waiting;             /* runs, by the number of sends that they wait for */
} Walk;

enum { EARLY, LOST, KNOWN };

static int find_send(const TtCausalRun *from, uint64_t seq, uint64_t *nth)
{
    *nth = seq - from->first_seq;
    if (!from->n_sends) {
        return LOST;
    }
    return seq < from->first_seq ? EARLY : *nth < from->n_sends ? KNOWN : LOST;
}

/* Goes on until a frame is due that was not sent yet, or to the end. */
static void walk_on(TtCausal *c, Walk *walks, unsigned run, uint32_t *rank)
{
    TtCausalRun *r = &c->runs[run];
    Walk *w = &walks[run];

    for (; w->at < r->n; w->at++) {
        uint32_t from = r->from[w->at];
        uint64_t nth;

        if (from == TT_CAUSAL_SENT) {
            w->n_sent++;
        } else {
            int what = find_send(&c->runs[from], r->seq[w->n_got], &nth);

            if (what == KNOWN && nth >= walks[from].n_sent) {
                tt_heap_push(&walks[from].waiting, nth, run);
                return;
            }
            if (what == LOST && r->lost_at > w->at) {
                r->lost_at = w->at;
                r->is_pending = c->runs[from].goes_on;
            }
            c->totals.early += what == EARLY;
            c->totals.lost += what == LOST && !c->runs[from].goes_on;
            c->totals.pending += what == LOST && c->runs[from].goes_on;
            w->n_got++;
        }
        r->rank[w->at] = (*rank)++;
    }
}

static TtStatus rank_events(TtCausal *c, Walk *walks, TtDiag *diag)
{
    g_autofree unsigned *todo = g_new(unsigned, c->n_runs);
    unsigned n = c->n_runs;
    uint32_t rank = 0;
    char name[16];

    for (unsigned i = 0; i < n; i++) {
        todo[i] = i;
    }
    while (n) {
        unsigned run = todo[--n];
        Walk *w = &walks[run];

        walk_on(c, walks, run, &rank);
        while (w->waiting.n && w->waiting.items[0].key < w->n_sent) {
            todo[n++] = tt_heap_pop(&w->waiting).value;
        }
    }
    for (unsigned i = 0; i < c->n_runs; i++) {
        if (walks[i].at < c->runs[i].n) {
            return tt_fail(diag, TT_ERR_MISMATCH, "the runs contradict each other: what "
                           "%s received at position %" PRIu64 " was sent only "
                           "afterwards; do all of them belong to one group?",
                           tt_causal_name(c, i, name),
                           c->runs[i].pos[walks[i].at]);
        }
    }
    return TT_OK;
}

/* ---- pairs ---- */

/* How many deliveries each pair has, as a table of n_runs by n_runs. */
static void count_pairs(const TtCausal *c, uint64_t *table)
{
    for (unsigned to = 0; to < c->n_runs; to++) {
        const TtCausalRun *r = &c->runs[to];
        uint32_t n_got = 0;
        uint64_t nth;

        for (uint32_t i = 0; i < r->n; i++) {
            uint32_t from = r->from[i];

            if (from != TT_CAUSAL_SENT &&
                find_send(&c->runs[from], r->seq[n_got++], &nth) == KNOWN) {
                table[(size_t)from * c->n_runs + to]++;
            }
        }
    }
}

/* Makes the lists of pairs; the table then says where each begins. */
static void list_pairs(TtCausal *c, uint64_t *table)
{
    unsigned n = c->n_runs;
    uint32_t n_pairs = 0, at = 0;
    uint64_t first = 0;

    for (size_t i = 0; i < (size_t)n * n; i++) {
        n_pairs += table[i] > 0;
    }
    c->out_pairs = g_new(TtCausalPair, n_pairs);
    c->in_pairs = g_new(TtCausalPair, n_pairs);
    c->out_first = g_new0(uint32_t, n + 1);
    c->in_first = g_new0(uint32_t, n + 1);
    for (unsigned from = 0; from < n; from++) {
        c->out_first[from] = at;
        for (unsigned to = 0; to < n; to++) {
            uint64_t count = table[(size_t)from * n + to];

            table[(size_t)from * n + to] = first;
            if (count) {
                c->out_pairs[at++] = (TtCausalPair) { to, count, first };
                c->in_first[to + 1]++;
                first += count;
            }
        }
    }
    c->out_first[n] = at;
    for (unsigned to = 0; to < n; to++) {
        c->in_first[to + 1] += c->in_first[to];
    }
    g_autofree uint32_t *next = g_memdup2(c->in_first, (n + 1) * sizeof(uint32_t));
    for (unsigned from = 0; from < n; from++) {
        for (uint32_t i = c->out_first[from]; i < c->out_first[from + 1]; i++) {
            TtCausalPair p = c->out_pairs[i];
            unsigned to = p.peer;

            p.peer = from;
            c->in_pairs[next[to]++] = p;
        }
    }
}

/* The number of each send in its run: n_sends of them. */
static uint32_t *list_sends(const TtCausalRun *r)
{
    uint32_t *sends = g_try_new(uint32_t, (size_t)r->n_sends + 1), n = 0;

    for (uint32_t i = 0; sends && i < r->n; i++) {
        if (r->from[i] == TT_CAUSAL_SENT) {
            sends[n++] = i;
        }
    }
    return sends;
}

static void fill_pairs(TtCausal *c, const uint64_t *first, uint64_t *next,
                       uint32_t *const *sends)
{
    for (unsigned to = 0; to < c->n_runs; to++) {
        TtCausalRun *r = &c->runs[to];
        uint32_t n_got = 0;
        uint64_t nth;

        for (uint32_t i = 0; i < r->n; i++) {
            uint32_t from = r->from[i], sent;
            size_t pair = (size_t)from * c->n_runs + to;

            if (from == TT_CAUSAL_SENT ||
                find_send(&c->runs[from], r->seq[n_got++], &nth) != KNOWN) {
                continue;
            }
            sent = sends[from][nth];
            if (next[pair] > first[pair] && c->sent[next[pair] - 1] > sent) {
                sent = c->sent[next[pair] - 1];
            }
            c->got[next[pair]] = i;
            c->sent[next[pair]++] = sent;
        }
        forget_events(r);
    }
}

static bool sort_pairs(TtCausal *c)
{
    size_t n = c->n_runs;
    g_autofree uint64_t *first = g_try_new0(uint64_t, n * n), *next = NULL;
    uint32_t **sends = g_new0(uint32_t *, n);
    uint64_t known = c->totals.deliveries - c->totals.early - c->totals.lost -
        c->totals.pending;
    bool is_whole = first;

    c->got = g_try_new(uint32_t, known + 1);
    c->sent = g_try_new(uint32_t, known + 1);
    for (size_t i = 0; is_whole && i < n; i++) {
        sends[i] = list_sends(&c->runs[i]);
        is_whole = sends[i];
    }
    if (is_whole && c->got && c->sent) {
        count_pairs(c, first);
        list_pairs(c, first);
        next = g_memdup2(first, n * n * sizeof(*first));
        fill_pairs(c, first, next, sends);
    }
    for (size_t i = 0; i < n; i++) {
        g_free(sends[i]);
    }
    g_free(sends);
    return is_whole && c->got && c->sent;
}

TtStatus tt_causal_seal(TtCausal *c, TtDiag *diag)
{
    g_autofree Walk *walks = g_new0(Walk, c->n_runs);
    TtStatus st = TT_OK;

    assert(!c->got);
    for (unsigned i = 0; i < c->n_runs; i++) {
        c->runs[i].lost_at = c->runs[i].n;
        c->runs[i].rank = g_try_new(uint32_t, (size_t)c->runs[i].n + 1);
        if (!c->runs[i].rank) {
            st = TT_ERR_NOMEM;
        }
    }
    if (!st) {
        st = rank_events(c, walks, diag);
    }
    for (unsigned i = 0; i < c->n_runs; i++) {
        g_free(walks[i].waiting.items);
    }
    if (!st && !sort_pairs(c)) {
        st = TT_ERR_NOMEM;
    }
    if (st == TT_ERR_NOMEM) {
        return tt_fail(diag, st, "not enough memory for the order of the group's frames");
    }
    c->mark = g_new(uint32_t, c->n_runs);
    return st;
}
