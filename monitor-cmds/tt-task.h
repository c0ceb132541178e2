/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands that can last, whoever gives them: one step function carries all of
 * them out. QMP runs it in a coroutine or as a job, HMP in the main loop.
 * Context: main thread, BQL held.
 */
#ifndef TT_TASK_H
#define TT_TASK_H

#include "checkpoint/tt-checkpointer.h"
#include "control/tt-attach.h"
#include "find/tt-find.h"
#include "monitor-cmds/tt-monitor.h"
#include "undo/tt-undo.h"
#include "qapi/qapi-types-job.h"

typedef enum TtTaskKind {
    TT_TASK_GOTO,
    TT_TASK_STRAIGHT,           /* to @straight_to, skipping nothing */
    TT_TASK_FIND,
    TT_TASK_ADD,
    TT_TASK_DELETE,
    TT_TASK_SAVE,
    TT_TASK_RECORD_STOP,
    TT_TASK_UNDO,               /* or redo */
} TtTaskKind;

typedef struct TtTask {
    TtTaskKind kind;
    TtGoto g;                   /* goto */
    uint64_t straight_to;
    TtFindWant find;
    const char *name;           /* add, save; or NULL */
    bool full, of_group;        /* add */
    uint32_t id;                /* delete */
    int64_t n_inputs;           /* undo: back (< 0), or forward */
    const char *job_id;         /* or NULL */
    bool cancelled;             /* set it at any time: end soon */

    /* what came of it */
    Error *err;                 /* nothing, because of that; find: or not all */
    uint64_t pos;               /* goto, straight, find: where it ended */
    int reason;
    GArray *hits;               /* find: of TtFindHit; NULL: it has not begun */
    TtCheckpoint *added;        /* add; NULL: cancelled */
    GString *notes;             /* add */
    char *dir;                  /* save */
    TtEnded ended;              /* record stop */

    /* private */
    bool has_begun, is_done, told_cancel, is_recording;
    uint64_t to_find, left_to_find;     /* positions */
    TtCheckpointerTask checkpointer;
    TtUndoTask undo;
} TtTask;

/* A TtWaitStep; @opaque is the TtTask. */
bool tt_task_step(void *opaque);
/* Has begun a movement that has not ended. */
bool tt_task_moves(const TtTask *t);
/* For the checkpoint store, which works on something else. */
bool tt_task_waits(const TtTask *t);
/* How far a movement is, in positions. */
void tt_task_progress(const TtTask *t, uint64_t *done, uint64_t *total);
/* What a search has found; for QMP. */
TtFoundPlaceList *tt_task_places(const TtTask *t);
bool tt_task_has_all(const TtTask *t);
/* What it holds, not itself. */
void tt_task_clear(TtTask *t);
/*
 * In a coroutine. Without @t->job_id, waits for the end. With it, the task is copied
 * into a job that goes on; what is refused at once is *errp. False: *errp. The
 * caller clears @t.
 */
bool tt_task_run(TtTask *t, JobType type, Error **errp);

#endif
