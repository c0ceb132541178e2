/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where to cut a run. See tt-cut.h. */
#include "timeline/tt-cut.h"

#include <assert.h>
#include <glib.h>
#include <stdlib.h>

typedef struct Rate {
    double ns;                  /* a position */
    uint64_t positions;
} Rate;

static int by_ns(const void *a, const void *b)
{
    const Rate *x = a, *y = b;

    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* Of the interval that ends with @p; 0: it is not known. Only the first point of a run may
 * have no time since it began. */
static double rate_before(const TtCutPoint *p, bool is_first)
{
    const TtCutPoint *before = p - 1;

    if (p->pos <= before->pos || p->host_ns <= before->host_ns ||
        (!before->host_ns && !is_first)) {
        return 0;
    }
    return (double)(p->host_ns - before->host_ns) / (p->pos - before->pos);
}

/* Half of the positions took less. 0: none is known. */
static double usual_rate(const TtCutPoint *points, size_t n)
{
    g_autofree Rate *all = g_new(Rate, n + 1);
    uint64_t sum = 0, upto = 0;
    size_t known = 0, i = 0;

    for (size_t k = 1; k < n; k++) {
        double ns = rate_before(&points[k], k == 1);

        if (ns > 0) {
            all[known++] = (Rate) { ns, points[k].pos - points[k - 1].pos };
            sum += points[k].pos - points[k - 1].pos;
        }
    }
    qsort(all, known, sizeof(*all), by_ns);
    while (i < known && upto + all[i].positions < sum - sum / 2) {
        upto += all[i++].positions;
    }
    return i < known ? all[i].ns : 0;
}

void tt_cut_weigh(TtCutPoint *points, size_t n)
{
    double usual = usual_rate(points, n);

    if (n) {
        points[0].cost = points[0].pos;
    }
    for (size_t i = 1; i < n; i++) {
        double rate = rate_before(&points[i], i == 1);
        double weight = rate > 0 ? CLAMP(rate / usual, 1.0 / TT_CUT_MOST, TT_CUT_MOST) : 1;

        assert(points[i].pos >= points[i - 1].pos);
        points[i].cost = points[i - 1].cost +
            (points[i].pos - points[i - 1].pos) * weight;
    }
}

/* The first point at @pos or beyond. */
static size_t first_at(const TtCutPoint *points, size_t n, uint64_t pos)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (points[mid].pos < pos) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

double tt_cut_cost(const TtCutPoint *points, size_t n, uint64_t pos)
{
    size_t i = first_at(points, n, pos);
    const TtCutPoint *a, *b;

    if (i == 0) {
        return pos;
    }
    a = &points[i - 1];
    if (i == n) {
        return a->cost + (pos - a->pos);
    }
    b = &points[i];
    return a->cost + (b->cost - a->cost) * (pos - a->pos) / (b->pos - a->pos);
}

/* Of the points @low to before @high, of which there is one, the nearest to @cost. */
static size_t nearest(const TtCutPoint *points, size_t low, size_t high, double cost)
{
    size_t first = low, last = high;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (points[mid].cost < cost) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    if (low == last || (low > first &&
                        cost - points[low - 1].cost <= points[low].cost - cost)) {
        low--;
    }
    return low;
}

size_t tt_cut_choose(const TtCutPoint *points, size_t n, uint64_t from, uint64_t to,
                     const double *shares, size_t n_shares, size_t *out)
{
    size_t low = from == UINT64_MAX ? n : first_at(points, n, from + 1);
    size_t high = first_at(points, n, to), chosen = 0;
    double begin = tt_cut_cost(points, n, from), end = tt_cut_cost(points, n, to);

    for (size_t k = 0; k < n_shares && low < high; k++) {
        size_t i = nearest(points, low, high, begin + (end - begin) * shares[k]);

        if (!chosen || out[chosen - 1] != i) {
            out[chosen++] = i;
        }
    }
    return chosen;
}
