/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A block of guest RAM, as the run knows it.
 *
 * Context: the BQL is held.
 */
#ifndef TT_BLOCK_H
#define TT_BLOCK_H

#include "run/tt-manifest.h"

typedef struct TtBlock {
    void *ram_block;            /* RAMBlock; compared, not followed */
    MemoryRegion *mr;
    uint8_t *host;
    uint64_t size_bytes;
    uint32_t flags;             /* TT_BLOCK_* */
    uint64_t first_page;        /* its number in the page store */
    bool is_adopted;            /* its device is gone, the RAM is ours */
    char name[TT_BLOCK_NAME_MAX + 1];
} TtBlock;

/* RAM of our own for @b. False: there is not enough memory, *errp. */
bool tt_block_create(TtBlock *b, Error **errp);
/* It goes when nobody looks at it any more. */
void tt_block_destroy(TtBlock *b);

#endif
