/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of the causal index: events, the index, a heap.
 */
#ifndef TT_CAUSAL_INT_H
#define TT_CAUSAL_INT_H

#include "net-tt/tt-causal.h"

#include <glib.h>

#define TT_CAUSAL_SENT UINT32_MAX   /* for from: the event is a send */

typedef struct TtCausalRun {
    uint32_t n, room;
    uint64_t *pos;
    uint32_t *rank;             /* sealed: of all events, respecting their order */
    uint64_t end;
    uint32_t lost_at;           /* the first delivery of a lost or pending frame, or n */
    bool is_pending;            /* that one is */
    bool goes_on;               /* its log is still being written */
    uint64_t first_seq;
    uint32_t n_sends;
    /* until it is sealed: */
    uint32_t *from;             /* of each event */
    uint32_t n_got, got_room;
    uint64_t *seq;              /* of each delivery */
} TtCausalRun;

/* Between two runs: deliveries @first to @first + @n in got[] and sent[]. */
typedef struct TtCausalPair {
    uint32_t peer;
    uint32_t n;
    uint64_t first;
} TtCausalPair;

typedef struct TtHeapItem {
    uint32_t key, value;
} TtHeapItem;

typedef struct TtHeap {         /* the smallest key first */
    TtHeapItem *items;
    uint32_t n, room;
} TtHeap;

struct TtCausal {
    unsigned n_runs;
    const char *const *names;
    TtCausalRun *runs;
    TtCausalTotals totals;
    TtCausalPair *out_pairs, *in_pairs;
    uint32_t *out_first, *in_first;     /* of each run, and one after the last */
    uint32_t *got;              /* number of the delivery in its run, ascending */
    uint32_t *sent;             /* the greatest number of a send so far */
    uint32_t *mark;             /* of a question: n_runs numbers of events */
    TtHeap heap;
};

void tt_heap_push(TtHeap *h, uint32_t key, uint32_t value);
TtHeapItem tt_heap_pop(TtHeap *h);

const char *tt_causal_name(const TtCausal *c, unsigned run, char buf[16]);

/* The first event at or after @pos; n: there is none. */
uint32_t tt_causal_find(const TtCausalRun *r, uint64_t pos);

#endif
