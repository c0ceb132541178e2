/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The steps of the movement under way.
 *
 * Context: the vCPU thread, BQL held.
 */
#ifndef TT_TRAVEL_STEP_H
#define TT_TRAVEL_STEP_H

#include "timeline/tt-timeline.h"
#include "hw/core/cpu.h"

/* The functions that the replayer calls: see replay/tt-replay-driver.h. */
bool tt_travel_is_pending(void);
uint64_t tt_travel_next_checkpoint(uint64_t pos);
bool tt_travel_passes(CPUState *cpu);
void tt_travel_changes_inside(CPUState *cpu);
bool tt_travel_advance(CPUState *cpu);
void tt_travel_hit(uint64_t pos, CPUWatchpoint *wp);
void tt_travel_switches(CPUState *from);
void tt_travel_ended(int reason);

/* The movement is over, as @step says. Also: BQL held, the vCPU does not run. */
void tt_travel_finish(const TtStep *step);

#endif
