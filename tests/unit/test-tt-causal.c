/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The causal index against brute force: random histories of a few runs, whose order is
 * the closure of a matrix, and whose cuts are all tried.
 */
#include "causal-history.h"

static TtCausal *index_of(const History *h)
{
    TtCausal *c = tt_causal_new(h->n_runs);
    TtDiag diag;

    for (unsigned run = 0; run < h->n_runs; run++) {
        for (unsigned i = 0; i < h->n; i++) {
            const Event *e = &h->e[i];

            if (e->run == run && e->cause < 0) {
                g_assert_cmpint(tt_causal_sent(c, run, e->pos, e->seq, &diag), ==, TT_OK);
            } else if (e->run == run) {
                const Event *s = &h->e[e->cause];

                g_assert_cmpint(tt_causal_delivered(c, run, e->pos, s->run, s->seq,
                                                    &diag), ==, TT_OK);
            }
        }
        tt_causal_ends(c, run, h->end[run]);
    }
    g_assert_cmpint(tt_causal_seal(c, &diag), ==, TT_OK);
    return c;
}

static bool is_consistent(const History *h, const uint64_t *at)
{
    for (unsigned i = 0; i < h->n; i++) {
        const Event *e = &h->e[i];

        if (e->cause >= 0 && e->pos < at[e->run] &&
            h->e[e->cause].pos >= at[h->e[e->cause].run]) {
            return false;
        }
    }
    return true;
}

/* The greatest by trying all: the largest of each over all that are consistent, with
 * @run (n_runs: none) at @pos and none after @most. */
static bool greatest(const History *h, unsigned run, uint64_t pos, const uint64_t *most,
                     uint64_t *best)
{
    uint64_t at[RUNS_MAX] = { 0 };
    bool is_any = false;

    memset(best, 0, RUNS_MAX * sizeof(*best));
    if (run < h->n_runs) {
        at[run] = pos;
    }
    for (;;) {
        unsigned i = 0;

        if (is_consistent(h, at)) {
            is_any = true;
            for (unsigned k = 0; k < h->n_runs; k++) {
                best[k] = MAX(best[k], at[k]);
            }
        }
        for (; i < h->n_runs; i++) {
            if (i != run && at[i] < MIN(most[i], h->end[i])) {
                at[i]++;
                break;
            } else if (i != run) {
                at[i] = 0;
            }
        }
        if (i == h->n_runs) {
            return is_any;
        }
    }
}

static void check_cuts(const History *h, TtCausal *c)
{
    for (unsigned run = 0; run < h->n_runs; run++) {
        for (uint64_t pos = 0; pos <= h->end[run]; pos++) {
            uint64_t got[RUNS_MAX], best[RUNS_MAX];
            bool is_any = greatest(h, run, pos, h->end, best);
            TtDiag diag;
            TtStatus st = tt_causal_cut(c, run, pos, got, &diag);

            g_assert_cmpint(st, ==, is_any ? TT_OK : TT_ERR_MISMATCH);
            g_assert_true(is_any);      /* a send takes a position: there is one */
            g_assert_cmpint(tt_causal_check_cut(c, got, &diag), ==, TT_OK);
            for (unsigned i = 0; i < h->n_runs; i++) {
                g_assert_cmpuint(got[i], ==, best[i]);
            }
            for (unsigned i = 0; i < h->n_runs; i++) {
                uint64_t kept = got[i];

                got[i] = g_test_rand_int_range(0, h->end[i] + 1);
                g_assert_cmpint(tt_causal_check_cut(c, got, NULL) == TT_OK, ==,
                                is_consistent(h, got));
                got[i] = kept;
            }
        }
    }
}

static void check_cuts_below(const History *h, TtCausal *c)
{
    for (unsigned n = 0; n < 5; n++) {
        uint64_t most[RUNS_MAX], got[RUNS_MAX], best[RUNS_MAX];

        for (unsigned i = 0; i < h->n_runs; i++) {
            most[i] = n ? g_test_rand_int_range(0, h->end[i] + 1) : UINT64_MAX;
        }
        greatest(h, h->n_runs, 0, most, best);
        tt_causal_cut_below(c, most, got);
        for (unsigned i = 0; i < h->n_runs; i++) {
            g_assert_cmpuint(got[i], ==, best[i]);
        }
        tt_causal_cut_below(c, got, got);       /* it is one already */
        g_assert_cmpmem(got, h->n_runs * 8, best, h->n_runs * 8);
    }
}

