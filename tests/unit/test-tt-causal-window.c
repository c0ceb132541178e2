/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The causal index of logs that are windows, or lack the end of their run, against that of the
 * whole logs: what it says is true, and it does not refuse without need.
 */
#include "causal-history.h"

static unsigned n_before;       /* how often tt_causal_begins_before said so of a window */

/* What the logs are like. */
enum {
    CUT_OFF = 1,                /* some lack the end of their run */
    OVERTAKING = 2,             /* frames overtake each other, and the windows show that */
    MOMENTS = 4,                /* checkpoints of the group are known */
};

typedef struct Windows {
    uint64_t from[RUNS_MAX];    /* what is before it is not in the log; 0: all is */
    uint64_t begins[RUNS_MAX];
    uint64_t till[RUNS_MAX];    /* nor is what is here or later */
    bool goes_on[RUNS_MAX];     /* since it is still being written */
    bool is_kvm[RUNS_MAX];      /* frames do not say that they were sent before the window */
} Windows;

typedef struct Counts {
    unsigned given, refused, concurrent, undecided, sure, open;
} Counts;

/* Frames of one run to another one keep their order. */
static void drop_overtaking(History *h)
{
    for (unsigned i = 0; i < h->n; i++) {
        for (unsigned k = 0; h->e[i].cause >= 0 && k < i; k++) {
            if (h->e[k].cause >= h->e[i].cause && h->e[k].run == h->e[i].run &&
                h->e[h->e[k].cause].run == h->e[h->e[i].cause].run) {
                h->e[i].cause = -2;             /* it got nothing */
            }
        }
    }
    close_order(h);
}

/* Of each window and sender: do the frames in it tell if any of the run were overtaken? */
static bool shows_overtaking(const History *h, const Windows *w)
{
    for (unsigned to = 0; to < h->n_runs; to++) {
        for (unsigned from = 0; w->from[to] && from < h->n_runs; from++) {
            int last = -1, last_in = -1;
            bool is_any = false, is_shown = false;

            for (unsigned i = 0; i < h->n; i++) {
                const Event *e = &h->e[i];

                if (e->run == to && e->cause >= 0 && h->e[e->cause].run == from) {
                    is_any |= e->cause < last;
                    last = e->cause;
                    if (e->pos >= w->from[to] && e->pos < w->till[to]) {
                        is_shown |= e->cause < last_in;
                        last_in = e->cause;
                    }
                }
            }
            if (is_any && !is_shown) {
                return false;
            }
        }
    }
    return true;
}

static bool is_in(const Windows *w, const Event *e)
{
    return e->pos >= w->from[e->run] && e->pos < w->till[e->run];
}

static bool is_early(const Windows *w, const Event *send)
{
    return send->pos < w->from[send->run];
}

/* Of a window of KVM without a send it is not known what is early. */
static bool is_vague(const History *h, const Windows *w)
{
    for (unsigned run = 0; run < h->n_runs; run++) {
        bool is = w->from[run] && w->is_kvm[run];

        for (unsigned i = 0; is && i < h->n; i++) {
            is = h->e[i].run != run || h->e[i].cause != -1 || !is_in(w, &h->e[i]);
        }
        if (is) {
            return true;
        }
    }
    return false;
}

static TtCausal *index_windows(const History *h, const Windows *w)
{
    TtCausal *c = tt_causal_new(h->n_runs);

    for (unsigned run = 0; run < h->n_runs; run++) {
        if (w->from[run]) {
            tt_causal_begins(c, run, w->begins[run]);
            if (w->is_kvm[run]) {
                tt_causal_hides_early(c, run, UINT64_MAX);
            }
        }
        for (unsigned i = 0; i < h->n; i++) {
            const Event *e = &h->e[i], *s = e->cause >= 0 ? &h->e[e->cause] : NULL;

            if (e->run != run || !is_in(w, e)) {
                continue;
            }
            if (e->cause == -1) {
                g_assert_false(tt_causal_sent(c, run, e->pos, e->seq, NULL));
            } else if (s && is_early(w, s) && !w->is_kvm[s->run]) {
                tt_causal_early(c, run, s->run, s->seq);
            } else if (s) {
                g_assert_false(tt_causal_delivered(c, run, e->pos, s->run, s->seq, NULL));
            }
        }
        tt_causal_ends(c, run, w->till[run]);
        if (w->goes_on[run]) {
            tt_causal_goes_on(c, run);
        } else if (w->till[run] < h->end[run]) {
            tt_causal_lacks_end(c, run);
        }
    }
    g_assert_false(tt_causal_seal(c, NULL));
    return c;
}

