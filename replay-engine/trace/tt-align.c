/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Myers' greedy algorithm: v[k] is how far in the first sequence one comes on diagonal k
 * (index in the first minus index in the second) with d elements that only one has. What
 * each round knew is kept, to find the way back.
 */
#include "trace/tt-align.h"

#include <glib.h>
#include <stdbool.h>

typedef struct Rounds {
    GPtrArray *each;            /* uint32_t[2 * d + 1]: v[-d] to v[d] */
} Rounds;

static uint32_t *round_at(const Rounds *r, int64_t d)
{
    return (uint32_t *)r->each->pdata[d] + d;
}

/* Is the step to diagonal @k in round @d one down: an element of the second? */
static bool is_down(const uint32_t *before, int64_t k, int64_t d)
{
    return k == -d || (k != d && before[k - 1] < before[k + 1]);
}

/* True: the end is reached in this round. */
static bool go(Rounds *r, int64_t d, const uint32_t *a, int64_t n, const uint32_t *b,
               int64_t m)
{
    uint32_t *now = g_new(uint32_t, 2 * d + 1) + d;
    const uint32_t *before = d ? round_at(r, d - 1) : NULL;

    g_ptr_array_add(r->each, now - d);
    for (int64_t k = -d; k <= d; k += 2) {
        int64_t x = !d ? 0 : is_down(before, k, d) ? before[k + 1] : before[k - 1] + 1;

        while (x < n && x - k < m && x - k >= 0 && a[x] == b[x - k]) {
            x++;
        }
        now[k] = x;
        if (k == n - m && x >= n) {
            return true;
        }
    }
    return false;
}

/* An element that one side has, in front of all that is known. */
static void add_in_front(GArray *hunks, uint32_t x, uint32_t y, bool is_b)
{
    TtHunk *last = hunks->len ? &g_array_index(hunks, TtHunk, hunks->len - 1) : NULL;
    TtHunk one = { x, !is_b, y, is_b };

    if (last && last->a == x + !is_b && last->b == y + is_b) {
        last->a = x;
        last->b = y;
        last->n_a += !is_b;
        last->n_b += is_b;
    } else {
        g_array_append_val(hunks, one);
    }
}

static void go_back(const Rounds *r, int64_t d, int64_t n, int64_t m, GArray *hunks)
{
    int64_t k = n - m;

    for (; d > 0; d--) {
        const uint32_t *before = round_at(r, d - 1);
        bool down = is_down(before, k, d);
        int64_t x;

        k += down ? 1 : -1;
        x = before[k];
        add_in_front(hunks, x, x - k, down);
    }
}

static void turn_around(GArray *hunks)
{
    for (guint i = 0; i < hunks->len / 2; i++) {
        TtHunk *p = &g_array_index(hunks, TtHunk, i);
        TtHunk *q = &g_array_index(hunks, TtHunk, hunks->len - 1 - i);
        TtHunk t = *p;

        *p = *q;
        *q = t;
    }
}

uint32_t tt_align(const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m,
                  uint32_t max, TtHunk **out)
{
    GArray *hunks = g_array_new(false, false, sizeof(TtHunk));
    Rounds r = { g_ptr_array_new_with_free_func(g_free) };
    uint32_t front = 0, back = 0;
    bool is_found = false;
    int64_t d;

    while (front < MIN(n, m) && a[front] == b[front]) {
        front++;
    }
    while (back < MIN(n, m) - front && a[n - 1 - back] == b[m - 1 - back]) {
        back++;
    }
    a += front;
    b += front;
    n -= front + back;
    m -= front + back;
    for (d = 0; d <= max && !is_found; d++) {
        is_found = go(&r, d, a, n, b, m);
    }
    if (is_found) {
        go_back(&r, d - 1, n, m, hunks);
        turn_around(hunks);
    } else {
        TtHunk all = { 0, n, 0, m };

        g_array_append_val(hunks, all);
    }
    for (guint i = 0; i < hunks->len; i++) {
        TtHunk *h = &g_array_index(hunks, TtHunk, i);

        h->a += front;
        h->b += front;
    }
    g_ptr_array_free(r.each, true);
    n = hunks->len;
    *out = (TtHunk *)g_array_free(hunks, false);
    return n;
}