static void check_clocks(const History *h, TtCausal *c)
{
    for (unsigned run = 0; run < h->n_runs; run++) {
        for (uint64_t pos = 0; pos <= h->end[run] + 1; pos++) {
            uint32_t got[RUNS_MAX], want[RUNS_MAX] = { 0 };

            tt_causal_clock(c, run, pos, got);
            for (unsigned b = 0; b < h->n; b++) {
                if (h->e[b].run != run || h->e[b].pos >= pos) {
                    continue;
                }
                want[run] = MAX(want[run], h->e[b].nth + 1);
                for (unsigned a = 0; a < b; a++) {
                    if (h->before[a][b]) {
                        want[h->e[a].run] = MAX(want[h->e[a].run], h->e[a].nth + 1);
                    }
                }
            }
            for (unsigned i = 0; i < h->n_runs; i++) {
                g_assert_cmpuint(got[i], ==, want[i]);
            }
        }
    }
}

static void check_orders(const History *h, TtCausal *c)
{
    for (unsigned n = 0; n < 200; n++) {
        unsigned a = g_test_rand_int_range(0, h->n_runs);
        unsigned b = g_test_rand_int_range(0, h->n_runs);
        uint64_t pos_a = g_test_rand_int_range(0, h->end[a] + 1);
        uint64_t pos_b = g_test_rand_int_range(0, h->end[b] + 1);
        TtCausalOrder got = tt_causal_order(c, a, pos_a, b, pos_b), want;

        if (a == b) {
            want = pos_a < pos_b ? TT_CAUSAL_BEFORE : pos_a > pos_b ? TT_CAUSAL_AFTER :
                   TT_CAUSAL_SAME;
        } else {
            bool x = leads(h, a, pos_a, b, pos_b), y = leads(h, b, pos_b, a, pos_a);

            want = x && y ? TT_CAUSAL_BOTH : x ? TT_CAUSAL_BEFORE : y ? TT_CAUSAL_AFTER :
                   TT_CAUSAL_CONCURRENT;
        }
        g_assert_cmpint(got, ==, want);
    }
}

static void test_random(void)
{
    for (unsigned i = 0; i < 600; i++) {
        History h;
        TtCausal *c;

        make(&h, g_test_rand_int_range(1, 4), g_test_rand_int_range(1, 22),
             g_test_rand_int_range(1, 12));
        c = index_of(&h);
        check_cuts(&h, c);
        check_cuts_below(&h, c);
        tt_causal_free(c);
    }
    for (unsigned i = 0; i < 600; i++) {
        History h;
        TtCausal *c;

        make(&h, g_test_rand_int_range(1, RUNS_MAX + 1),
             g_test_rand_int_range(1, EVENTS_MAX + 1), g_test_rand_int_range(1, 40));
        c = index_of(&h);
        check_clocks(&h, c);
        check_orders(&h, c);
        tt_causal_free(c);
    }
}

