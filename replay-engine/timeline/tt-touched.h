/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Touched pages: which virtual pages the guest used in which stretch of a run,
 * so that a search backwards leaves out stretches in which nothing can have
 * hit.
 *
 * A stretch begins where the TLB is empty; from there on each page that is
 * used must come into the TLB, and the caller tells of each that does. So a
 * page that is not among them was not used, by whatever address space and
 * mapping. They are kept as Bloom filters: "yes" may be wrong, "no" never is.
 *
 * Context: one thread at a time; no I/O. add: O(1). may: O(stretches).
 */
#ifndef TT_TOUCHED_H
#define TT_TOUCHED_H

#include "io/tt-base.h"

/* Bits of each of the two filters of a stretch. A stretch of 2^25 positions of
 * a Linux guest uses some thousand pages: 1 % wrong. */
#define TT_TOUCHED_BITS     (1u << 16)
#define TT_TOUCHED_LENGTH   (1ull << 25)    /* of a stretch, in positions */

typedef struct TtTouched TtTouched;

/* At most @max stretches are kept (16 KiB each): then they become longer. */
TtTouched *tt_touched_new(unsigned max);
void tt_touched_free(TtTouched *t);

/* The VM stands at @pos with an empty TLB. What was not noted is forgotten. */
void tt_touched_begin(TtTouched *t, uint64_t pos);
/* It goes elsewhere, or its TLB is changed without our hearing of it. */
void tt_touched_end(TtTouched *t);
/* @page: virtual address / 4096. @written: it may be written from now on
 * without another call. Nothing happens before begin. */
void tt_touched_add(TtTouched *t, uint64_t page, bool written);
/* It has run to @pos: what there is counts for all up to here. */
void tt_touched_note(TtTouched *t, uint64_t pos);
/* The same, with an empty TLB: a new stretch begins if this one is long. */
void tt_touched_sync_point(TtTouched *t, uint64_t pos);
/* Can one of the pages @first..@last have been used (@written: written) between
 * positions @from and @to? True where nothing is known. */
bool tt_touched_may(const TtTouched *t, uint64_t from, uint64_t to,
                    uint64_t first, uint64_t last, bool written);

#endif
