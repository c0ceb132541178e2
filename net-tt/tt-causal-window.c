/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cuts of runs whose logs are windows: is what is not in them known not to matter? See
 * tt-causal.h.
 */
#include "tt-causal-int.h"

#include <inttypes.h>

/* A cut, and how many events of each run are before it. */
typedef struct Cut {
    const uint64_t *at;         /* UINT64_MAX: it does not count */
    uint32_t *n_before;
} Cut;

/* cut_clear when done. */
static Cut cut_of(const TtCausal *c, const uint64_t *at)
{
    Cut cut = { .at = at, .n_before = g_new(uint32_t, c->n_runs) };

    for (unsigned i = 0; i < c->n_runs; i++) {
        cut.n_before[i] = tt_causal_find(&c->runs[i], at[i]);
    }
    return cut;
}

static void cut_clear(Cut *cut)
{
    g_free(cut->n_before);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Cut, cut_clear)

/* Was the first frame of @peer in the window of @run, of @p (NULL: of none), sent before the
 * cut, and so all before it? Not if frames overtook each other. */
static bool is_first_before(const TtCausal *c, unsigned run, unsigned peer,
                            const TtCausalPair *p, const Cut *cut)
{
    const TtCausalHeard *h = g_hash_table_lookup(c->runs[run].heard,
                                                 GUINT_TO_POINTER(peer + 1));
    const TtCausalRun *sender = &c->runs[peer];

    return h && !h->overtakes &&
        (h->is_early || (sender->n_sends && h->first < sender->first_seq) ||
         (p && c->sent[p->first] < cut->n_before[peer]));
}

/* Was all that @run got before its window sent by @peer before the cut, by another one that is
 * known? */
static bool is_moment_before(const TtCausal *c, unsigned run, unsigned peer, const Cut *cut)
{
    const TtCausalRun *r = &c->runs[run], *sender = &c->runs[peer];
    uint64_t known = r->sent_before ? r->sent_before[peer] : UINT64_MAX;

    return known <= sender->end && cut->n_before[peer] >= tt_causal_find(sender, known);
}

/* Can @run have got from @peer, before its window, what that one sent after the cut? */
static bool is_doubtful(const TtCausal *c, unsigned run, unsigned peer, const TtCausalPair *p,
                        const Cut *cut)
{
    const TtCausalRun *sender = &c->runs[peer];
    bool sent_more;

    if (cut->at[peer] == UINT64_MAX || peer == run) {
        return false;
    }
    sent_more = sender->lacks_end ||
        (sender->n_sends && sender->last_send >= cut->n_before[peer]);
    return sent_more && !is_first_before(c, run, peer, p, cut) &&
        !is_moment_before(c, run, peer, cut);
}

/* The peers by which the window of @run may begin too late. NULL: none. */
static GArray *doubts(const TtCausal *c, unsigned run, const Cut *cut)
{
    g_autofree const TtCausalPair **pairs = g_new0(const TtCausalPair *, c->n_runs);
    GArray *peers = g_array_new(false, false, sizeof(unsigned));

    for (uint32_t i = c->in_first[run]; i < c->in_first[run + 1]; i++) {
        pairs[c->in_pairs[i].peer] = &c->in_pairs[i];
    }
    for (unsigned peer = 0; peer < c->n_runs; peer++) {
        if (is_doubtful(c, run, peer, pairs[peer], cut)) {
            g_array_append_val(peers, peer);
        }
    }
    if (!peers->len) {
        g_array_unref(peers);
        return NULL;
    }
    return peers;
}

bool tt_causal_begins_before(TtCausal *c, unsigned run, const uint64_t *at)
{
    bool does = !c->runs[run].is_window;
    const uint32_t *first = does ? NULL : tt_causal_follows(c, run);

    for (unsigned i = 0; !does && i < c->n_runs; i++) {
        does = i != run && at[i] != UINT64_MAX &&
            first[i] < tt_causal_find(&c->runs[i], at[i]);
    }
    return does;
}

void tt_causal_was_at(TtCausal *c, unsigned run, const uint64_t *at)
{
    TtCausalRun *r = &c->runs[run];

    if (!r->is_window) {
        return;
    }
    if (!r->sent_before) {
        r->sent_before = g_memdup2(at, c->n_runs * sizeof(*at));
    }
    for (unsigned i = 0; i < c->n_runs; i++) {
        r->sent_before[i] = MIN(r->sent_before[i], at[i]);
    }
}

/* Is all that @run got before its window known to have been sent before the cut? */
static bool is_known(TtCausal *c, unsigned run, const Cut *cut)
{
    g_autoptr(GArray) peers = c->runs[run].is_window ? doubts(c, run, cut) : NULL;
    const uint32_t *first = peers ? tt_causal_follows(c, run) : NULL;
    bool is = true;

    for (unsigned i = 0; peers && is && i < peers->len; i++) {
        unsigned peer = g_array_index(peers, unsigned, i);

        is = first[peer] < cut->n_before[peer];
    }
    return is;
}

