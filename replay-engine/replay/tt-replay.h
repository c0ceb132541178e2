/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The replayer: matches and applies the events of the log.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_REPLAY_H
#define TT_REPLAY_H

#include "hw-tt/memory/tt-block.h"
#include "io/tt-base.h"
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

/* Replay: @b's contents become those in the parent's checkpoint. */
bool tt_replay_fill(TtBlock *b, Error **errp);

bool tt_replay_open(Error **errp);
void tt_replay_start(CPUState *cpu);            /* vCPU thread */
/* Before each run of guest code: applies what is due, moves the travel on.
 * False: stand still. */
bool tt_replay_prepare(void);
uint64_t tt_replay_limit(void);         /* run no further than this */
bool tt_replay_boundary(CPUState *cpu); /* tt_boundary's replay half */
/* cpu_exec returned @why. True: dealt with, no stop to report to gdb. */
bool tt_replay_left(CPUState *cpu, int why);
/* A synchronous event: checked against the log; *ev takes the logged values.*/
void tt_replay_sync(TtEvent *ev);
TtSched *tt_replay_sched(void);
/* The replay cannot go on: it diverged; the log cannot be read. */
void tt_replay_report(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
void tt_replay_damaged(const TtDiag *diag);
/* Why it cannot go on, as a TtStopReason. */
int tt_replay_failure(void);
/* The release of QEMU that recorded it, for people; NULL: this one. To be freed. */
char *tt_replay_other_release(void);

uint64_t tt_replay_first(void);         /* 0, or where a window begins */
uint64_t tt_replay_end(void);
/* The log of a recording that goes on: its end is at @pos. */
void tt_replay_set_end(uint64_t pos);
void tt_replay_close(void);
uint64_t tt_replay_digests(void);       /* verified so far */
uint64_t tt_replay_last_equal(void);    /* position of the last digest that was
                                           as recorded, before this one; 0 */
void tt_replay_console(uint32_t port, uint32_t val, unsigned size);

TtLogReader *tt_replay_reader(void);

#endif