/* Did a run get, before where it stands, what was sent at @at or later? */
static bool is_cut(const History *h, const uint64_t *at)
{
    for (unsigned i = 0; i < h->n; i++) {
        const Event *e = &h->e[i], *s = e->cause >= 0 ? &h->e[e->cause] : NULL;

        if (s && e->pos < at[e->run] && s->pos >= at[s->run]) {
            return false;
        }
    }
    return true;
}

/* A checkpoint that the windows have which were made with it. */
static void add_moment(const History *h, const Windows *w, TtCausal *whole, TtCausal *c)
{
    uint64_t at[RUNS_MAX], known[RUNS_MAX];

    for (unsigned i = 0; i < h->n_runs; i++) {
        at[i] = g_test_rand_int_range(0, h->end[i] + 1);
    }
    tt_causal_cut_below(whole, at, at);
    for (unsigned i = 0; i < h->n_runs; i++) {
        known[i] = g_test_rand_int_range(0, 4) ? at[i] : UINT64_MAX;
    }
    for (unsigned i = 0; i < h->n_runs; i++) {
        if (at[i] >= w->from[i]) {
            tt_causal_was_at(c, i, known);
        }
    }
}

/* Do the logs say that something in the window of each run was before where each other one
 * stands? */
static bool is_plain(const History *h, const Windows *w, TtCausal *c, const uint64_t *at)
{
    for (unsigned k = 0; k < h->n_runs; k++) {
        uint32_t clock[RUNS_MAX];

        tt_causal_clock(c, k, at[k], clock);
        for (unsigned i = 0; i < h->n_runs; i++) {
            if (i != k && w->from[i] && !clock[i]) {
                return false;
            }
        }
    }
    return true;
}

/* It says so only of a window that does. */
static void check_begins_before(const History *h, const Windows *w, TtCausal *c)
{
    for (unsigned run = 0; run < h->n_runs; run++) {
        uint64_t at[RUNS_MAX];
        bool is = !w->from[run];

        for (unsigned i = 0; i < h->n_runs; i++) {
            at[i] = g_test_rand_bit() ? UINT64_MAX :
                (uint64_t)g_test_rand_int_range(w->begins[i], w->till[i] + 1);
            is |= i != run && at[i] && at[i] <= w->till[i] &&
                leads(h, run, w->from[run], i, at[i] - 1);
        }
        if (tt_causal_begins_before(c, run, at)) {
            g_assert_true(is);
            n_before += w->from[run] > 0;
        }
    }
}

static bool is_below(const History *h, const uint64_t *a, const uint64_t *b)
{
    for (unsigned i = 0; i < h->n_runs; i++) {
        if (a[i] < b[i]) {
            return true;
        }
    }
    return false;
}

/* The sentence names the first position that works. */
static void check_refused(TtCausal *c, unsigned run, uint64_t pos, const TtDiag *diag)
{
    const char *from = strstr(diag->text, "; from position ");
    uint64_t at[RUNS_MAX], first;
    TtDiag then;

    if (!strstr(diag->text, "the window of ")) {
        g_assert_nonnull(strstr(diag->text, "no consistent cut has "));
        return;                             /* a frame is lost */
    }
    if (!from) {
        g_assert_nonnull(strstr(diag->text, "nor does it for any later"));
        g_assert_cmpint(tt_causal_cut(c, run, tt_causal_end_of(c, run), at, NULL), !=, TT_OK);
        return;
    }
    first = g_ascii_strtoull(from + strlen("; from position "), NULL, 10);
    g_assert_cmpuint(first, >, pos);
    g_assert_true(tt_causal_cut(c, run, first, at, &then) == TT_OK ||
                  strstr(then.text, "no consistent cut has "));
    g_assert_cmpint(tt_causal_cut(c, run, first - 1, at, NULL), !=, TT_OK);
}