/* The first run that is not known to stand in its window; n_runs: none. */
static unsigned outside(TtCausal *c, const uint64_t *at)
{
    g_auto(Cut) cut = cut_of(c, at);

    for (unsigned i = 0; i < c->n_runs; i++) {
        if (c->runs[i].is_window &&
            (at[i] < c->runs[i].begins || !is_known(c, i, &cut))) {
            return i;
        }
    }
    return c->n_runs;
}

/* The cut through @run right after its event @event: outside(). */
static unsigned outside_after(TtCausal *c, unsigned run, uint32_t event)
{
    g_autofree uint64_t *at = g_new(uint64_t, c->n_runs);

    for (unsigned i = 0; i < c->n_runs; i++) {
        at[i] = i == run ? c->runs[run].pos[event] + 1 : UINT64_MAX;
    }
    tt_causal_cut_below(c, at, at);
    return outside(c, at);
}

/* From which position of @run on there is a cut in all windows, if not at @pos. A later one
 * of @run is a later one of all. UINT64_MAX: none. */
static uint64_t works_from(TtCausal *c, unsigned run, uint64_t pos)
{
    const TtCausalRun *r = &c->runs[run];
    uint32_t from = tt_causal_find(r, pos), to = r->n;

    while (from < to) {
        uint32_t mid = from + (to - from) / 2;

        if (outside_after(c, run, mid) < c->n_runs) {
            from = mid + 1;
        } else {
            to = mid;
        }
    }
    return from < r->n ? r->pos[from] + 1 : UINT64_MAX;
}

TtStatus tt_causal_in_windows(TtCausal *c, unsigned run, const uint64_t *at, TtDiag *diag)
{
    unsigned late = outside(c, at);
    g_autofree char *rest = NULL;
    char name[16], other[16];
    const char *sure;
    uint64_t from;

    if (late == c->n_runs) {
        return TT_OK;
    }
    sure = at[late] < c->runs[late].begins ? "" : ", as far as the logs show";
    if (run < c->n_runs) {
        from = works_from(c, run, at[run]);
        rest = from == UINT64_MAX ?
            g_strdup_printf("; nor does it for any later position of %s",
                            tt_causal_name(c, run, other)) :
            g_strdup_printf("; from position %" PRIu64 " of %s on it does not", from,
                            tt_causal_name(c, run, other));
    }
    return tt_fail(diag, TT_ERR_MISMATCH, "the window of %s begins after that moment, at "
                   "position %" PRIu64 "%s%s", tt_causal_name(c, late, name),
                   c->runs[late].begins, sure, rest ?: "");
}

TtStatus tt_causal_check_windows(TtCausal *c, const uint64_t *at, TtDiag *diag)
{
    return tt_causal_in_windows(c, c->n_runs, at, diag);
}

/* Does something in @to, by way of what @to or another run got before its window, follow
 * from @run at @pos? */
static unsigned unknown_after(TtCausal *c, unsigned run, uint64_t pos)
{
    g_autofree uint64_t *at = g_new(uint64_t, c->n_runs);

    for (unsigned i = 0; i < c->n_runs; i++) {
        at[i] = i == run ? pos : UINT64_MAX;
    }
    tt_causal_cut_below(c, at, at);
    g_auto(Cut) cut = cut_of(c, at);
    for (unsigned i = 0; i < c->n_runs; i++) {
        if (!is_known(c, i, &cut)) {
            return i;
        }
    }
    return c->n_runs;
}

/* May there be something of @run at @pos that is not in its log? */
static bool lacks(const TtCausal *c, unsigned run, uint64_t pos)
{
    return c->runs[run].lacks_end && pos >= c->runs[run].till;
}

TtStatus tt_causal_check_order(TtCausal *c, unsigned run_a, uint64_t pos_a, unsigned run_b,
                               uint64_t pos_b, TtDiag *diag)
{
    unsigned late = lacks(c, run_a, pos_a) ? run_a :
        lacks(c, run_b, pos_b) ? run_b : c->n_runs;
    const TtCausalRun *r;
    char name[16];

    if (late < c->n_runs) {
        return tt_fail(diag, TT_ERR_MISMATCH, "their order is not known: the log of %s ends "
                       "at position %" PRIu64 ", and lacks what happened there; ask for a "
                       "position before it", tt_causal_name(c, late, name),
                       c->runs[late].till);
    }
    late = tt_causal_lost_before(c, run_a, pos_a + 1);
    late = late < c->n_runs ? late : tt_causal_lost_before(c, run_b, pos_b + 1);
    if (late < c->n_runs) {
        r = &c->runs[late];
        return tt_fail(diag, TT_ERR_MISMATCH, "their order is not known: the frame that %s "
                       "received at position %" PRIu64 " %s, and may decide it",
                       tt_causal_name(c, late, name), r->pos[r->lost_at],
                       tt_causal_fate(r));
    }
    late = unknown_after(c, run_a, pos_a);
    late = late < c->n_runs ? late : unknown_after(c, run_b, pos_b);
    return late == c->n_runs ? TT_OK :
        tt_fail(diag, TT_ERR_MISMATCH, "their order is not known: what %s got before its "
                "window, which begins at position %" PRIu64 ", may decide it",
                tt_causal_name(c, late, name), c->runs[late].begins);
}
