/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Restores checkpoints of a replay.
 *
 * Context: the vCPU thread, outside cpu_exec, BQL held. May block: it reads the
 * run's files.
 */
#ifndef TT_CPRESTORE_H
#define TT_CPRESTORE_H

#include "timeline/tt-timeline.h"

typedef enum TtRestored {
    TT_RESTORED,
    TT_RESTORE_ANOTHER,         /* it is damaged, and out of the timeline: ask that
                                 * again */
    TT_RESTORE_NONE,            /* so is the start: there is no other; said so */
    TT_RESTORE_NOMEM,           /* it stays where it is; if that is not the run's any
                                 * more, it was said, as damage */
} TtRestored;

/* The VM becomes that of @id. Also restored, with tt_replayer.diverged set: the log
 * after it is damaged. */
TtRestored tt_checkpoints_restore(CPUState *cpu, TtCheckpointId id);
/* For tests: in every other of these, from the first on, allocation @nth of the page
 * store fails, and those after it unless @once. 0: never. */
void tt_checkpoints_set_short_memory(uint64_t nth, bool once);
/* The last one failed half-way: what stands here is nothing of the run's. */
bool tt_checkpoints_is_lost(void);
/* Where the last one was that succeeded; at first, where the replay begins. */
uint64_t tt_checkpoints_restored_at(void);
/* Was that a near one? The others leave the TLB empty. */
bool tt_checkpoints_restored_near(void);

#endif
