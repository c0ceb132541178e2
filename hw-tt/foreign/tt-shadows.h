/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shadow memory: a device that QEMU does not emulate sees it in place of guest RAM.
 * Context: the BQL is held.
 */
#ifndef TT_SHADOWS_H
#define TT_SHADOWS_H

#include "exec/memory.h"

typedef struct TtShadows TtShadows;

/* The device wrote @n bytes there. */
typedef void TtShadowsChanged(void *opaque, uint64_t addr, uint32_t n);

typedef struct TtShadowsRange {
    uint64_t addr, size;            /* as the device sees it */
    MemoryRegion *mr;               /* the guest RAM that it stands for, */
    uint64_t at;                    /* and where in that */
    bool can_write;
} TtShadowsRange;

/* Which pages the guest writes is kept in mind from now on, as long as anybody has
 * shadows. Not inside a change of the memory map. */
bool tt_shadows_watch(Error **errp);
void tt_shadows_unwatch(void);

/* @changed is told before the guest gets what the device wrote; it may be NULL. */
TtShadows *tt_shadows_new(TtShadowsChanged *changed, void *opaque);
void tt_shadows_free(TtShadows *s);                     /* NULL is fine */
/* For another process: the descriptor of the range's shadow, which stays ours; -1:
 * *errp. */
int tt_shadows_add(TtShadows *s, const TtShadowsRange *range, Error **errp);
/* For a device of this host: where the shadow is, as the guest's memory is now. All of
 * it may be pinned. */
void *tt_shadows_add_here(TtShadows *s, const TtShadowsRange *range, Error **errp);
/* Ranges within that one go; @takes: what the device wrote there last comes in before. */
void tt_shadows_remove(TtShadows *s, uint64_t addr, uint64_t size, bool takes);
/* A window of device addresses behind a virtual IOMMU: its descriptor for another process,
 * which stays ours; -1: *errp. */
int tt_shadows_add_window(TtShadows *s, uint64_t addr, uint64_t size, Error **errp);
void tt_shadows_remove_window(TtShadows *s, uint64_t addr, bool takes);
/* Whole pages, of which none is mapped. @shows: the device may see the guest's memory at
 * once. False: no window has all of the range. */
bool tt_shadows_map(TtShadows *s, const TtShadowsRange *range, bool shows);
/* How many bytes are mapped; the same RAM counts as often as it is. */
uint64_t tt_shadows_mapped(const TtShadows *s);
/* Any part of what is mapped. */
void tt_shadows_unmap(TtShadows *s, uint64_t first, uint64_t last, bool takes);
/* What the device wrote into windows where nothing is mapped is removed; at a time not
 * all, if it is much. True: some of it was not zero, at *@addr. Costs two system calls for
 * each stretch of pages in use. */
bool tt_shadows_stray(TtShadows *s, uint64_t *addr);
bool tt_shadows_is_empty(const TtShadows *s);
/* The device is about to look: it sees what the guest wrote. Costs what was written
 * since the last time. */
void tt_shadows_out(TtShadows *s);
/* The guest is about to look: it sees what the device wrote. Costs a comparison of all
 * pages that guest or device ever wrote; of all there are, if they were added here. */
void tt_shadows_in(TtShadows *s);
/* The device was not allowed to write: what it wrote all the same is undone. */
void tt_shadows_drop(TtShadows *s);
/* The device is gone: nothing that it wrote, or still writes, comes in any more. */
void tt_shadows_lost(TtShadows *s);
/* For figures: pages compared, bytes taken over, ns spent, and how often. */
enum { TT_SHADOWS_STATS = 4 };
void tt_shadows_stats(const TtShadows *s, uint64_t out[TT_SHADOWS_STATS]);

#endif
