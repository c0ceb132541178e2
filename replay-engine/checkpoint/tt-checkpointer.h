/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checkpointer: checkpoints of a recording.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_CHECKPOINTER_H
#define TT_CHECKPOINTER_H

/* Once, at start: goes along with every recording. */
void tt_checkpointer_init(void);
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

#endif
