/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log that is replayed, and whether the replay can go on from here.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_REPLAY_LOG_H
#define TT_REPLAY_LOG_H

#include "log/tt-log.h"
#include "log/tt-sched.h"

typedef struct TtReplayer {
    bool diverged;              /* the replay cannot go on from here: it is not
                                   exact, or, if damaged is set as well, ... */
    bool damaged;               /* ... the log cannot be read */
    bool torn;                  /* the recorder was cut off, or ... */
    bool growing;               /* ... it was still at work when we began */
    char *divergence;           /* one sentence */
} TtReplayer;

extern TtReplayer tt_replayer;

TtSched *tt_replay_sched(void);
TtLogReader *tt_replay_reader(void);
uint64_t tt_replay_first(void);         /* 0, or where a window begins */
uint64_t tt_replay_end(void);
/* The log of a recording that goes on: its end is at @pos. */
void tt_replay_set_end(uint64_t pos);

/* ---- for tt-replay.c ---- */

/* Loads the manifest, too. */
bool tt_replay_log_open(Error **errp);
void tt_replay_log_close(void);
void tt_replay_begins_at(uint64_t pos);
/* Nothing after @pos can be replayed. */
void tt_replay_cut_end(uint64_t pos);

#endif
