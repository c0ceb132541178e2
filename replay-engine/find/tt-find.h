/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the positions of a replay at which a condition becomes true.
 *
 * Context: the BQL is held; found and done are called in the vCPU thread.
 */
#ifndef TT_FIND_H
#define TT_FIND_H

#include "debug/tt-cond.h"

typedef struct TtFindWant {
    const char *condition;      /* debug/tt-cond.h; without names */
    uint64_t from, to;          /* UINT64_MAX: the end of the run */
    uint64_t limit;             /* no more hits than that; not 0 */
    unsigned how;               /* some of TT_COND_CHANGES... */
    bool is_later_part;         /* what is true at @from, another search has found */
    bool returns;               /* go back to where the VM stands, in the end, unless
                                 * it is interrupted */
} TtFindWant;

typedef struct TtFindHit {
    uint64_t pos, pc, value;
    unsigned cpu;
} TtFindHit;

/* How far it is, for people: in positions of the run. */
typedef struct TtFindWay {
    uint64_t low, high;         /* what is left to be searched */
} TtFindWay;

typedef struct TtFindListener {
    void (*found)(void *opaque, const TtFindHit *hit);
    void (*moves)(void *opaque, const TtFindWay *way);      /* often; or NULL */
    /* @pos: where it ended, before it went back. A TtStopReason: TT_STOP_TARGET, it is
     * complete, or has @limit; others: not. @err: why it ended, or NULL; the listener's. */
    void (*done)(void *opaque, uint64_t pos, int reason, Error *err);
} TtFindListener;

/* Could it begin? It says what tt_find_begin would say of the condition and the part,
 * and moves nothing. */
bool tt_find_check(const TtFindWant *want, Error **errp);
/* One at a time. An error in the condition or the part is reported at once; then
 * nothing of @listener is called. @want and its text may go. */
bool tt_find_begin(const TtFindWant *want, const TtFindListener *listener,
                   void *opaque, Error **errp);
/* Positions that the last search, or the one under way, did not execute, since no page
 * that counts was written there. */
uint64_t tt_find_left_out(void);

/* ---- the option: -tt replay,find=FROM-TO,find-condition=TEXT,find-how=WORDS ---- */
/* @how: "changes", "monotone", "written", "later-part", "limit=N", with : between; or NULL.
 * False: *errp. The process then searches, prints what it finds, and ends. */
bool tt_find_option(const char *part, const char *condition, const char *how,
                    Error **errp);
bool tt_find_is_on(void);

#endif
