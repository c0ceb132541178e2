/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checkpointer: checkpoints of a recording.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_CHECKPOINTER_H
#define TT_CHECKPOINTER_H

/* start: the initial state is logged; fence: one was just made; turn: cpu_exec
 * was left (these three: vCPU out of, in, and out of cpu_exec); finish: the
 * recording ends. */
bool tt_keeper_start(CPUState *cpu, Error **errp);
void tt_keeper_fence(CPUState *cpu);
void tt_keeper_turn(CPUState *cpu);
void tt_keeper_finish(void);
/* The log of a window has grown: is it time for a checkpoint, fence or not? */
void tt_keeper_urge(void);
void tt_keeper_tell(void);              /* what went wrong, if not told yet */
/* Waits until what was taken is in the files. */
void tt_keeper_settle(void);
/*
 * tt_keeper_add: a checkpoint of the present position, which stays until it is
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
bool tt_keeper_add(const char *name, GString *full, uint32_t *id,
                   Error **errp);
/* Main thread. Waits in the same way. */
bool tt_keeper_delete(uint64_t id, Error **errp);
GArray *tt_keeper_list(void);           /* of TtPoint, by position */

typedef struct TtKeeperStats {
    uint64_t count, bytes;              /* checkpoints; of the store on disk */
    uint64_t taken;                     /* since the recording began */
    /* The VM stood; the first is not among them: with it RAM is logged. */
    uint64_t pause_ns_last, pause_pages_last;
    uint64_t pause_ns_most, pause_pages_most;
} TtKeeperStats;

TtKeeperStats tt_keeper_stats(void);    /* any thread */
bool tt_keeper_is_on(void);             /* checkpoints are made by themselves */
/* The log's writer found the disk full: the checkpoints go. False: there is
 * nothing left to give. */
bool tt_keeper_make_room(void *opaque);

#endif
