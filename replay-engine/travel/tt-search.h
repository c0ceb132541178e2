/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which intervals a backward search may leave out.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_SEARCH_H
#define TT_SEARCH_H

void tt_search_init(void);
void tt_search_close(void);
/* The VM is about to become another one; is the one of a checkpoint. */
void tt_search_leave(void);
void tt_search_restored(void);
void tt_search_sync_point(void);
/* A TtMayHit: can a stop of gdb's fire there? */
bool tt_search_may_hit(void *opaque, uint64_t from, uint64_t to);

#endif
