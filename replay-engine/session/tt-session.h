/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The session of this process: its run directory, its manifest, where it stands and how it stopped.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_SESSION_H
#define TT_SESSION_H

#include "log/tt-log.h"
#include "run/tt-manifest.h"

/* Positions between two flushes of the TLB, in the recording and in every
 * replay (hazard 1). 2^23 is some 10 ms of guest work; a flush costs
 * some 50 us of refills (2026-11). */
#define TT_SYNC_INTERVAL (1ull << 23)

/* Positions between two digests of the vCPUs, as far as sync points. 2^20 of them cost
 * 4 % of a recording (2026-11). */
#define TT_CHECK_INTERVAL (1ull << 23)
#define TT_CHECK_INTERVAL_MIN 1000

#define TT_CHECKPOINT_INTERVAL_MS 25000

typedef struct TtEngine {
    const char *dir;            /* the run directory; interned, since query-tt
                                   reads it without any lock */
    TtManifest manifest;
    bool live;                  /* events are recorded or replayed now */
    bool gave_up;               /* the recording ended by itself, here: */
    uint64_t gave_up_at;
    bool finished;              /* the end of the run has been dealt with */
    uint64_t pos;               /* position; exact while the vCPU is outside
                                   cpu_exec, else see tt_position() */
    uint64_t sync_next;        /* position of the next TLB flush */
    uint64_t check_next;        /* record: of the next digest between sync points */
    uint64_t check_interval;    /* record: positions between two digests */
    uint64_t step_to;           /* gdb's single step ends here, or UINT64_MAX */
    uint64_t output_hash;       /* over all port and MMIO writes so far */
    unsigned device_depth;      /* the vCPU is inside a device call */
    bool acknowledging;         /* the interrupt controller answers the vCPU */
    bool at_end_exit;           /* replay: leave when the end is reached */
    uint64_t checkpoint_bytes;  /* replay: memory for checkpoints */
    uint64_t checkpoint_interval_ms;    /* record: 0 for none */
    uint64_t sync_ms;           /* record: the log is flushed to disk so often; 0:
                                   at its end */
    bool stop_on_error;         /* record: the VM waits for a disk that fails */
    bool chaos;                 /* record: who runs when is left to chance */
    uint64_t max_size_bytes;    /* record: cap of the log, 0 for none */
    uint64_t window_ns;         /* record: keep so much, in time of the VM's
                                   clock; 0: all */
    bool save_on_panic;         /* record: with a window */
    uint64_t unlogged;          /* record, for tests: so many writes of devices
                                   to RAM until one is not logged; 0: all are */
    uint64_t events;            /* recorded, or replayed so far */
    bool diverged;              /* the replay cannot go on from here: it is not
                                   exact, or, if damaged is set as well, ... */
    bool damaged;               /* ... the log cannot be read */
    bool torn;                  /* replay: the recorder was cut off, or ... */
    bool growing;               /* ... it was still at work when we began */
    char *divergence;           /* one sentence */
    int last_stop;              /* TtStopReason of the last stop */
} TtEngine;

extern TtEngine tt;

/* The position now: O(1), exact under the BQL. */
uint64_t tt_position(void);
/* Next multiple of the sync point interval after @pos. */
uint64_t tt_next_sync_point(uint64_t pos);

static inline void tt_fold_output(const TtEvent *ev)
{
    uint64_t h = tt.output_hash;

    h = (h ^ (ev->addr << 8 ^ ev->kind << 4 ^ ev->size)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
    h = (h ^ ev->val ^ ev->pos << 32) * 0xc2b2ae3d27d4eb4fu;
    tt.output_hash = h ^ h >> 29;
}

bool tt_block_migration(Error **errp);
void tt_unblock_migration(void);

void tt_set_dir(const char *dir);               /* NULL or "": none given */

/* Is there a position to mark or to look at now? False: *errp says why not. */
bool tt_is_live(Error **errp);

const char *tt_stop_name(int reason);

#endif