/* A asks B, B answers: the plain case, by hand. */
static void test_ask(void)
{
    static const char *const names[] = { "client", "server" };
    TtCausal *c = tt_causal_new(2);
    uint64_t at[2];
    uint32_t clock[2];
    TtDiag diag;

    tt_causal_set_names(c, names);
    g_assert_false(tt_causal_sent(c, 0, 100, 7, NULL));
    g_assert_false(tt_causal_delivered(c, 0, 200, 1, 0, NULL));
    g_assert_false(tt_causal_delivered(c, 1, 50, 0, 7, NULL));
    g_assert_false(tt_causal_sent(c, 1, 60, 0, NULL));
    tt_causal_ends(c, 0, 1000);
    tt_causal_ends(c, 1, 1000);
    g_assert_false(tt_causal_seal(c, &diag));
    g_assert_false(tt_causal_cut(c, 0, 100, at, &diag));
    g_assert_cmpuint(at[1], ==, 50);
    g_assert_false(tt_causal_cut(c, 0, 101, at, &diag));
    g_assert_cmpuint(at[1], ==, 1000);
    g_assert_false(tt_causal_cut(c, 1, 60, at, &diag));
    g_assert_cmpuint(at[0], ==, 200);
    g_assert_false(tt_causal_cut(c, 1, 61, at, &diag));
    g_assert_cmpuint(at[0], ==, 1000);
    tt_causal_clock(c, 0, 201, clock);
    g_assert_cmpuint(clock[0], ==, 2);
    g_assert_cmpuint(clock[1], ==, 2);
    g_assert_cmpint(tt_causal_order(c, 0, 100, 1, 50), ==, TT_CAUSAL_BEFORE);
    g_assert_cmpint(tt_causal_order(c, 0, 101, 1, 50), ==, TT_CAUSAL_CONCURRENT);
    g_assert_cmpint(tt_causal_order(c, 0, 200, 1, 60), ==, TT_CAUSAL_AFTER);
    g_assert_cmpint(tt_causal_order(c, 0, 199, 1, 60), ==, TT_CAUSAL_CONCURRENT);
    at[0] = 100;
    at[1] = 51;
    g_assert_cmpint(tt_causal_check_cut(c, at, &diag), ==, TT_ERR_MISMATCH);
    g_assert_nonnull(strstr(diag.text, "server has received what client sent"));
    tt_causal_free(c);
}

/* What a sender's log does not have any more, or did not have yet. */
static void test_lost(void)
{
    TtCausal *c = tt_causal_new(2);
    uint64_t at[2];
    TtDiag diag;

    g_assert_false(tt_causal_sent(c, 0, 10, 5, NULL));
    g_assert_false(tt_causal_delivered(c, 1, 20, 0, 4, NULL));      /* early */
    g_assert_false(tt_causal_delivered(c, 1, 30, 0, 5, NULL));
    g_assert_false(tt_causal_sent(c, 1, 35, 0, NULL));
    g_assert_false(tt_causal_delivered(c, 1, 40, 0, 6, NULL));      /* lost */
    g_assert_false(tt_causal_delivered(c, 1, 50, 0, 7, NULL));
    tt_causal_early(c, 1, 0, 2);
    tt_causal_ends(c, 1, 100);
    tt_causal_ends(c, 0, 11);
    g_assert_false(tt_causal_seal(c, &diag));
    g_assert_cmpuint(tt_causal_totals(c).early, ==, 2);
    g_assert_cmpuint(tt_causal_totals(c).lost, ==, 2);
    g_assert_false(tt_causal_cut(c, 0, 11, at, &diag));
    g_assert_cmpuint(at[1], ==, 40);
    g_assert_false(tt_causal_cut(c, 1, 40, at, &diag));
    g_assert_cmpuint(at[0], ==, 11);
    g_assert_cmpint(tt_causal_cut(c, 1, 41, at, &diag), ==, TT_ERR_MISMATCH);
    g_assert_nonnull(strstr(diag.text, "is lost"));
    g_assert_cmpint(tt_causal_order(c, 0, 11, 1, 40), ==, TT_CAUSAL_BEFORE);
    g_assert_cmpint(tt_causal_order(c, 1, 50, 0, 10), ==, TT_CAUSAL_AFTER);
    g_assert_cmpint(tt_causal_order(c, 0, 11, 1, 39), ==, TT_CAUSAL_CONCURRENT);
    g_assert_cmpint(tt_causal_check_order(c, 0, 11, 1, 39, &diag), ==, TT_ERR_MISMATCH);
    g_assert_nonnull(strstr(diag.text, "ends at position 11, and lacks what happened there"));
    at[0] = 11;
    at[1] = 41;
    g_assert_cmpint(tt_causal_check_cut(c, at, &diag), ==, TT_ERR_MISMATCH);
    tt_causal_free(c);
}

