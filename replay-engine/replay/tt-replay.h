/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The replayer: matches the log with what the vCPU does, and applies its events.
 *
 * Context: the vCPU thread, BQL held; open, close and fill: BQL.
 */
#ifndef TT_REPLAY_H
#define TT_REPLAY_H

#include "hw-tt/memory/tt-memory.h"

void tt_replay_init(void);              /* main thread, before the options */
bool tt_replay_open(Error **errp);
void tt_replay_start(CPUState *cpu);
void tt_replay_close(void);

/* @b's contents become those in the parent's checkpoint. */
bool tt_replay_fill(TtBlock *b, Error **errp);

/* ---- what the vCPU calls (session/tt-ops.h) ---- */

/* Before each run of guest code: applies what is due, moves the travel on.
 * False: stand still. */
bool tt_replay_prepare(void);
uint64_t tt_replay_limit(void);         /* run no further than this */
bool tt_replay_boundary(CPUState *cpu); /* tt_boundary's replay half */
/* cpu_exec returned @why. True: dealt with, no stop to report to gdb. */
bool tt_replay_left(CPUState *cpu, int why);

#endif
