/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What QMP and HMP share.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_MONITOR_H
#define TT_MONITOR_H

#include "session/tt-checkpoint.h"
#include "travel/tt-travel.h"
#include "qapi/qapi-types-tt.h"
#include "qapi/qapi-types-tt-checkpoint.h"

typedef struct TtGoto {
    bool has_position, has_delta, has_where;
    uint64_t position;
    int64_t delta;
    TtWhere where;
    const char *mark;           /* NULL: not given */
} TtGoto;

/* Once, at start: QMP clients are told what happens. */
void tt_monitor_init(void);
/* Main thread: until the first state of a replay is loaded. */
void tt_monitor_wait(void);
/* Checkpoint @id, of a recording or a replay; the caller frees it. NULL: there
 * is none, *errp says that it could not be made. */
TtCheckpoint *tt_monitor_checkpoint(uint32_t id, Error **errp);
/* Of TtCheckpointDesc, of the recording or the replay; the caller frees it. */
GArray *tt_monitor_checkpoints(void);
TtCheckpoint *tt_monitor_checkpoint_to_qapi(const TtCheckpointDesc *c);
TtReason tt_monitor_reason(int reason);         /* of a TtStopReason */
/* Of a recording, where its window begins. */
uint64_t tt_monitor_start_of_run(void);
/* @full: NULL: it is not to be a full one. */
bool tt_monitor_may_be_full(const GString *full, Error **errp);
/* A checkpoint of the group; @name: the user's, or NULL. */
bool tt_monitor_may_be_of_group(const char *name, Error **errp);
/* False: *errp says what is wrong. */
bool tt_monitor_target(const TtGoto *g, uint64_t *target, Error **errp);
/* Main thread, not in a coroutine: stops the VM and posts the movement. @done may
 * be called at once. */
bool tt_monitor_go(const TtGoto *g, TtTravelDone *done, void *opaque,
                   Error **errp);

#endif