/* The greatest of the whole logs in which none is beyond the end of its log. */
static bool greatest(const History *h, const Windows *w, TtCausal *whole, unsigned run,
                     uint64_t pos, uint64_t *at)
{
    memcpy(at, w->till, h->n_runs * sizeof(*at));
    at[run] = pos;
    tt_causal_cut_below(whole, at, at);
    return at[run] == pos;
}

/* Every cut that is given is that of the whole logs, and stands in all windows. */
static void check_windows(const History *h, const Windows *w, TtCausal *whole, TtCausal *c,
                          Counts *n)
{
    bool is_exact = !is_vague(h, w);

    for (unsigned run = 0; run < h->n_runs; run++) {
        for (uint64_t pos = w->begins[run]; pos <= w->till[run]; pos++) {
            uint64_t at[RUNS_MAX], got[RUNS_MAX];
            bool is_any = greatest(h, w, whole, run, pos, at);
            TtDiag diag;

            if (tt_causal_cut(c, run, pos, got, &diag)) {
                n->refused++;
                g_assert_true(!is_exact || !is_any || is_below(h, at, w->begins) ||
                              !is_plain(h, w, c, at));
                check_refused(c, run, pos, &diag);
                continue;
            }
            g_assert_true(is_any);
            g_assert_true(is_cut(h, got));
            g_assert_false(is_below(h, got, w->begins));
            if (is_exact) {
                g_assert_cmpmem(got, h->n_runs * 8, at, h->n_runs * 8);
            }
            n->given += is_below(h, (uint64_t[RUNS_MAX]) { 0 }, w->begins);
        }
    }
}

/* What is surely no cut is none in the whole logs, and where nothing is open the rest is. */
static void check_places(const History *h, const Windows *w, TtCausal *whole, TtCausal *c,
                         Counts *n)
{
    TtCausalTotals t = tt_causal_totals(c);

    for (unsigned i = 0; i < 60; i++) {
        uint64_t at[RUNS_MAX], all[RUNS_MAX];
        bool is_open, is_sure, is_one = true;

        for (unsigned run = 0; run < h->n_runs; run++) {
            at[run] = i % 3 && g_test_rand_bit() ? UINT64_MAX :
                g_test_rand_int_range(w->begins[run], w->till[run] + 1);
        }
        is_sure = tt_causal_check_places(c, at, true, NULL);
        is_open = !is_sure && tt_causal_check_places(c, at, false, NULL);
        for (unsigned run = 0; run < h->n_runs; run++) {
            all[run] = MIN(at[run], w->till[run]);
        }
        tt_causal_cut_below(whole, all, all);
        for (unsigned run = 0; run < h->n_runs; run++) {
            is_one &= at[run] == UINT64_MAX || all[run] == at[run];
        }
        g_assert_false(is_sure && is_one);
        g_assert_true(!is_open || t.pending || t.unknown);
        n->sure += is_sure && (t.pending || t.unknown);
        n->open += is_open;
    }
}

/* What is said of the order is so in the whole logs, too. */
static void check_windows_order(const History *h, const Windows *w, TtCausal *whole,
                                TtCausal *c, Counts *n)
{
    for (unsigned i = 0; i < 100; i++) {
        unsigned a = g_test_rand_int_range(0, h->n_runs);
        unsigned b = g_test_rand_int_range(0, h->n_runs);
        uint64_t pos_a = g_test_rand_int_range(w->begins[a], w->till[a] + 1);
        uint64_t pos_b = g_test_rand_int_range(w->begins[b], w->till[b] + 1);
        TtCausalOrder got = tt_causal_order(c, a, pos_a, b, pos_b);

        if (got != TT_CAUSAL_CONCURRENT && (pos_a >= w->till[a] || pos_b >= w->till[b])) {
            continue;                       /* its log may lack another half */
        }
        if (got != TT_CAUSAL_CONCURRENT ||
            tt_causal_check_order(c, a, pos_a, b, pos_b, NULL) == TT_OK) {
            g_assert_cmpint(got, ==, tt_causal_order(whole, a, pos_a, b, pos_b));
            n->concurrent += got == TT_CAUSAL_CONCURRENT;
        } else {
            n->undecided++;
        }
    }
}

