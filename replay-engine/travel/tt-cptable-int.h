/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checkpoints of a replay, as those files see them that take, restore and load
 * them.
 *
 * Context: the vCPU thread, outside cpu_exec, BQL held.
 */
#ifndef TT_CPTABLE_INT_H
#define TT_CPTABLE_INT_H

#include "accel-tt/tt-vcpu-backend.h"
#include "hw-tt/memory/tt-memory.h"
#include "log/tt-sched.h"
#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"
#include "timeline/tt-timeline.h"

/* The part of the memory for checkpoints that all uncompressed pages take. A restore
 * reads what differs twice. */
#define TT_CHECKPOINT_CACHE 4

typedef struct TtRestorable {
    uint64_t pos;
    TtNodeId id;                    /* in the page store and in the timeline */
    bool pinned;
    bool stored;                    /* by the recorder: never thinned */
    bool loaded;                    /* what follows is there */
    bool untried;                   /* nobody has loaded its vCPUs yet */
    TtCursor cursor;
    TtMapState map;
    GByteArray *cpu_state;
    GByteArray *screen;             /* NULL: the log has it, if there is one */
    int halted;
    uint64_t output_hash, events;
    TtTlbs *tlbs;                   /* a near one; else the TLB is empty there */
    uint64_t map_changes;           /* ... and its copy is good while this is so */
} TtRestorable;

typedef struct TtCheckpointTable {
    TtTimeline *timeline;
    TtPageStore *pages;
    GHashTable *checkpoints;        /* TtCheckpointId -> TtRestorable */
    bool has_files;                 /* the store is the recorder's */
    uint64_t screen_bytes;          /* of all that are kept */
    uint64_t tlb_bytes;             /* ... and of the near ones */
    unsigned n_near;
    TtNodeId start;                 /* with it history begins: it stays */
    TtNodeId base;                  /* RAM = node base + dirty pages */
} TtCheckpointTable;

extern TtCheckpointTable tt_cptable;

TtRestorable *tt_cptable_find(TtCheckpointId id);       /* NULL: there is none */
TtRestorable *tt_cptable_enter(TtNodeId id, uint64_t pos, bool pinned,
                               bool stored);
void tt_cptable_free(TtRestorable *c);      /* out of the table already */
/* The state that is not RAM, as it is now. */
void tt_cptable_note_state(CPUState *cpu, TtRestorable *c);
/* Of the VM as it stands; NULL: memory is short. */
TtRestorable *tt_cptable_take(CPUState *cpu, bool pinned);
/* After that: gives others up if all need too much memory, maybe the new one, too. */
void tt_cptable_make_room(void);
/* RAM goes back to @pos by other means: says that it comes from a checkpoint at or before
 * it, unless memory is short. */
void tt_cptable_base_before(uint64_t pos);
/* Gives it up; false: memory is short, and it stays. Not the start. */
bool tt_cptable_drop(TtCheckpointId id);
/* Gives up the checkpoint that is missed least, but not @keep; false: none. */
bool tt_cptable_thin(TtNodeId keep);
/* These pages still are. */
void tt_cptable_mark_dirty(const uint64_t *pages, size_t n);
void tt_cptable_clear(void);

#endif
