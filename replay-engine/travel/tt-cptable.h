/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checkpoints that a replay has, for the user.
 *
 * Context: the BQL is held; delete: and no movement is under way.
 */
#ifndef TT_CPTABLE_H
#define TT_CPTABLE_H

#include "timeline/tt-timeline.h"

/* Memory for the checkpoints of a replay. */
extern uint64_t tt_checkpoints_bytes;

unsigned tt_checkpoints_count(void);
/* Of TtCheckpointDesc, by position; the caller frees it. */
GArray *tt_checkpoints_list(void);
void tt_checkpoints_pin(TtCheckpointId id);          /* @id exists; vCPU thread */
bool tt_checkpoints_delete(uint64_t id, Error **errp);

#endif
