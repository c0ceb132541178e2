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

/* A vCPU is about to write RAM of a page that is not dirty. True: its writes are watched,
 * so the page stays like that (hw-tt/memory/tt-memory-watch.h). */
extern bool tt_watches_ram;
bool tt_ram_stored_slow(uint64_t ram_addr, unsigned size);

static inline bool tt_ram_is_watched(void)
{
    return __builtin_expect(tt_watches_ram, 0);
}

static inline bool tt_ram_stored(uint64_t ram_addr, unsigned size)
{
    return tt_ram_is_watched() && tt_ram_stored_slow(ram_addr, size);
}

#endif