/* A log that was cut off at position 2, where it has an event, may lack another one there. */
static void test_cut_off(void)
{
    for (unsigned is_whole = 0; is_whole < 2; is_whole++) {
        TtCausal *c = tt_causal_new(2);
        TtDiag diag;

        g_assert_false(tt_causal_sent(c, 0, 2, 0, NULL));
        g_assert_false(tt_causal_sent(c, 1, 1, 0, NULL));
        tt_causal_ends(c, 0, 2);
        tt_causal_ends(c, 1, 5);
        if (!is_whole) {
            tt_causal_lacks_end(c, 0);
        }
        g_assert_false(tt_causal_seal(c, &diag));
        g_assert_cmpint(tt_causal_order(c, 0, 2, 1, 1), ==, TT_CAUSAL_CONCURRENT);
        g_assert_cmpint(tt_causal_check_order(c, 0, 2, 1, 1, &diag), ==,
                        is_whole ? TT_OK : TT_ERR_MISMATCH);
        g_assert_cmpint(tt_causal_check_order(c, 0, 1, 1, 1, &diag), ==, TT_OK);
        tt_causal_free(c);
    }
}

/* A frame in flight was sent where its sender's log ends, or later: who got it before a place
 * is not at one moment with any place in that log. */
static void test_in_flight_for_sure(void)
{
    TtCausal *c = tt_causal_new(2);
    TtDiag diag;

    g_assert_false(tt_causal_sent(c, 0, 10, 0, NULL));
    g_assert_false(tt_causal_delivered(c, 1, 40, 0, 1, NULL));
    tt_causal_ends(c, 0, 12);
    tt_causal_goes_on(c, 0);
    tt_causal_ends(c, 1, 100);
    g_assert_false(tt_causal_seal(c, &diag));
    g_assert_true(tt_causal_check_places(c, (uint64_t[]) { 12, 50 }, false, &diag));
    g_assert_nonnull(strstr(diag.text, "does not have yet"));
    g_assert_true(tt_causal_check_places(c, (uint64_t[]) { 12, 50 }, true, &diag));
    g_assert_nonnull(strstr(diag.text, "what run 0 sent behind the end of its log"));
    g_assert_true(tt_causal_check_places(c, (uint64_t[]) { UINT64_MAX, 50 }, false, &diag));
    g_assert_false(tt_causal_check_places(c, (uint64_t[]) { UINT64_MAX, 50 }, true, &diag));
    g_assert_false(tt_causal_check_places(c, (uint64_t[]) { 12, 40 }, true, &diag));
    tt_causal_free(c);
}

/* The same of a sender whose log is still being written: nothing is lost, and no cut is
 * beyond it yet. */
static void test_pending(void)
{
    TtCausal *c = tt_causal_new(3);
    uint64_t at[3];
    TtDiag diag;

    g_assert_false(tt_causal_sent(c, 0, 10, 5, NULL));
    g_assert_false(tt_causal_delivered(c, 1, 30, 0, 5, NULL));
    g_assert_false(tt_causal_sent(c, 1, 35, 0, NULL));
    g_assert_false(tt_causal_delivered(c, 1, 40, 0, 6, NULL));      /* in flight */
    g_assert_false(tt_causal_sent(c, 1, 45, 1, NULL));
    g_assert_false(tt_causal_delivered(c, 2, 50, 1, 1, NULL));      /* follows from it */
    tt_causal_ends(c, 0, 11);
    tt_causal_goes_on(c, 0);
    tt_causal_ends(c, 1, 100);
    tt_causal_ends(c, 2, 100);
    g_assert_false(tt_causal_seal(c, &diag));
    g_assert_cmpuint(tt_causal_totals(c).lost, ==, 0);
    g_assert_cmpuint(tt_causal_totals(c).pending, ==, 1);
    g_assert_false(tt_causal_cut(c, 1, 40, at, &diag));
    g_assert_cmpint(tt_causal_cut(c, 1, 41, at, &diag), ==, TT_ERR_MISMATCH);
    g_assert_nonnull(strstr(diag.text, "is in flight"));
    g_assert_cmpint(tt_causal_cut(c, 2, 51, at, &diag), ==, TT_ERR_MISMATCH);
    g_assert_nonnull(strstr(diag.text, "follows from one that is in flight"));
    g_assert_cmpint(tt_causal_order(c, 0, 10, 2, 50), ==, TT_CAUSAL_BEFORE);
    g_assert_cmpint(tt_causal_order(c, 0, 10, 2, 49), ==, TT_CAUSAL_CONCURRENT);
    at[0] = 11;
    at[1] = 41;
    at[2] = 50;
    g_assert_cmpint(tt_causal_check_cut(c, at, &diag), ==, TT_ERR_MISMATCH);
    g_assert_nonnull(strstr(diag.text, "does not have yet"));
    tt_causal_free(c);
}

