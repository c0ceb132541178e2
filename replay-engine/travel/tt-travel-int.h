/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The movement under way: tt-travel.c posts it, tt-travel-step.c carries it out.
 *
 * Context: the BQL is held.
 */
#ifndef TT_TRAVEL_INT_H
#define TT_TRAVEL_INT_H

#include "timeline/tt-timeline.h"
#include "travel/tt-travel.h"

typedef struct TtFound {        /* the last hit of a search */
    uint64_t pos;
    bool is_watch;
    bool is_turn;               /* none, but the end of a turn */
    vaddr addr, len;
    int flags;
} TtFound;

typedef struct TtTravel {
    TtTimeline *timeline;
    int64_t began_ms, told_ms;
    uint64_t pin_at;                /* take a pinned one from here on; 0: none */
    TtCheckpointId pinned_id;       /* what came of it */
    bool pinning;
    bool active, interrupted, blind;
    bool stepping_over;             /* a hit: one position, stops off */
    bool pending;                   /* the next step has not been taken */
    bool straight;                  /* no plan: run to `run_to`, skip nothing */
    bool reverse_step;
    bool leaves;                    /* back from `origin`: it does not end there */
    bool probing, probed;           /* a reverse step looks at what it undid */
    uint64_t home;                  /* and comes back here */
    CPUState *stepper;              /* the vCPU that steps back */
    bool by_turn;                   /* it was another one's turn before */
    uint64_t turn_began;            /* or later: where the scan began */
    int ended;                      /* why the last run could not go on */
    bool no_way;                    /* the store is damaged: nothing leads there */
    uint64_t origin, back;          /* where it began; back by so many */
    uint64_t stop_at;
    uint64_t heads_for;             /* blindly; a near checkpoint may come first */
    uint64_t near_at;               /* there; 0: none */
    bool fills;                     /* the undo log, by one position at a time */
    uint64_t run_from;              /* where the present run began */
    uint64_t run_to;                /* and a straight one ends */
    uint64_t hit_pos;               /* of the stop that is stepped over */
    TtFound found;
    TtTravelHit *survey;            /* NULL: this movement is none */
    uint64_t survey_from;
    TtTravelVisit *visit;           /* NULL: this movement is no scan */
    bool each;                      /* a scan that stops at each position */
    bool has_enough;
    uint64_t visited;               /* last; UINT64_MAX: nothing yet */
    bool visited_hit;
    const CPUWatchpoint *watch_hit; /* what the visitor is called for, or NULL */
    TtTravelDone *done;
    void *opaque;
} TtTravel;

#define NO_TRAVEL { .stop_at = UINT64_MAX }

extern TtTravel tt_travel;

uint64_t tt_travel_stop_at(void);       /* UINT64_MAX: nowhere */

#endif
