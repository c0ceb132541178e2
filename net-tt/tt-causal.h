/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The causal order of the runs of a group, from the places at which each frame was sent
 * and received: vector clocks, the order of two places, consistent cuts.
 *
 * Model: an *event* is a frame sent or delivered by a run; those of a run are numbered
 * from 0 in the order of its log. An event came before another if it is earlier in the
 * same run, or the sending of what the other got, or there is a chain of these. A run
 * *stands at* position P when all before P has happened and nothing at P.
 *
 * A *cut* is a position for each run. It is consistent when no run has got a frame that
 * its sender, where it stands, has not sent. The consistent cuts in which one run stands
 * at a given position are closed under the larger of two, so there is a greatest.
 *
 * The index: for each pair of runs the deliveries, in order, with the greatest send so
 * far. One search in it answers both "the first delivery of anything sent from here on"
 * and "the last send of anything delivered up to here", also when frames overtook each
 * other. A question visits each run once (Dijkstra, by a number of each event that
 * respects the order) and searches in its pairs: runs^2 * log(frames).
 *
 * Context: one thread at a time for questions, too. Memory: 16 bytes an event and 8 a
 * delivery when sealed, some 52 a delivery while it is sealed.
 */
#ifndef TT_CAUSAL_H
#define TT_CAUSAL_H

#include "io/tt-base.h"

#define TT_CAUSAL_RUNS_MAX  4096
#define TT_CAUSAL_END       UINT32_MAX      /* of an event: there is none */

typedef struct TtCausal TtCausal;

typedef struct TtCausalTotals {
    uint64_t sends, deliveries;
    uint64_t early;             /* deliveries of what was sent before the log of the
                                   sender begins: they order nothing */
    uint64_t lost;              /* of what its sender's log does not have: no cut is
                                   after them */
    uint64_t pending;           /* of what it does not have yet: the same, for now */
} TtCausalTotals;

/* 1 to TT_CAUSAL_RUNS_MAX runs, numbered from 0. */
TtCausal *tt_causal_new(unsigned n_runs);
void tt_causal_free(TtCausal *c);
/* For sentences: n_runs names, which stay valid; without, the runs have numbers. */
void tt_causal_set_names(TtCausal *c, const char *const *names);

/*
 * The events of a run, in the order of its log. TT_ERR_FORMAT: positions go down, or
 * sequences of sends do not go up by one; TT_ERR_LIMIT; TT_ERR_NOMEM.
 */
TtStatus tt_causal_sent(TtCausal *c, unsigned run, uint64_t pos, uint64_t seq,
                        TtDiag *diag);
TtStatus tt_causal_delivered(TtCausal *c, unsigned run, uint64_t pos, unsigned from,
                             uint64_t seq, TtDiag *diag);
/* The same of what was sent before the log of its sender begins: only counted. (Of a
 * sender with events tt_causal_seal finds that out itself.) */
void tt_causal_early(TtCausal *c);
/* The log of @run is still being written: what it does not have yet is not lost. */
void tt_causal_goes_on(TtCausal *c, unsigned run);
/* Where the run ends. At its end all has happened: it is after its last event. */
void tt_causal_ends(TtCausal *c, unsigned run, uint64_t pos);
/*
 * tt_causal_seal: make the index; no events come afterwards
 * TT_ERR_MISMATCH: the logs contradict each other, each of some frames having been got
 * before it was sent. TT_ERR_NOMEM. Cost: 0.4 us an event (bench-causal).
 */
TtStatus tt_causal_seal(TtCausal *c, TtDiag *diag);

/* ---- questions; positions are any, up to INT64_MAX ---- */

TtCausalTotals tt_causal_totals(const TtCausal *c);
uint64_t tt_causal_end_of(const TtCausal *c, unsigned run);
uint32_t tt_causal_n_events(const TtCausal *c, unsigned run);
uint64_t tt_causal_pos(const TtCausal *c, unsigned run, uint32_t event);

/*
 * The vector clock of @run at @pos: how many events of each run came before, @run's own
 * included. @out: of n_runs.
 */
void tt_causal_clock(TtCausal *c, unsigned run, uint64_t pos, uint32_t *out);
/*
 * The greatest consistent cut in which @run stands at @pos. @out: positions, of n_runs.
 * TT_ERR_MISMATCH: there is none, since before @pos the run got a frame that is lost or
 * pending, or since it both sent and got frames at one position.
 */
TtStatus tt_causal_cut(TtCausal *c, unsigned run, uint64_t pos, uint64_t *out,
                       TtDiag *diag);
/* The greatest consistent cut in which no run stands after @at, of n_runs; UINT64_MAX:
 * anywhere. There always is one. @out: may be @at. */
void tt_causal_cut_below(TtCausal *c, const uint64_t *at, uint64_t *out);
/* TT_ERR_MISMATCH: @at is not consistent. @diag says which frame shows it. */
TtStatus tt_causal_check_cut(const TtCausal *c, const uint64_t *at, TtDiag *diag);

/* All that happened at one position is one: the instruction there, or what came then. */
typedef enum TtCausalOrder {
    TT_CAUSAL_SAME, TT_CAUSAL_BEFORE, TT_CAUSAL_AFTER, TT_CAUSAL_CONCURRENT,
    TT_CAUSAL_BOTH,             /* each before the other: positions are too coarse */
} TtCausalOrder;

TtCausalOrder tt_causal_order(TtCausal *c, unsigned run_a, uint64_t pos_a,
                              unsigned run_b, uint64_t pos_b);

#endif
