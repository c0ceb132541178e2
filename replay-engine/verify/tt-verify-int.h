/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Verification from interval to interval: what its search shares with it.
 *
 * Context: the vCPU thread, BQL held, from travel's callbacks.
 */
#ifndef TT_VERIFY_INT_H
#define TT_VERIFY_INT_H

#include "session/tt-checkpoint.h"
#include "tt-verify-compare-int.h"

typedef enum TtVerifySearch {
    TT_VERIFY_NO_SEARCH,
    TT_VERIFY_OF_PAGE,
    TT_VERIFY_OF_REGISTER,
} TtVerifySearch;

typedef struct TtVerify {
    bool on;
    uint64_t from, to;          /* positions; to UINT64_MAX: the end */
    GArray *points;             /* of TtCheckpointDesc: stored, in this part of the run */
    unsigned next;              /* with it the present interval ends */
    uint64_t began;
    bool is_wrong, is_unusable; /* any so far */
    /* the present interval */
    const char *how;            /* it ended */
    bool differed;              /* a digest did, on the way */
    uint64_t last_equal;        /* position of the last that did not */
    TtVerifyFound found;        /* at its end */
    /* the search for a write: not at low, at high */
    TtVerifySearch search;
    uint64_t low, high;
} TtVerify;

extern TtVerify tt_verify;

/* With it the present interval ends; NULL: it ends with the run. */
const TtCheckpointDesc *tt_verify_next_point(void);
/* After all that there is to say of it. */
void tt_verify_say_interval(uint64_t to, const char *how);
void tt_verify_next_interval(void);
/* To the next checkpoint from which the log can be read. */
void tt_verify_go_on_behind(void);
/* A movement was begun, or, if not @ok, could not be: that ends it all. */
void tt_verify_post(bool ok, Error *err);
void tt_verify_interrupted(uint64_t pos);

#endif
