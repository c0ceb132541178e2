/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What travel knows of a replay's checkpoints. Private to replay-engine/glue.
 *
 * Context: the vCPU thread, outside cpu_exec, BQL held; delete: BQL held and no
 * movement under way. May block: restore reads the run's files.
 */
#ifndef TT_CHECKPOINTS_H
#define TT_CHECKPOINTS_H

#include "timeline/tt-timeline.h"

/* The first one, and the recorder's. The timeline stays theirs; travel asks it
 * for plans and tells it how they went. */
TtTimeline *tt_checkpoints_init(CPUState *cpu);
/* Frees all, the timeline too. */
void tt_checkpoints_close(void);
typedef enum TtRestored {
    TT_RESTORED,
    TT_RESTORE_ANOTHER,         /* it is damaged, and out of the timeline: ask that
                                 * again */
    TT_RESTORE_NONE,            /* so is the start: there is no other; said so */
    TT_RESTORE_NOMEM,           /* it stays where it is; if that is not the run's any
                                 * more, it was said, as damage */
} TtRestored;

/* The VM becomes that of @id. Also restored, with tt_replayer.diverged set: the log behind it
 * is damaged. */
TtRestored tt_checkpoints_restore(CPUState *cpu, TtCheckpointId id);
/* The last one failed half-way: what stands here is nothing of the run's. */
bool tt_checkpoints_is_lost(void);
/* Where the last one was that succeeded; at first, where the replay begins. */
uint64_t tt_checkpoints_restored_at(void);
/*
 * What would be put to make RAM, now at the position of @id, that of @id: page by
 * page what the checkpoint has (NULL: zeros), whether it differs or not. Nothing is
 * changed. False: the store is damaged or memory is short, and it was said.
 * compare_all: every page, for the checkpoint that RAM is believed to come from.
 */
bool tt_checkpoints_compare(TtCheckpointId id, TtPagePut put, void *opaque);
bool tt_checkpoints_compare_all(TtCheckpointId id, TtPagePut put, void *opaque);
/* A sync point: takes one if it is time, or @wanted. The one that stands here, or
 * 0 (always 0 when it was not time). @pinned: if it is taken, it is never
 * thinned. */
TtCheckpointId tt_checkpoints_sync_point(CPUState *cpu, bool wanted, bool pinned);
/* The time until the next one counts from the next sync point on. */
void tt_checkpoints_rest(void);
void tt_checkpoints_pin(TtCheckpointId id);          /* @id exists */
bool tt_checkpoints_delete(uint64_t id, Error **errp);

/* Memory for the checkpoints of a replay. */
extern uint64_t tt_checkpoints_bytes;

#endif
