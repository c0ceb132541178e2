/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checkpoints of a replay, as travel and verification see them.
 *
 * Context: the vCPU thread, outside cpu_exec, BQL held. compare reads the run's
 * files.
 */
#ifndef TT_CHECKPOINTS_H
#define TT_CHECKPOINTS_H

#include "debug/tt-paging.h"
#include "pages/tt-page.h"
#include "timeline/tt-timeline.h"

/* The first one, and the recorder's. The timeline stays theirs; travel asks it
 * for plans and tells it how they went. */
TtTimeline *tt_checkpoints_init(CPUState *cpu);
/* Frees all, the timeline too. */
void tt_checkpoints_close(void);
/*
 * Pages that would be put to make RAM, now at the position of @id, that of @id: page by
 * page the checkpoint's content (NULL: zeros), whether it differs or not. Nothing is
 * changed. False: the store is damaged or memory is short, and it was said.
 * compare_all: every page, for the checkpoint that RAM is believed to come from.
 */
bool tt_checkpoints_compare(TtCheckpointId id, TtPagePut put, void *opaque);
bool tt_checkpoints_compare_all(TtCheckpointId id, TtPagePut put, void *opaque);
/* A sync point: takes one if it is time, or @wanted. The one that stands here, or
 * 0 (always 0 when it was not time). @pinned: if it is taken, it is never
 * thinned. */
TtCheckpointId tt_checkpoints_sync_point(CPUState *cpu, bool wanted, bool pinned);
/* A position from which on, up to @pos, nothing was written to a page of RAM (a
 * ram_addr_t), by the lists of what checkpoints stored; @pos itself if nothing says so. */
uint64_t tt_checkpoints_unwritten_since(uint64_t ram_addr, uint64_t pos);
/* The first of the recorder's after @pos: it stands at *@at. NULL: it does not say which
 * page tables were in use before it; or there is none, then *@at is @pos. The caller frees
 * it. Reads the run's files. */
TtPagings *tt_checkpoints_paging_after(uint64_t pos, uint64_t *at);
/* The time until the next one counts from the next sync point on. */
void tt_checkpoints_rest(void);

#endif
