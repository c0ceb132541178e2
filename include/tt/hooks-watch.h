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

extern bool tt_watches_ram;
/* The last of these calls was for bytes at whose writes the vCPU is to stop. */
extern bool tt_store_stops;
bool tt_ram_stored_slow(uint64_t ram_addr, unsigned size);
/* The vCPU stops behind the instruction, @ra in its block, as at a watchpoint. May unwind
 * it, to make it anew. @ra is 0: after the delivery that it is in. */
void tt_stop_behind(struct CPUState *cpu, uintptr_t ra);
/* In so many walks of page tables, one for another. They say that they might write. */
extern unsigned tt_walks;

static inline bool tt_ram_is_watched(void)
{
    return __builtin_expect(tt_watches_ram, 0);
}

/* A vCPU is about to write RAM of a page that is not dirty. True: its writes are watched,
 * so the page stays like that (hw-tt/memory/tt-memory-watch.h). */
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
    tt_walks += tt_ram_is_watched();
}

static inline void tt_walk_ends(void)
{
    tt_walks -= tt_ram_is_watched();
}

#endif
