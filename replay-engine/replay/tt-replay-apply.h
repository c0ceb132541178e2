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

/* ---- for the replayer ---- */

/* False: it was reported why not. The cursor is not moved. */
bool tt_replay_apply(const TtEvent *ev);
/* Applies the events of the log before the first instruction. */
void tt_replay_apply_initial(void);
/* A nested event inside an instruction: not a change of a whole vCPU. */
bool tt_replay_may_be_nested(const TtEvent *ev);

#endif
