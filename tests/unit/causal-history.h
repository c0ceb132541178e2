/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random histories of a few runs, for the tests of the causal index: who sent and got what,
 * and what came before what.
 */
#ifndef CAUSAL_HISTORY_H
#define CAUSAL_HISTORY_H

#include "net-tt/tt-causal-int.h"

#include <glib.h>

#define RUNS_MAX    5
#define EVENTS_MAX  64

typedef struct Event {
    unsigned run, nth;          /* of its run */
    uint64_t pos;
    int cause;                  /* event that sent it; -1: it is a send */
    uint64_t seq;               /* of a send */
} Event;

typedef struct History {
    unsigned n_runs, n, n_of[RUNS_MAX];
    Event e[EVENTS_MAX];        /* as they happened */
    bool before[EVENTS_MAX][EVENTS_MAX];
    uint64_t end[RUNS_MAX];
} History;

/* before[], of what there is. */
static inline void close_order(History *h)
{
    for (unsigned b = 0; b < h->n; b++) {
        for (unsigned a = b; a-- > 0; ) {
            bool is = h->e[a].run == h->e[b].run || h->e[b].cause == (int)a;

            for (unsigned m = a + 1; !is && m < b; m++) {
                is = h->before[a][m] && h->before[m][b];
            }
            h->before[a][b] = is;
        }
    }
}

/* In real order; frames overtake each other, get lost, go to several. @step: how far a
 * position moves at most; 0 is possible, but not between a send and what follows it. */
static inline void make(History *h, unsigned n_runs, unsigned n, unsigned overtaking)
{
    uint64_t pos[RUNS_MAX] = { 0 }, seq[RUNS_MAX];
    bool has_sent[RUNS_MAX] = { false };

    memset(h, 0, sizeof(*h));
    h->n_runs = n_runs;
    for (unsigned i = 0; i < n_runs; i++) {
        seq[i] = g_test_rand_int_range(0, 5);
    }
    while (h->n < n) {
        Event *e = &h->e[h->n];
        unsigned run = g_test_rand_int_range(0, n_runs);
        int cause = h->n ? g_test_rand_int_range(0, h->n) : -1;

        if (cause >= 0 && cause + (int)overtaking < (int)h->n) {
            cause = h->n - 1 - cause % overtaking;
        }
        if (cause < 0 || g_test_rand_bit() || h->e[cause].cause >= 0 ||
            h->e[cause].run == run) {
            cause = -1;
        }
        pos[run] += g_test_rand_int_range(0, 3) + has_sent[run];
        has_sent[run] = cause < 0;
        *e = (Event) { .run = run, .nth = h->n_of[run]++, .pos = pos[run],
                       .cause = cause, .seq = cause < 0 ? seq[run]++ : 0 };
        h->n++;
    }
    for (unsigned i = 0; i < n_runs; i++) {
        h->end[i] = pos[i] + 1 + g_test_rand_int_range(0, 3);
    }
    close_order(h);
}

/* Does anything at @a or after it lead to anything at @b or before it? */
static inline bool leads(const History *h, unsigned a, uint64_t pos_a, unsigned b,
                  uint64_t pos_b)
{
    for (unsigned i = 0; i < h->n; i++) {
        for (unsigned k = i + 1; k < h->n; k++) {
            if (h->e[i].run == a && h->e[i].pos >= pos_a && h->e[k].run == b &&
                h->e[k].pos <= pos_b && h->before[i][k]) {
                return true;
            }
        }
    }
    return false;
}

#endif