/* Run 0 sends at 10, and gets a frame there. If that is the answer, its sender cannot stand
 * between the two; if both were on their way at once, it can stand anywhere. */
static void test_answer_at_one_position(void)
{
    for (unsigned is_answer = 0; is_answer < 2; is_answer++) {
        TtCausal *c = tt_causal_new(2);
        uint64_t at[2], tied, sent_at = is_answer ? 35 : 25;
        unsigned other;
        TtDiag diag;

        g_assert_false(tt_causal_sent(c, 0, 10, 0, NULL));
        g_assert_false(tt_causal_delivered(c, 0, 10, 1, 0, NULL));
        if (!is_answer) {
            g_assert_false(tt_causal_sent(c, 1, sent_at, 0, NULL));
        }
        g_assert_false(tt_causal_delivered(c, 1, 30, 0, 0, NULL));
        if (is_answer) {
            g_assert_false(tt_causal_sent(c, 1, sent_at, 0, NULL));
        }
        tt_causal_ends(c, 0, 100);
        tt_causal_ends(c, 1, 100);
        g_assert_false(tt_causal_seal(c, &diag));
        g_assert_cmpint(tt_causal_ties(c, 0, 10, &other, &tied), ==, is_answer);
        g_assert_true(!is_answer || (other == 1 && tied == sent_at));
        g_assert_cmpint(tt_causal_cut(c, 1, sent_at, at, &diag), ==,
                        is_answer ? TT_ERR_MISMATCH : TT_OK);
        g_assert_false(tt_causal_ties(c, 0, 11, &other, &tied));
        g_assert_false(tt_causal_ties(c, 1, sent_at, &other, &tied));
        tt_causal_free(c);
    }
}

/* As make, but a frame may be got where one was sent. */
static void make_ties(History *h, unsigned n_runs, unsigned n)
{
    uint64_t pos[RUNS_MAX] = { 0 }, seq[RUNS_MAX] = { 0 };

    memset(h, 0, sizeof(*h));
    h->n_runs = n_runs;
    for (; h->n < n; h->n++) {
        unsigned run = g_test_rand_int_range(0, n_runs);
        int cause = h->n ? g_test_rand_int_range(0, h->n) : -1;

        if (cause < 0 || g_test_rand_bit() || h->e[cause].cause >= 0 ||
            h->e[cause].run == run) {
            cause = -1;
        }
        pos[run] += g_test_rand_int_range(0, 4) > 2;
        h->e[h->n] = (Event) { .run = run, .pos = pos[run], .cause = cause,
                               .seq = cause < 0 ? seq[run]++ : 0 };
        h->end[run] = pos[run] + 1;
    }
}

/* Was one sent there, and one got after that? */
static bool has_both(const History *h, unsigned run, uint64_t pos)
{
    bool has_sent = false;

    for (unsigned i = 0; i < h->n; i++) {
        if (h->e[i].run == run && h->e[i].pos == pos) {
            if (has_sent && h->e[i].cause >= 0) {
                return true;
            }
            has_sent |= h->e[i].cause < 0;
        }
    }
    return false;
}

/* All positions that are in no cut are so by a tie, and each tie names one of them. */
static void test_ties(void)
{
    unsigned n_tied = 0, n_free = 0;

    for (unsigned i = 0; i < 5000; i++) {
        uint64_t at[RUNS_MAX], where;
        bool is_found = false, is_any = false;
        unsigned other;
        TtCausal *c;
        History h;

        make_ties(&h, g_test_rand_int_range(2, 4), g_test_rand_int_range(4, 16));
        c = index_of(&h);
        for (unsigned run = 0; run < h.n_runs; run++) {
            for (uint64_t pos = 0; pos <= h.end[run]; pos++) {
                is_any |= tt_causal_cut(c, run, pos, at, NULL) != TT_OK;
                if (has_both(&h, run, pos) && tt_causal_ties(c, run, pos, &other, &where)) {
                    is_found = true;
                    g_assert_cmpint(tt_causal_cut(c, other, where, at, NULL), !=, TT_OK);
                }
            }
        }
        g_assert_cmpint(is_found, ==, is_any);
        n_tied += is_any;
        n_free += !is_any;
        tt_causal_free(c);
    }
    g_assert_cmpuint(n_tied, >, 100);
    g_assert_cmpuint(n_free, >, 100);
}