/* What follows from each window, asked for alone and by the one pass over all. */
static void check_follows(TtCausal *c)
{
    unsigned n = c->n_runs;
    g_autofree uint32_t *alone = g_new(uint32_t, n * n);

    for (unsigned i = 0; i < n; i++) {
        if (c->runs[i].is_window) {
            g_clear_pointer(&c->runs[i].follows, g_free);
            tt_causal_follow_one(c, i);
            memcpy(alone + n * i, c->runs[i].follows, n * sizeof(*alone));
            g_clear_pointer(&c->runs[i].follows, g_free);
        }
    }
    tt_causal_follow_all(c);
    for (unsigned i = 0; i < n; i++) {
        if (c->runs[i].is_window) {
            g_assert_cmpmem(tt_causal_follows(c, i), n * sizeof(*alone), alone + n * i,
                            n * sizeof(*alone));
        }
    }
}

static void make_windows(const History *h, Windows *w, unsigned like)
{
    for (unsigned run = 0; run < h->n_runs; run++) {
        w->till[run] = h->end[run];
        w->is_kvm[run] = g_test_rand_bit();
        if ((like & CUT_OFF) && g_test_rand_bit()) {
            w->till[run] = g_test_rand_int_range(1, h->end[run] + 1);
            w->goes_on[run] = g_test_rand_bit();
        }
        if (g_test_rand_bit()) {
            unsigned more = g_test_rand_int_range(0, 3);

            w->from[run] = g_test_rand_int_range(0, w->till[run] + 1);
            w->begins[run] = w->from[run] ? MIN(w->from[run] + more, w->till[run]) : 0;
        }
    }
}

static void try_one(unsigned like, Counts *n)
{
    History h;
    Windows w = { 0 }, all = { 0 };
    TtCausal *whole, *c;

    make(&h, g_test_rand_int_range(2, 4), g_test_rand_int_range(12, EVENTS_MAX + 1),
         g_test_rand_int_range(3, 12));
    if (!(like & OVERTAKING)) {
        drop_overtaking(&h);
    }
    make_windows(&h, &w, like);
    if (!shows_overtaking(&h, &w)) {
        return;
    }
    memcpy(all.till, h.end, sizeof(all.till));
    whole = index_windows(&h, &all);
    c = index_windows(&h, &w);
    for (unsigned i = 0; (like & MOMENTS) && i < 3; i++) {
        add_moment(&h, &w, whole, c);
    }
    check_windows(&h, &w, whole, c, n);
    check_windows_order(&h, &w, whole, c, n);
    check_places(&h, &w, whole, c, n);
    check_begins_before(&h, &w, c);
    check_follows(c);
    tt_causal_free(whole);
    tt_causal_free(c);
}

static void test_windows(gconstpointer like)
{
    Counts n = { 0 };

    n_before = 0;
    for (unsigned i = 0; i < 2000; i++) {
        try_one(GPOINTER_TO_UINT(like), &n);
    }
    g_test_message("cuts: %u given, %u refused; concurrent: %u, perhaps: %u; no cut for sure: "
                   "%u, perhaps: %u", n.given, n.refused, n.concurrent, n.undecided, n.sure,
                   n.open);
    g_assert_cmpuint(n.given, >, 1000);
    g_assert_cmpuint(n.refused, >, 1000);
    g_assert_cmpuint(n.concurrent, >, 1000);
    g_assert_cmpuint(n.undecided, >, 1000);
    g_assert_cmpuint(n_before, >, 100);
    g_assert_cmpuint(n.sure, >, 100);
    g_assert_cmpuint(n.open, >, 100);
}

/* What run 1 sent after its log was saved, run 0 may have got before its window; not if a
 * checkpoint in that says otherwise. */
