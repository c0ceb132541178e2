/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Positions that stand for a run. See tt-spread.h. */
#include "timeline/tt-spread.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Those in @from..@to, ascending, each once. */
static size_t take_named(const uint64_t *named, size_t n, uint64_t from, uint64_t to,
                         uint64_t *all)
{
    size_t kept = 0, unique = 0;

    for (size_t i = 0; i < n; i++) {
        if (named[i] >= from && named[i] <= to) {
            all[kept++] = named[i];
        }
    }
    qsort(all, kept, sizeof(*all), by_value);
    for (size_t i = 0; i < kept; i++) {
        if (!unique || all[unique - 1] != all[i]) {
            all[unique++] = all[i];
        }
    }
    return unique;
}

static void insert(uint64_t *out, size_t n, size_t at, uint64_t pos)
{
    memmove(&out[at + 1], &out[at], (n - at) * sizeof(*out));
    out[at] = pos;
}

/* False: no gap has room. */
static bool fill_widest(uint64_t *out, size_t n, uint64_t from)
{
    uint64_t widest = 1, before = from, begin = from;
    size_t at = n;

    for (size_t i = 0; i < n; i++) {
        if (out[i] - before > widest) {
            widest = out[i] - before;
            begin = before;
            at = i;
        }
        before = out[i];
    }
    if (at < n) {
        insert(out, n, at, begin + widest / 2);
    }
    return at < n;
}

size_t tt_spread(const uint64_t *named, size_t n, uint64_t from, uint64_t to, uint64_t *out,
                 size_t max)
{
    g_autofree uint64_t *all = g_new(uint64_t, n + 1);
    size_t kept = take_named(named, n, from, to, all), taken = MIN(kept, max);

    for (size_t i = 0; i < taken; i++) {
        out[i] = all[taken == kept ? i : taken == 1 ? kept - 1 :
                     i * (kept - 1) / (taken - 1)];
    }
    if (taken < max && from <= to && (!taken || out[taken - 1] != to)) {
        out[taken++] = to;
    }
    while (taken && taken < max && fill_widest(out, taken, from)) {
        taken++;
    }
    return taken;
}
