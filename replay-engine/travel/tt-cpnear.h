/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Near checkpoints (timeline/tt-near.h) of a replay. They serve movements only: nobody
 * sees them.
 *
 * Context: the vCPU thread, outside cpu_exec, BQL held; find: the BQL.
 */
#ifndef TT_CPNEAR_H
#define TT_CPNEAR_H

#include "timeline/tt-timeline.h"
#include "hw/core/cpu.h"

/* A near one here, unless one stands here or the vCPU is in the middle of something. */
void tt_checkpoints_near(CPUState *cpu);
/* Gives up the near ones after @from, up to here: a movement from @from to here then
 * executes everything between. */
void tt_checkpoints_drop_near(uint64_t from);
/* The nearest one at or before @pos that is not a near one; 0: none. */
TtCheckpointId tt_checkpoints_find_no_near(uint64_t pos, uint64_t *at);

#endif
