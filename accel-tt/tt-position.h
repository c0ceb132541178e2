/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the replayed system stands (XenTT 4.1: a point of execution is a number).
 *
 * Context: the BQL is held.
 */
#ifndef TT_POSITION_H
#define TT_POSITION_H

#include "log/tt-log.h"

typedef struct TtPosition {
    uint64_t pos;               /* exact while the vCPU is outside guest code,
                                   else see tt_position() */
    uint64_t sync_next;         /* position of the next TLB flush */
    uint64_t check_next;        /* record: of the next digest between them */
    uint64_t step_to;           /* gdb's single step ends here, or UINT64_MAX */
    uint64_t output_hash;       /* over all port and MMIO writes so far */
    unsigned device_depth;      /* the vCPU is inside a device call */
    bool acknowledging;         /* the interrupt controller answers the vCPU */
} TtPosition;

#define TT_POSITION_START { .sync_next = UINT64_MAX, .check_next = UINT64_MAX, \
                            .step_to = UINT64_MAX }

extern TtPosition tt_now;

/* The position now: O(1), exact if the BQL is held. */
uint64_t tt_position(void);
/* As in a new process. */
void tt_position_reset(void);
/* Multiples of the run's sync interval, from the start or from the last of the
 * positions at which they count anew (TtManifest): the next one after @pos, and the last
 * one that is not. */
uint64_t tt_next_sync_point(uint64_t pos);
uint64_t tt_last_sync_point(uint64_t pos);

static inline void tt_fold_output(const TtEvent *ev)
{
    uint64_t h = tt_now.output_hash;

    h = (h ^ (ev->addr << 8 ^ ev->kind << 4 ^ ev->size)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
    h = (h ^ ev->val ^ ev->pos << 32) * 0xc2b2ae3d27d4eb4fu;
    tt_now.output_hash = h ^ h >> 29;
}

#endif
