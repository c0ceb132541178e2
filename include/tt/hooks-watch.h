/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes of RAM that are watched in a replay (hw-tt/memory/tt-memory-watch.h). A part of
 * tt/hooks.h, which includes it.
 *
 * Context: vCPU thread.
 */
#ifndef TT_HOOKS_WATCH_H
#define TT_HOOKS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct CPUState;

/* Of QEMU's modes, for x86; checked in accel-tt/x86. */
#define TT_HOOK_MMU_WALKS 6

extern bool tt_watches_ram;
/* An undo log is being filled: no page counts as dirty for a TLB, so that each store of a
 * vCPU is told before it is made. Implies tt_watches_ram. */
extern bool tt_logs_stores;
/* The last of these calls was for bytes at whose writes the vCPU is to stop. */
extern bool tt_store_stops;
bool tt_ram_stored_slow(uint64_t ram_addr, unsigned size);
/* The vCPU stops behind the instruction, @ra in its block, as at a watchpoint. May unwind
 * it, to make it anew. @ra is 0: after the delivery that it is in. */
void tt_stop_behind(struct CPUState *cpu, uintptr_t ra);
/* In so many walks of page tables, one for another. They say that they might write; if
 * one does, it sets bits of an entry, at @entry in host memory. */
extern unsigned tt_walks;
void tt_walk_wrote_slow(void *entry);

static inline bool tt_ram_is_watched(void)
{
    return __builtin_expect(tt_watches_ram, 0);
}

static inline bool tt_stores_are_logged(void)
{
    return __builtin_expect(tt_logs_stores, 0);
}

/* A vCPU is about to write RAM of a page that is not dirty. True: its writes are watched,
 * or logged, so the page stays like that (hw-tt/memory/tt-memory-watch.h). */
static inline bool tt_ram_stored(struct CPUState *cpu, uint64_t ram_addr, unsigned size,
                                 uintptr_t ra)
{
    bool stays = tt_ram_is_watched() && tt_ram_stored_slow(ram_addr, size);

    if (stays && tt_store_stops) {
        tt_stop_behind(cpu, ra);
    }
    return stays;
}

static inline void tt_walk_begins(void)
{
    tt_walks += tt_on();
}

static inline void tt_walk_ends(void)
{
    tt_walks -= tt_on();
}

/* It does not write yet, so the page need not be in a checkpoint, and no entry of the TLB
 * becomes one for writing: those of walks have physical addresses. @ra: 0 in a walk. */
static inline bool tt_only_walks(uintptr_t ra)
{
    return tt_walks && !ra;
}

/* Modes of the MMU whose entries a store makes such as can be written: those of walks, the
 * last ones, lead elsewhere with the same address. */
static inline int tt_store_modes(int all)
{
    return tt_on() ? TT_HOOK_MMU_WALKS : all;
}

static inline bool tt_walk_wrote(void *entry, bool wrote)
{
    if (wrote && tt_on()) {
        tt_walk_wrote_slow(entry);
    }
    return wrote;
}

#endif
