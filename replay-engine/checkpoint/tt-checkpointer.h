/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checkpointer: checkpoints of a recording.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_CHECKPOINTER_H
#define TT_CHECKPOINTER_H

/* start: the initial state is logged; sync point: one was just made; turn: cpu_exec
 * was left (these three: vCPU out of, in, and out of cpu_exec); finish: the
 * recording ends. */
bool tt_checkpointer_start(CPUState *cpu, Error **errp);
void tt_checkpointer_sync_point(CPUState *cpu);
void tt_checkpointer_turn(CPUState *cpu);
void tt_checkpointer_finish(void);
/* The log of a window has grown: is it time for a checkpoint, sync point or not? */
void tt_checkpointer_urge(void);
void tt_checkpointer_tell(void);              /* what went wrong, if not told yet */
/* Waits until what was taken is in the files. */
void tt_checkpointer_settle(void);
/*
 * tt_checkpointer_add: a checkpoint of the present position, which stays until it is
 * deleted
 * @name: a mark for the position, or NULL
 * @full: not NULL: with devices and disks, so that a branch can start there; gets
 *        a line for each disk whose writes go to another file from now on
 * @id: its number
 * Main thread, no coroutine. The VM is stopped for as long as it takes to copy
 * what changed, and goes on if it ran. Then the call waits, with the BQL
 * released, until the checkpoint is on disk. False: *errp says why there is
 * none.
 */
bool tt_checkpointer_add(const char *name, GString *full, uint32_t *id,
                   Error **errp);
/* Main thread. Waits in the same way. */
bool tt_checkpointer_delete(uint64_t id, Error **errp);
GArray *tt_checkpointer_list(void);           /* of TtCheckpointDesc, by position */

typedef struct TtCheckpointerStats {
    uint64_t count, bytes;              /* checkpoints; of the store on disk */
    uint64_t taken;                     /* since the recording began */
    /* The VM stood; the first is not among them: with it RAM is logged. */
    uint64_t pause_ns_last, pause_pages_last;
    uint64_t pause_ns_most, pause_pages_most;
} TtCheckpointerStats;

TtCheckpointerStats tt_checkpointer_stats(void);    /* any thread */
bool tt_checkpointer_is_on(void);             /* checkpoints are made by themselves */
/* The log's writer found the disk full: the checkpoints go. False: there is
 * nothing left to give. */
bool tt_checkpointer_make_room(void *opaque);

#endif
