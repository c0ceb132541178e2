/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shadow memory: what a server with descriptors sees instead of guest RAM.
 * Context: the BQL is held.
 */
#ifndef TT_VFU_SHADOW_H
#define TT_VFU_SHADOW_H

#include "exec/memory.h"

typedef struct TtVfuShadows TtVfuShadows;

/* The device wrote @n bytes there. */
typedef void TtVfuChanged(void *opaque, uint64_t addr, uint32_t n);
/* What the device wrote goes to @as; @changed is told before. */
TtVfuShadows *tt_vfu_shadows_new(AddressSpace *as, TtVfuChanged *changed, void *opaque,
                                 Error **errp);
void tt_vfu_shadows_free(TtVfuShadows *s);              /* NULL is fine */
/* A range of guest memory: the descriptor of its shadow, which stays ours; -1: *errp. */
int tt_vfu_shadows_add(TtVfuShadows *s, MemoryRegionSection *section, uint64_t size,
                       Error **errp);
void tt_vfu_shadows_remove(TtVfuShadows *s, uint64_t addr);
/* The device is about to look: it sees what the guest wrote. Costs what was written
 * since the last time. */
void tt_vfu_shadows_out(TtVfuShadows *s);
/* The guest is about to look: it sees what the device wrote. Costs a comparison of
 * all pages that guest or device ever wrote. */
void tt_vfu_shadows_in(TtVfuShadows *s);
/* For figures: pages compared, bytes taken over, ns spent, and how often. */
void tt_vfu_shadows_stats(const TtVfuShadows *s, uint64_t out[4]);

#endif
