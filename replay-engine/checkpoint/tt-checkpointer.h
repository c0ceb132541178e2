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
/* The same: checkpoints that other VMs of the group ask for. */
void tt_cpgroup_init(void);
/* The name of a checkpoint of a group, of its number. */
#define TT_CPGROUP_NAME "group-%u"
/* Waits until what was taken is in the files. */
void tt_checkpointer_settle(void);
/*
 * What the user asks of the checkpointer. An add makes a checkpoint of the present
 * position, which stays until it is deleted (or, see below, thinned); the VM is stopped for
 * as long as it takes to copy what changed, and goes on if it ran.
 */
typedef struct TtCheckpointerTask {
    enum { TT_CHECKPOINTER_ADD, TT_CHECKPOINTER_DELETE } kind;
    const char *name;           /* add: a mark for the position, or NULL */
    GString *full;              /* add: not NULL: with devices and disks, so that a
                                 * branch can start there; gets a line for each disk
                                 * whose writes go to another file from now on */
    bool is_thinned;            /* add, with full: it goes when max-size needs its room */
    bool of_group;              /* add: a full one, named by its number in the group */
    uint32_t epoch;             /* of_group: that number at least; what was added has it */
    uint64_t id;                /* to delete; or of what was added */
    bool cancelled;             /* set it at any time; what was added goes again */
    Error *err;                 /* it has ended: why there is none, or NULL */
    /* private */
    uint32_t job;
    uint64_t settled_at;        /* of the log; 0: that is not waited for */
    bool has_room, is_late, is_posted;
    bool is_undo;               /* a delete of what was added and cancelled */
    bool is_waiting;            /* for the store; nobody else gets it first */
} TtCheckpointerTask;

/* Main thread, no coroutine; does not sleep. Call it until it is true: it has ended. */
bool tt_checkpointer_step(TtCheckpointerTask *t);
bool tt_checkpointer_is_busy(void);     /* something is being stored */
/* Main thread: the recording moves to a position at which nothing has happened yet: the
 * vCPUs' state is logged, for which the VM stands still for some milliseconds if it runs.
 * Under KVM it stays where it is. */
void tt_checkpointer_new_place(void);
GArray *tt_checkpointer_list(void);           /* of TtCheckpointDesc, by position */

#endif