/* A lost frame of one run does not order two others: that run may have heard of the one
 * before. And a tie is not blamed on it. */
static void test_lost_elsewhere(void)
{
    TtCausal *c = tt_causal_new(4);
    uint64_t at[4];
    TtDiag diag;

    g_assert_false(tt_causal_sent(c, 0, 10, 0, NULL));
    g_assert_false(tt_causal_delivered(c, 0, 10, 1, 0, NULL));      /* the answer to it */
    g_assert_false(tt_causal_delivered(c, 1, 30, 0, 0, NULL));
    g_assert_false(tt_causal_sent(c, 1, 35, 0, NULL));
    g_assert_false(tt_causal_sent(c, 3, 50, 0, NULL));
    g_assert_false(tt_causal_delivered(c, 2, 40, 3, 1, NULL));      /* lost */
    tt_causal_ends(c, 0, 100);
    tt_causal_ends(c, 1, 100);
    tt_causal_ends(c, 2, 100);
    g_assert_false(tt_causal_seal(c, &diag));
    g_assert_cmpint(tt_causal_cut(c, 1, 35, at, &diag), ==, TT_ERR_MISMATCH);
    g_assert_nonnull(strstr(diag.text, "at the same position"));
    g_assert_cmpint(tt_causal_order(c, 0, 5, 2, 40), ==, TT_CAUSAL_CONCURRENT);
    g_assert_cmpint(tt_causal_check_order(c, 0, 5, 2, 40, &diag), ==, TT_ERR_MISMATCH);
    g_assert_nonnull(strstr(diag.text, "their order is not known: the frame that run 2 "
                            "received at position 40 is lost"));
    g_assert_false(tt_causal_check_order(c, 0, 5, 2, 39, &diag));
    g_assert_cmpint(tt_causal_order(c, 3, 51, 2, 40), ==, TT_CAUSAL_BEFORE);
    tt_causal_free(c);
}

/* A lost frame of run 1 comes after what run 0 sent it, and before another frame of run 0. */
static void test_by_way_of_a_lost_one(void)
{
    TtCausal *c = tt_causal_new(3);

    g_assert_false(tt_causal_sent(c, 0, 10, 0, NULL));
    g_assert_false(tt_causal_sent(c, 0, 20, 1, NULL));
    g_assert_false(tt_causal_delivered(c, 1, 10, 0, 0, NULL));
    g_assert_false(tt_causal_delivered(c, 2, 30, 1, 0, NULL));      /* lost */
    g_assert_false(tt_causal_delivered(c, 2, 40, 0, 1, NULL));
    for (unsigned i = 0; i < 3; i++) {
        tt_causal_ends(c, i, 50);
    }
    g_assert_false(tt_causal_seal(c, NULL));
    g_assert_cmpint(tt_causal_order(c, 0, 10, 2, 35), ==, TT_CAUSAL_BEFORE);
    g_assert_cmpint(tt_causal_order(c, 0, 10, 2, 29), ==, TT_CAUSAL_CONCURRENT);
    tt_causal_free(c);
}

/* What a run has got of one that has sent nothing; what follows from a lost frame; an end
 * before the last event. */
static void test_nothing_sent(void)
{
    TtCausal *c = tt_causal_new(3);
    uint64_t at[3];
    TtDiag diag;

    g_assert_false(tt_causal_delivered(c, 1, 40, 0, 6, NULL));
    g_assert_false(tt_causal_sent(c, 1, 45, 1, NULL));
    g_assert_false(tt_causal_delivered(c, 2, 50, 1, 1, NULL));
    tt_causal_ends(c, 1, 30);
    tt_causal_ends(c, 2, 100);
    g_assert_false(tt_causal_seal(c, &diag));
    g_assert_cmpuint(tt_causal_totals(c).lost, ==, 1);
    g_assert_cmpuint(tt_causal_totals(c).early, ==, 0);
    g_assert_cmpuint(tt_causal_end_of(c, 1), ==, 46);
    g_assert_cmpint(tt_causal_cut(c, 2, 51, at, &diag), ==, TT_ERR_MISMATCH);
    g_assert_nonnull(strstr(diag.text, "follows from one that is lost"));
    tt_causal_free(c);
}

