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
    uint64_t end;               /* after the last event, and not before ... */
    uint64_t till;              /* ... where its log ends, which may have events there */
    uint32_t lost_at;           /* the first delivery of a frame that is in no log, or n */
    unsigned fate;              /* of that one: TT_CAUSAL_PENDING ... */
    uint32_t gone_at;           /* the first of one that is lost, or n */
    bool goes_on;               /* its log is still being written */
    bool is_window;             /* what came before its log is not known ... */
    uint64_t begins;            /* ... and it can stand from here on */
    uint64_t hides_below;       /* such frames do not tell that they were sent before it */
    GHashTable *heard;          /* of a window: run + 1 -> TtCausalHeard; g_free */
    uint64_t *sent_before;      /* of a window, by run: what was got before it was sent before
                                   that position; NULL: that is not known */
    uint32_t *follows;          /* of a window; NULL: not asked for yet. tt_causal_follows */
    bool lacks_end;             /* the run may have sent more than its log has */
    uint64_t first_seq;
    uint32_t n_sends, last_send;    /* how many; which event is the last */
    /* until it is sealed: */
    uint32_t *from;             /* of each event */
    uint32_t n_got, got_room;
    uint64_t *seq;              /* of each delivery */
} TtCausalRun;

/* Of what its sender's log does not have; the worse ones last. */
enum { TT_CAUSAL_PENDING, TT_CAUSAL_UNKNOWN, TT_CAUSAL_LOST };

/* Of one sender, in a window. */
typedef struct TtCausalHeard {
    uint64_t first, last;       /* sequences */
    bool is_early;              /* the first was sent before the log of its sender begins */
    bool overtakes;             /* its frames do not keep their order */
} TtCausalHeard;

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
    uint64_t n_paired;          /* length of got[] and sent[] */
    const char *const *names;
    TtCausalRun *runs;
    TtCausalTotals totals;
    TtCausalPair *out_pairs, *in_pairs;
    uint32_t *out_first, *in_first;     /* of each run, and one after the last */
    uint32_t *got;              /* number of the delivery in its run, ascending */
    uint32_t *sent;             /* the greatest number of a send so far; the sender's n: it
                                   came after all of its log */
    uint32_t *mark;             /* of a question: n_runs numbers of events */
    TtHeap heap;
};

void tt_heap_push(TtHeap *h, uint32_t key, uint32_t value);
TtHeapItem tt_heap_pop(TtHeap *h);

/* A run whose first frame that is in no log came before @run at @pos; n_runs: none. The worse
 * ones count more. */
unsigned tt_causal_lost_before(TtCausal *c, unsigned run, uint64_t pos);
/* Words about such a frame, behind "the frame". */
const char *tt_causal_fate(const TtCausalRun *r);

const char *tt_causal_name(const TtCausal *c, unsigned run, char buf[16]);

/* @at: the greatest cut in which @run (n_runs: none) stands where it does. As
 * tt_causal_check_windows. */
TtStatus tt_causal_in_windows(TtCausal *c, unsigned run, const uint64_t *at, TtDiag *diag);

void tt_causal_clear(TtCausal *c);
/* Event @at of @run follows, and all after it. @is_coarse: of a position all or nothing. */
void tt_causal_reach(TtCausal *c, unsigned run, uint32_t at, bool is_coarse);
/* mark[]: in each run the first event that follows what was reached. @only: it may end when
 * this run is known; n_runs: none. */
void tt_causal_spread(TtCausal *c, bool is_coarse, unsigned only);

/* By run, the first event that follows from the first one in the window @run; n: none. It
 * stays the index's. */
const uint32_t *tt_causal_follows(TtCausal *c, unsigned run);
/* The two ways to find it: for one window, and for all at once. */
void tt_causal_follow_one(TtCausal *c, unsigned run);
void tt_causal_follow_all(TtCausal *c);

/* The first event at or after @pos; n: there is none. */
uint32_t tt_causal_find(const TtCausalRun *r, uint64_t pos);

#endif
