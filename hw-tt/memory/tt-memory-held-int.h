/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which pages of guest RAM the host has given memory to: the others are zero.
 *
 * Context: the BQL is held. Reads the host's /proc.
 */
#ifndef TT_MEMORY_HELD_INT_H
#define TT_MEMORY_HELD_INT_H

#include "hw-tt/memory/tt-block.h"

/* For one scan, in which the block is not written. */
typedef struct TtHeld {
    int fd;
    uint64_t first_host_page, n_pages;
    uint64_t from, to;                  /* what is known of */
    uint64_t entries[1024];
} TtHeld;

void tt_held_begin(TtHeld *h, const TtBlock *b);
/* False: page @page of the block is zero, and nobody need look at it. */
bool tt_held_may(TtHeld *h, uint64_t page);
void tt_held_end(TtHeld *h);

#endif
