/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Insides of a timeline: its checkpoints, and the plan that uses them. The
 * states and the invariants T1 to T4 are at the head of tt-timeline.c.
 */
#ifndef TT_TIMELINE_INT_H
#define TT_TIMELINE_INT_H

#include "timeline/tt-timeline.h"

#include <glib.h>

typedef enum State {
    STATE_IDLE,                 /* no movement yet */
    STATE_SCAN_RESTORE,
    STATE_SCAN,
    STATE_GO_RESTORE,
    STATE_GO_RUN,
    STATE_DONE,
    N_STATES,
} State;

typedef struct Checkpoint {
    uint64_t pos;
    TtCheckpointId id;
    bool is_pinned;
} Checkpoint;

struct TtTimeline {
    GArray *cps;                /* of Checkpoint, T1 */
    GHashTable *pos_of_id;      /* id -> uint64_t *; looked up only */
    uint64_t far;               /* farthest position heard of: for thinning */
    TtMayHit may_hit;
    void *may_hit_opaque;

    State state;
    TtStep step;                /* what STATE hands out */
    uint64_t standing;          /* where the VM stands, as last reported */
    uint64_t ran;               /* positions executed by this movement */

    /* searching */
    uint64_t limit;             /* hits from here on do not count */
    uint64_t start;             /* nor do hits before this */
    uint64_t scan_from, scan_to;
    bool has_hit;
    uint64_t hit;               /* last one of this interval */
    bool survey;                /* one scan, then go back to `home` */
    uint64_t home;

    /* going */
    uint64_t target;
    TtStopReason arrive;        /* reason when the target is reached */
};

static inline Checkpoint *tt_timeline_cp_at(const TtTimeline *t, size_t index)
{
    return &g_array_index(t->cps, Checkpoint, index);
}

/* Index of the first checkpoint after @pos. */
size_t tt_timeline_cp_upper(const TtTimeline *t, uint64_t pos);
/* The nearest at or before @pos; NULL: none. */
const Checkpoint *tt_timeline_cp_find(const TtTimeline *t, uint64_t pos);

#endif