static void test_silent_peer(void)
{
    for (unsigned knows = 0; knows < 2; knows++) {
        TtCausal *c = tt_causal_new(2);
        uint64_t at[2];
        TtDiag diag;

        tt_causal_begins(c, 0, 50);
        g_assert_false(tt_causal_sent(c, 0, 60, 0, NULL));
        g_assert_false(tt_causal_sent(c, 1, 10, 0, NULL));
        tt_causal_ends(c, 0, 100);
        tt_causal_ends(c, 1, 40);
        tt_causal_lacks_end(c, 1);
        g_assert_false(tt_causal_seal(c, NULL));
        if (knows) {
            tt_causal_was_at(c, 0, (uint64_t[]) { 70, 40 });
            g_assert_cmpint(tt_causal_cut(c, 1, 5, at, &diag), ==, TT_ERR_MISMATCH);
        }
        g_assert_cmpint(tt_causal_cut(c, 0, 100, at, &diag), ==,
                        knows ? TT_OK : TT_ERR_MISMATCH);
        tt_causal_free(c);
    }
}

/* Run 1 got what the window of run 0 does not have. If that tells what was sent before it, it
 * was sent after it. */
static void test_without_sends(void)
{
    for (unsigned tells = 0; tells < 2; tells++) {
        TtCausal *c = tt_causal_new(2);
        TtCausalTotals t;
        uint64_t at[2];
        TtDiag diag;

        tt_causal_begins(c, 0, 50);
        if (!tells) {
            tt_causal_hides_early(c, 0, 8);
        }
        g_assert_false(tt_causal_delivered(c, 0, 60, 1, 0, NULL));
        g_assert_false(tt_causal_sent(c, 1, 10, 0, NULL));
        g_assert_false(tt_causal_delivered(c, 1, 20, 0, 7, NULL));
        g_assert_false(tt_causal_sent(c, 1, 30, 1, NULL));
        tt_causal_ends(c, 0, 100);
        tt_causal_ends(c, 1, 40);
        g_assert_false(tt_causal_seal(c, &diag));
        t = tt_causal_totals(c);
        g_assert_cmpuint(t.lost, ==, tells);
        g_assert_cmpuint(t.unknown, ==, !tells);
        g_assert_cmpint(tt_causal_cut(c, 1, 35, at, &diag), ==, TT_ERR_MISMATCH);
        g_assert_cmpint(!strstr(diag.text, "is lost"), ==, !tells);
        g_assert_cmpint(!strstr(diag.text, "does not tell whether it was sent"), ==, tells);
        g_assert_cmpint(tt_causal_order(c, 0, 99, 1, 20), ==,
                        tells ? TT_CAUSAL_BEFORE : TT_CAUSAL_CONCURRENT);
        g_assert_cmpint(tt_causal_check_order(c, 0, 99, 1, 20, &diag), ==, TT_ERR_MISMATCH);
        tt_causal_free(c);
    }
}

/* More runs than fit into one word of bits; some send to few, and some get nothing. */
static void test_many_follow(void)
{
    enum { RUNS = 200 };

    for (unsigned round = 0; round < 20; round++) {
        TtCausal *c = tt_causal_new(RUNS);
        unsigned n_frames = g_test_rand_int_range(100, 4000);
        uint64_t seq[RUNS] = { 0 };

        for (unsigned i = 0; i < RUNS; i++) {
            if (i % 7) {
                tt_causal_begins(c, i, 0);
            }
        }
        for (uint64_t i = 0; i < n_frames; i++) {
            unsigned from = g_test_rand_int_range(0, RUNS);
            unsigned to = (from + g_test_rand_int_range(1, 4)) % RUNS;

            g_assert_false(tt_causal_sent(c, from, i, seq[from], NULL));
            if (to % 11 && g_test_rand_bit()) {
                g_assert_false(tt_causal_delivered(c, to, i, from, seq[from], NULL));
            }
            seq[from]++;
        }
        g_assert_false(tt_causal_seal(c, NULL));
        check_follows(c);
        tt_causal_free(c);
    }
}

static void add_test(const char *path, unsigned like)
{
    g_test_add_data_func(path, GUINT_TO_POINTER(like), test_windows);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_test("/tt/causal-window/is-as-of-the-whole", 0);
    add_test("/tt/causal-window/without-the-end", CUT_OFF);
    add_test("/tt/causal-window/overtaking", OVERTAKING);
    add_test("/tt/causal-window/moments", CUT_OFF | MOMENTS);
    g_test_add_func("/tt/causal-window/silent-peer", test_silent_peer);
    g_test_add_func("/tt/causal-window/without-sends", test_without_sends);
    g_test_add_func("/tt/causal-window/many-follow", test_many_follow);
    return g_test_run();
}
