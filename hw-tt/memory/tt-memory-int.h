/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files about guest memory; the interface for others is tt-memory.h.
 * Context: the BQL is held.
 */
#ifndef TT_MEMORY_INT_H
#define TT_MEMORY_INT_H

#include "log/tt-log.h"
#include "exec/memory.h"

/* ---- blocks ---- */
/* The guest sees @mr now: the number of its block, which it has or gets. */
unsigned tt_memory_register(MemoryRegion *mr);
/* All, also those that the guest has not seen at this position. */
unsigned tt_memory_n_made(void);
/* At this position the guest has seen the first @n. */
void tt_memory_show(unsigned n);
/* The @n blocks of a stored checkpoint: those that are not there yet are made. */
bool tt_memory_blocks_load(const uint8_t *data, size_t len, unsigned n,
                           Error **errp);

/* The number of the block that @rb is; -1: the run has none. */
int tt_memory_find(RAMBlock *rb);
/* Recording: what stands there now goes into the log. */
void tt_memory_log_bytes(unsigned index, uint64_t offset, uint64_t len);
/* An event of the log is put into effect: what is written is a device's. */
extern bool tt_memory_applies;
/* True: undo by tt_world_swap. */
bool tt_memory_turn_to_present(RAMBlock *rb);

/* ---- the map ---- */
/* A recording logs it, and its changes, from now on; no more. */
void tt_memory_map_watch(CPUState *cpu);
void tt_memory_map_unwatch(void);
bool tt_memory_map_apply(const TtEvent *ev, Error **errp);
/* The vCPUs see again what they see in the present. */
void tt_memory_map_leave_past(void);

#endif
