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
 * respects the order) and searches in its pairs: runs^2 * log(frames). The first one about
 * many windows passes over the frames, at most once.
 *
 * Windows: the log of a flight recorder does not have what its run got before, so a cut may
 * be too late there. It is right if none of the others sent anything after the cut that the
 * run got before its window. That is known of another run if something in the window was
 * before where that one stands, or if the first frame of that one in the window was sent
 * before that (frames of one run to another one keep their order, as on a socket, unless its
 * log shows that they do not), or if
 * that one sent nothing more, which only a log that has the end of its run tells; or if a
 * checkpoint or an incident of the group in the window was before where that one stands.
 *
 * Lost frames: a frame that its sender's log does not have, and that was not sent before it,
 * was sent after all of it. So it has an order, but no cut.
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
    uint64_t unknown;           /* of what is early or lost: the same */
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
/* The same of what was sent before the log of its sender begins: it orders no two events.
 * (Of a sender with events tt_causal_seal finds that out itself.) */
void tt_causal_early(TtCausal *c, unsigned run, unsigned from, uint64_t seq);
/* The log of @run is a window: what it got before its first event is not known, and it can
 * stand at @pos and later. To be said before its events are. */
void tt_causal_begins(TtCausal *c, unsigned run, uint64_t pos);
/* Frames of @run with sequences below @below do not tell whether they were sent before its
 * window. If nothing was sent in it, those that the others got are either early or lost. */
void tt_causal_hides_early(TtCausal *c, unsigned run, uint64_t below);
/* The log of @run is still being written: what it does not have yet is not lost. */
void tt_causal_goes_on(TtCausal *c, unsigned run);
/* The log of @run lacks the end of its run, which may have sent more: it was cut off, or was
 * saved before. Implied by tt_causal_goes_on, and by lost frames. */
void tt_causal_lacks_end(TtCausal *c, unsigned run);
/* A consistent cut at which @run stood in its window: all that it got before the window was
 * sent before @at, of n_runs; UINT64_MAX: not known. Nothing, if it is no window. */
void tt_causal_was_at(TtCausal *c, unsigned run, const uint64_t *at);
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
 * pending, or since it both sent and got frames at one position; or it is not known to be
 * in all windows, and @diag says from which position of @run on one is.
 */
TtStatus tt_causal_cut(TtCausal *c, unsigned run, uint64_t pos, uint64_t *out,
                       TtDiag *diag);
/* The greatest consistent cut in which no run stands after @at, of n_runs; UINT64_MAX:
 * anywhere. There always is one. @out: may be @at. */
void tt_causal_cut_below(TtCausal *c, const uint64_t *at, uint64_t *out);
/* TT_ERR_MISMATCH: @at, a cut, is not known to be in all windows. */
TtStatus tt_causal_check_windows(TtCausal *c, const uint64_t *at, TtDiag *diag);
/* Is it known that the window of @run begins before a cut in which the others stand at @at?
 * UINT64_MAX: it does not count. True also if it is no window. */
bool tt_causal_begins_before(TtCausal *c, unsigned run, const uint64_t *at);
/* Is there no cut with @other at @at, since @run both sent and got frames at @pos? Those that
 * are lost or pending are not the cause. If no position of any run says so, each is in a cut
 * but for these. */
bool tt_causal_ties(TtCausal *c, unsigned run, uint64_t pos, unsigned *other, uint64_t *at);
/* TT_ERR_MISMATCH: @at is not consistent. @diag says which frame shows it. */
TtStatus tt_causal_check_cut(const TtCausal *c, const uint64_t *at, TtDiag *diag);
/* The same of @at with UINT64_MAX: anywhere. @is_sure: that will not change, whatever is found
 * out about frames that are pending or unknown. */
TtStatus tt_causal_check_places(TtCausal *c, const uint64_t *at, bool is_sure, TtDiag *diag);

/* All that happened at one position is one: the instruction there, or what came then. */
typedef enum TtCausalOrder {
    TT_CAUSAL_SAME, TT_CAUSAL_BEFORE, TT_CAUSAL_AFTER, TT_CAUSAL_CONCURRENT,
    TT_CAUSAL_BOTH,             /* each before the other: positions are too coarse */
} TtCausalOrder;

TtCausalOrder tt_causal_order(TtCausal *c, unsigned run_a, uint64_t pos_a,
                              unsigned run_b, uint64_t pos_b);
/* Of two that are concurrent as far as the logs show. TT_ERR_MISMATCH: what a run got before
 * its window, a frame that no log has, or what happened where a log was cut off may order
 * them. */
TtStatus tt_causal_check_order(TtCausal *c, unsigned run_a, uint64_t pos_a, unsigned run_b,
                               uint64_t pos_b, TtDiag *diag);

#endif