static void test_heap(void)
{
    TtHeap h = { 0 };
    uint32_t last = 0;

    for (unsigned i = 0; i < 1000; i++) {
        uint32_t key = g_test_rand_int_range(0, 500);

        tt_heap_push(&h, key, ~key);
    }
    for (unsigned n = 1000; n; n--) {
        TtHeapItem x = tt_heap_pop(&h);

        g_assert_cmpuint(x.key, >=, last);
        g_assert_cmpuint(x.value, ==, ~x.key);
        g_assert_cmpuint(h.n, ==, n - 1);
        last = x.key;
    }
    g_free(h.items);
}

static void test_bad(void)
{
    TtCausal *c = tt_causal_new(2);
    uint64_t at[2];
    TtDiag diag;

    g_assert_false(tt_causal_sent(c, 0, 10, 5, NULL));
    g_assert_cmpint(tt_causal_sent(c, 0, 10, 7, &diag), ==, TT_ERR_FORMAT);
    g_assert_cmpint(tt_causal_sent(c, 0, 9, 6, &diag), ==, TT_ERR_FORMAT);
    g_assert_cmpint(tt_causal_sent(c, 1, UINT64_MAX, 6, &diag), ==, TT_ERR_FORMAT);
    tt_causal_free(c);

    c = tt_causal_new(2);                   /* each got it before the other sent */
    g_assert_false(tt_causal_delivered(c, 0, 10, 1, 0, NULL));
    g_assert_false(tt_causal_sent(c, 0, 20, 0, NULL));
    g_assert_false(tt_causal_delivered(c, 1, 10, 0, 0, NULL));
    g_assert_false(tt_causal_sent(c, 1, 20, 0, NULL));
    g_assert_cmpint(tt_causal_seal(c, &diag), ==, TT_ERR_MISMATCH);
    tt_causal_free(c);

    c = tt_causal_new(2);                   /* sent and got the answer at one place */
    g_assert_false(tt_causal_sent(c, 0, 10, 0, NULL));
    g_assert_false(tt_causal_delivered(c, 0, 10, 1, 0, NULL));
    g_assert_false(tt_causal_delivered(c, 1, 10, 0, 0, NULL));
    g_assert_false(tt_causal_sent(c, 1, 20, 0, NULL));
    g_assert_false(tt_causal_seal(c, &diag));
    g_assert_cmpint(tt_causal_cut(c, 1, 20, at, &diag), ==, TT_ERR_MISMATCH);
    g_assert_cmpint(tt_causal_order(c, 0, 10, 1, 21), ==, TT_CAUSAL_BEFORE);
    g_assert_cmpint(tt_causal_order(c, 0, 10, 1, 10), ==, TT_CAUSAL_BOTH);
    tt_causal_free(c);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tt/causal/asks-and-answers", test_ask);
    g_test_add_func("/tt/causal/is-as-brute-force-says", test_random);
    g_test_add_func("/tt/causal/knows-what-is-lost", test_lost);
    g_test_add_func("/tt/causal/cut-off", test_cut_off);
    g_test_add_func("/tt/causal/in-flight-for-sure", test_in_flight_for_sure);
    g_test_add_func("/tt/causal/pending", test_pending);
    g_test_add_func("/tt/causal/answer-at-one-position", test_answer_at_one_position);
    g_test_add_func("/tt/causal/ties", test_ties);
    g_test_add_func("/tt/causal/lost-elsewhere", test_lost_elsewhere);
    g_test_add_func("/tt/causal/by-way-of-a-lost-one", test_by_way_of_a_lost_one);
    g_test_add_func("/tt/causal/of-one-that-sent-nothing", test_nothing_sent);
    g_test_add_func("/tt/causal/heap-is-in-order", test_heap);
    g_test_add_func("/tt/causal/refuses-what-cannot-be", test_bad);
    return g_test_run();
}
