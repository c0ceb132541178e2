/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A place: where a vCPU stood that was made to leave guest code between two exits.
 * KVM cannot say how many instructions ran, so the place is described by what the
 * machine was like there: registers, and the pages that were written since the place
 * before it. A replay starts in the same state and runs the same instructions, so
 * the first moment at which all of it is equal is the place, or one with the same
 * future ("landmark", docs/decisions/0019).
 *
 * The bytes are the data of TT_EV_PLACE (docs/reference/log-format.rst). Any thread;
 * no allocation.
 */
#ifndef TT_PLACE_H
#define TT_PLACE_H

#include "io/tt-base.h"

#define TT_PLACE_REGS      16
#define TT_PLACE_PAGES_MAX 3000     /* with more, all of RAM is compared */
#define TT_PLACE_SYSTEM    20
#define TT_PLACE_HEAD      (8 * (TT_PLACE_REGS + TT_PLACE_SYSTEM + 3) + 4)
#define TT_PLACE_PAGE      20
#define TT_PLACE_BYTES_MAX (TT_PLACE_HEAD + TT_PLACE_PAGE * TT_PLACE_PAGES_MAX)
#define TT_PLACE_WHOLE_RAM UINT32_MAX   /* in place of the number of pages */

typedef struct TtPlace {
    uint64_t pc, flags;         /* flags: those that the guest can read */
    uint64_t regs[TT_PLACE_REGS];
    uint64_t system[TT_PLACE_SYSTEM];   /* the target's: control registers... */
    uint64_t fpu_hash;          /* x87 and SSE registers */
    uint32_t n_pages;           /* or TT_PLACE_WHOLE_RAM */
    uint64_t ram_digest;        /* with that */
    const uint8_t *pages;       /* in the event's data: see tt_place_page */
} TtPlace;

typedef struct TtPlacePage {
    uint32_t page;              /* its number in the run */
    uint64_t hash;              /* of its bytes */
    uint64_t table_hash;        /* the same without accessed and dirty bits, as if it
                                   were a page table of x86's */
} TtPlacePage;

/* Page @i of a decoded place. */
TtPlacePage tt_place_page(const TtPlace *p, uint32_t i);
/* Hashes the 4096 bytes at @bytes. */
void tt_place_hash(TtPlacePage *page, const void *bytes);

/* Fills the first TT_PLACE_HEAD bytes of @out; the pages follow. */
void tt_place_put_head(const TtPlace *p, uint8_t *out);
void tt_place_put_page(uint8_t *out, uint32_t i, const TtPlacePage *page);
size_t tt_place_bytes(uint32_t n_pages);

/* False: these bytes are no place. @p->pages points into @data. */
bool tt_place_decode(TtPlace *p, const uint8_t *data, size_t len);

#endif
