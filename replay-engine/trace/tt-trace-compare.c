/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Comparing two branch traces, entry by entry, where both have something to say.
 */
#include "tt-trace-format.h"

#include <glib.h>
#include <inttypes.h>

typedef struct Side {
    TtTraceReader *r;
    const char *which;
    TtBranch b;                 /* valid if has */
    bool has;
} Side;

/* The next entry within @d's part; none: has is false. */
static TtStatus step(Side *s, const TtTraceDiff *d, TtDiag *diag)
{
    TtDiag why = { 0 };
    TtStatus st;

    do {
        st = tt_trace_next(s->r, &s->b, &why);
    } while (st == TT_OK && s->b.pos < d->from);
    s->has = st == TT_OK && s->b.pos < d->to;
    if (st >= 0) {
        return TT_OK;
    }
    return tt_fail(diag, st, "the %s trace cannot be read: %s", s->which,
                   why.text);
}

static bool is_same(const Side *a, const Side *b)
{
    return a->has == b->has &&
        (!a->has || (a->b.pos == b->b.pos && a->b.pc == b->b.pc &&
                     a->b.cpu == b->b.cpu));
}

/* Where a trace begins for a vCPU the other may have nothing to say. */
static TtStatus skip_starts(Side *a, Side *b, const TtTraceDiff *d,
                            TtDiag *diag)
{
    TtStatus st = TT_OK;

    while (st == TT_OK && !is_same(a, b)) {
        if (a->has && a->b.is_start) {
            st = step(a, d, diag);
        } else if (b->has && b->b.is_start) {
            st = step(b, d, diag);
        } else {
            break;
        }
    }
    return st;
}

static TtStatus collect(Side *s, const TtTraceDiff *d, TtBranch *out,
                        unsigned *n, TtDiag *diag)
{
    TtStatus st = TT_OK;

    for (*n = 0; st == TT_OK && s->has && *n < TT_TRACE_SHOWN; ) {
        out[(*n)++] = s->b;
        st = step(s, d, diag);
    }
    return st;
}

static void keep(TtTraceDiff *d, const TtBranch *b)
{
    if (d->n_before == TT_TRACE_SHOWN) {
        memmove(d->before, d->before + 1, sizeof(d->before) -
                sizeof(d->before[0]));
        d->n_before--;
    }
    d->before[d->n_before++] = *b;
    d->n_same++;
}

static TtStatus find_part(const TtTraceInfo *a, const TtTraceInfo *b,
                          TtTraceDiff *d, TtDiag *diag)
{
    if (memcmp(a->uuid, b->uuid, 16)) {
        return tt_fail(diag, TT_ERR_INVALID, "the traces belong to different "
                       "runs: compare traces of the same run");
    }
    d->from = MAX(a->from, b->from);
    d->to = MIN(a->to, b->to);
    if (d->from > d->to ||
        (d->from == d->to && (a->from < a->to || b->from < b->to))) {
        return tt_fail(diag, TT_ERR_INVALID, "the traces do not overlap: one "
                       "covers positions %" PRIu64 " to %" PRIu64 ", the other %"
                       PRIu64 " to %" PRIu64, a->from, a->to,
                       b->from, b->to);
    }
    return TT_OK;
}

TtStatus tt_trace_compare(TtTraceReader *ra, TtTraceReader *rb,
                          TtTraceDiff *d, TtDiag *diag)
{
    Side a = { .r = ra, .which = "first" }, b = { .r = rb, .which = "second" };
    TtStatus st;

    memset(d, 0, sizeof(*d));
    st = find_part(tt_trace_info(ra), tt_trace_info(rb), d, diag);
    for (;;) {
        st = st == TT_OK ? step(&a, d, diag) : st;
        st = st == TT_OK ? step(&b, d, diag) : st;
        st = st == TT_OK ? skip_starts(&a, &b, d, diag) : st;
        if (st != TT_OK || !is_same(&a, &b)) {
            break;
        }
        if (!a.has) {
            return TT_OK;
        }
        keep(d, &a.b);
    }
    st = st == TT_OK ? collect(&a, d, d->a, &d->n_a, diag) : st;
    st = st == TT_OK ? collect(&b, d, d->b, &d->n_b, diag) : st;
    return st == TT_OK ? TT_ERR_MISMATCH : st;
}
