/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two lists of frames. Both are sorted by content and then by place, so one pass over
 * them finds what they have in common.
 */
#include "net-tt/tt-framediff.h"

#include <glib.h>

static int by_content(const TtFrameSeen *x, const TtFrameSeen *y)
{
    if (x->hash != y->hash) {
        return x->hash < y->hash ? -1 : 1;
    }
    return x->len < y->len ? -1 : x->len > y->len;
}

static gint by_content_and_place(gconstpointer a, gconstpointer b, gpointer list)
{
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const TtFrameSeen *frames = list;

    return by_content(&frames[i], &frames[k]) ?: i < k ? -1 : i > k;
}

/* Indices of @frames, sorted; g_free. */
static uint32_t *sorted(const TtFrameSeen *frames, uint32_t n)
{
    uint32_t *at = g_new(uint32_t, n);

    for (uint32_t i = 0; i < n; i++) {
        at[i] = i;
    }
    g_qsort_with_data(at, n, sizeof(*at), by_content_and_place, (gpointer)frames);
    return at;
}

static void add_pair(TtFrameDiff *d, uint32_t was, uint32_t is)
{
    d->pairs[d->n_pairs++] = (TtFramePair) { was, is };
    *(was == TT_FRAMEDIFF_NONE ? &d->more : is == TT_FRAMEDIFF_NONE ? &d->missing :
      &d->changed) += 1;
}

static uint32_t next_left(const bool *is_same, uint32_t from, uint32_t n)
{
    while (from < n && is_same[from]) {
        from++;
    }
    return from < n ? from : TT_FRAMEDIFF_NONE;
}

void tt_framediff(TtFrameDiff *d, const TtFrameSeen *was, uint32_t n_was,
                  const TtFrameSeen *is, uint32_t n_is)
{
    g_autofree uint32_t *a = sorted(was, n_was), *b = sorted(is, n_is);
    g_autofree bool *same_a = g_new0(bool, n_was), *same_b = g_new0(bool, n_is);
    uint32_t i = 0, k = 0;

    *d = (TtFrameDiff) { .pairs = NULL };
    while (i < n_was && k < n_is) {
        int order = by_content(&was[a[i]], &is[b[k]]);

        if (order == 0) {
            same_a[a[i]] = same_b[b[k]] = true;
            d->same++;
        }
        i += order <= 0;
        k += order >= 0;
    }
    d->pairs = g_new(TtFramePair, (size_t)n_was + n_is - 2 * (size_t)d->same);
    i = next_left(same_a, 0, n_was);
    k = next_left(same_b, 0, n_is);
    while (i != TT_FRAMEDIFF_NONE || k != TT_FRAMEDIFF_NONE) {
        add_pair(d, i, k);
        i = i == TT_FRAMEDIFF_NONE ? i : next_left(same_a, i + 1, n_was);
        k = k == TT_FRAMEDIFF_NONE ? k : next_left(same_b, k + 1, n_is);
    }
}

void tt_framediff_cleanup(TtFrameDiff *d)
{
    g_free(d->pairs);
    d->pairs = NULL;
}

uint32_t tt_framediff_byte(const uint8_t *a, uint32_t a_len, const uint8_t *b,
                           uint32_t b_len)
{
    uint32_t n = MIN(a_len, b_len), i = 0;

    while (i < n && a[i] == b[i]) {
        i++;
    }
    return i;
}
