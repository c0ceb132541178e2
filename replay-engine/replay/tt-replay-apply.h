/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Puts events of the log into effect.
 *
 * Context: the vCPU thread, BQL held.
 */
#ifndef TT_REPLAY_APPLY_H
#define TT_REPLAY_APPLY_H

#include "log/tt-log.h"

/* A synchronous event: checked against the log; *ev takes the logged values. */
void tt_replay_sync(TtEvent *ev);

/* How often each vCPU was interrupted so far, or its whole state changed (it was started):
 * TT_VCPUS_MAX counts, which only grow, whatever the movements. */
const uint64_t *tt_replay_interrupts(void);

/* ---- for the replayer ---- */

/* Counts one. */
void tt_replay_interrupted(unsigned vcpu);

/* False: it was reported why not. The cursor is not moved. */
bool tt_replay_apply(const TtEvent *ev);
/* Applies the events of the log before the first instruction. */
void tt_replay_apply_initial(void);
/* A nested event inside an instruction: not a change of a whole vCPU. */
bool tt_replay_may_be_nested(const TtEvent *ev);

#endif
