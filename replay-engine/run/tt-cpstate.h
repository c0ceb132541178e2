/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checkpoint state: everything of a checkpoint but the RAM, as bytes. The page
 * store keeps them beside the pages and does not look inside.
 *
 * Context: any thread. No I/O. Bytes from a file may be hostile: decode bounds
 * every length, and what it points to lies within the bytes given.
 */
#ifndef TT_CPSTATE_H
#define TT_CPSTATE_H

#include "io/tt-base.h"

#define TT_CPSTATE_SPACES   2           /* address spaces: normal, SMM */
#define TT_CPSTATE_CPU_MAX  (1u << 20)  /* bytes of a vCPU's state */
#define TT_CPSTATE_MAP_MAX  (1u << 20)  /* bytes of a memory map */
#define TT_CPSTATE_BLOCKS_MAX (1u << 20) /* bytes of the list of RAM blocks */
#define TT_CPSTATE_PAGING_MAX (64u << 10) /* bytes of the page tables in use */
#define TT_CPSTATE_FULL_MAX (58u << 20) /* bytes of a full state; all of it fits
                                           a blob of the page store */

typedef struct TtBytes {
    const uint8_t *data;
    uint32_t len;
} TtBytes;

typedef struct TtCpState {
    uint64_t segment;           /* the log goes on here: segment and */
    uint32_t index;             /* event in it */
    bool halted;
    uint32_t n_blocks;          /* RAM blocks that the guest has seen */
    uint64_t output_hash;       /* over the guest's outputs so far */
    uint64_t events;            /* replayed so far */
    TtBytes map[TT_CPSTATE_SPACES];
    TtBytes blocks, cpu;
    TtBytes full;               /* run/tt-fullstate.h; empty: not a full one */
    TtBytes paging;             /* debug/tt-paging.h, since the checkpoint before; empty:
                                 * not known */
} TtCpState;

/* g_malloc'ed bytes; the caller frees them. Lengths within the limits above. */
uint8_t *tt_cpstate_encode(const TtCpState *s, uint32_t *len);
/* TT_ERR_FORMAT, _VERSION with one sentence; @out points into @bytes. */
TtStatus tt_cpstate_decode(TtBytes bytes, TtCpState *out, TtDiag *diag);

/* One entry of the list of RAM blocks. @name is not terminated. */
typedef struct TtCpBlock {
    uint64_t size_bytes;
    uint32_t flags;
    TtBytes name;
} TtCpBlock;

/* Takes the next entry off @rest, s->blocks at first. False: the list is
 * damaged. */
bool tt_cpstate_next_block(TtBytes *rest, TtCpBlock *b);

#endif
