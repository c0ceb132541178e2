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
        g_free(c->runs[i].sent_before);
        g_free(c->runs[i].follows);
        if (c->runs[i].heard) {
            g_hash_table_unref(c->runs[i].heard);
        }
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
        r->last_send = r->n - 1;
        c->totals.sends++;
    }
    return st;
}

/* Of a window: which was the first, and did it get them in order? */
static void note_heard(TtCausalRun *r, unsigned from, uint64_t seq, bool is_early)
{
    gpointer key = GUINT_TO_POINTER(from + 1);
    TtCausalHeard *h = r->is_window ? g_hash_table_lookup(r->heard, key) : NULL;

    if (h) {
        h->overtakes |= seq < h->last;
        h->last = seq;
    } else if (r->is_window) {
        h = g_new(TtCausalHeard, 1);
        *h = (TtCausalHeard) { .first = seq, .last = seq, .is_early = is_early };
        g_hash_table_insert(r->heard, key, h);
    }
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
        note_heard(r, from, seq, false);
        c->totals.deliveries++;
    }
    return st;
}

void tt_causal_begins(TtCausal *c, unsigned run, uint64_t pos)
{
    TtCausalRun *r = &c->runs[run];

    assert(!r->n && !r->is_window);
    r->is_window = true;
    r->begins = pos;
    r->heard = g_hash_table_new_full(NULL, NULL, NULL, g_free);
}

void tt_causal_hides_early(TtCausal *c, unsigned run, uint64_t below)
{
    TtCausalRun *r = &c->runs[run];

    r->hides_below = MAX(r->hides_below, below);
}

void tt_causal_early(TtCausal *c, unsigned run, unsigned from, uint64_t seq)
{
    note_heard(&c->runs[run], from, seq, true);
    c->totals.deliveries++;
    c->totals.early++;
}

void tt_causal_goes_on(TtCausal *c, unsigned run)
{
    c->runs[run].goes_on = true;
    c->runs[run].lacks_end = true;
}

void tt_causal_lacks_end(TtCausal *c, unsigned run)
{
    c->runs[run].lacks_end = true;
}

void tt_causal_ends(TtCausal *c, unsigned run, uint64_t pos)
{
    TtCausalRun *r = &c->runs[run];

    r->end = MAX(r->end, pos);
    r->till = MAX(r->till, pos);
}

/* ---- ranks ---- */

/* A run on its way through its events. */
typedef struct Walk {
    uint32_t at, n_sent, n_got;
    TtHeap waiting;             /* runs, by the number of sends that they wait for */
} Walk;

enum { EARLY, KNOWN, LATE, LOST };      /* LATE: lost, and sent after the sender's log */

/* A window without a send does not tell whether a frame was sent before it or after it. */
static bool tells_nothing(const TtCausalRun *sender, uint64_t seq)
{
    return sender->is_window && seq < sender->hides_below && !sender->n_sends;
}

/* What @run got. */
static int find_send(const TtCausal *c, unsigned run, unsigned from, uint64_t seq,
                     uint64_t *nth)
{
    const TtCausalRun *sender = &c->runs[from];

    *nth = seq - sender->first_seq;
    if (sender->n_sends && seq < sender->first_seq) {
        return EARLY;
    }
    return *nth < sender->n_sends ? KNOWN :
        run == from || tells_nothing(sender, seq) ? LOST : LATE;
}

static bool is_paired(int what)
{
    return what == KNOWN || what == LATE;
}

/* @run, at event @at, got one that its sender's log does not have. */
static void lose(TtCausal *c, unsigned run, uint32_t at, TtCausalRun *sender, uint64_t seq)
{
    unsigned fate = tells_nothing(sender, seq) ? TT_CAUSAL_UNKNOWN :
        sender->goes_on ? TT_CAUSAL_PENDING : TT_CAUSAL_LOST;
    TtCausalRun *r = &c->runs[run];

    if (r->lost_at > at) {
        r->lost_at = at;
        r->fate = fate;
    }
    if (fate == TT_CAUSAL_LOST) {
        r->gone_at = MIN(r->gone_at, at);
    }
    sender->lacks_end |= fate != TT_CAUSAL_UNKNOWN;
    c->totals.lost += fate == TT_CAUSAL_LOST;
    c->totals.pending += fate == TT_CAUSAL_PENDING;
    c->totals.unknown += fate == TT_CAUSAL_UNKNOWN;
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
            int what = find_send(c, run, from, r->seq[w->n_got], &nth);

            if (what == KNOWN ? nth >= walks[from].n_sent :
                what == LATE && walks[from].at < c->runs[from].n) {
                tt_heap_push(&walks[from].waiting, what == KNOWN ? nth : UINT32_MAX, run);
                return;
            }
            if (what >= LATE) {
                lose(c, run, w->at, &c->runs[from], r->seq[w->n_got]);
            }
            c->totals.early += what == EARLY;
            c->n_paired += is_paired(what);
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
        while (w->waiting.n &&
               (w->waiting.items[0].key < w->n_sent || w->at == c->runs[run].n)) {
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
                is_paired(find_send(c, to, from, r->seq[n_got++], &nth))) {
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
            int what = from == TT_CAUSAL_SENT ? LOST :
                find_send(c, to, from, r->seq[n_got++], &nth);

            if (!is_paired(what)) {
                continue;
            }
            sent = what == KNOWN ? sends[from][nth] : c->runs[from].n;
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
    bool is_whole = first;

    c->got = g_try_new(uint32_t, c->n_paired + 1);
    c->sent = g_try_new(uint32_t, c->n_paired + 1);
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
        c->runs[i].lost_at = c->runs[i].gone_at = c->runs[i].n;
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
