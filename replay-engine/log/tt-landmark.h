/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A place: the state of a vCPU that was made to leave guest code between two exits. KVM
 * cannot say how many instructions ran, so the place is described by the machine's
 * state there: registers, and the pages that were written since the place before it. A
 * replay starts in the same state and runs the same instructions, so the first moment
 * at which all of it is equal is the place, or one with the same future ("landmark",
 * docs/decisions/0019).
 *
 * Where branches can be counted there is a count, too: it says which of the moments with
 * these registers it is, before anything is compared.
 *
 * The bytes are the data of TT_EV_LANDMARK (docs/reference/log-format.rst). Any thread;
 * no allocation.
 */
#ifndef TT_LANDMARK_H
#define TT_LANDMARK_H

#include "io/tt-base.h"

#define TT_LANDMARK_REGS      16
#define TT_LANDMARK_PAGES_MAX 3000     /* of one event: with more, the first ones stand in
                                         events of TT_EV_LANDMARK_PAGES before it */
#define TT_LANDMARK_SYSTEM    20
#define TT_LANDMARK_HEAD      (8 * (TT_LANDMARK_REGS + TT_LANDMARK_SYSTEM + 3) + 4)
#define TT_LANDMARK_PAGE      20
#define TT_LANDMARK_BYTES_MAX (TT_LANDMARK_HEAD + TT_LANDMARK_PAGE * TT_LANDMARK_PAGES_MAX)
/* In place of the number of pages: all of RAM is compared. Not written any more. */
#define TT_LANDMARK_WHOLE_RAM UINT32_MAX

typedef struct TtLandmark {
    uint64_t pc, flags;         /* flags: those that the guest can read */
    uint64_t regs[TT_LANDMARK_REGS];
    uint64_t system[TT_LANDMARK_SYSTEM];   /* the target's: control registers... */
    uint64_t fpu_hash;          /* x87 and SSE registers */
    uint32_t n_pages;           /* or TT_LANDMARK_WHOLE_RAM */
    uint64_t ram_digest;        /* with that */
    const uint8_t *pages;       /* in the event's data: see tt_landmark_page */
    bool has_branches;          /* not in the bytes: in an event before it */
    uint64_t branches;          /* executed since the last exact place */
} TtLandmark;

typedef struct TtLandmarkPage {
    uint32_t page;              /* its number in the run */
    uint64_t hash;              /* of its bytes */
    uint64_t table_hash;        /* the same without accessed and dirty bits, as if it
                                   were a page table of x86's, with entries of 4 or 8
                                   bytes */
} TtLandmarkPage;

/* Page @i of a decoded place. */
TtLandmarkPage tt_landmark_page(const TtLandmark *p, uint32_t i);
/* Hashes the 4096 bytes at @bytes. */
void tt_landmark_hash(TtLandmarkPage *page, const void *bytes);
/* Are these its 4096 bytes? In a page table, accessed and dirty bits do not count. Costs one
 * hash if nothing differs. */
bool tt_landmark_page_is(const TtLandmarkPage *page, const void *bytes, bool is_table);

/* Fills the first TT_LANDMARK_HEAD bytes of @out; the pages follow. */
void tt_landmark_put_head(const TtLandmark *p, uint8_t *out);
/* Page @i of those at @pages. */
void tt_landmark_put_page(uint8_t *pages, uint32_t i, const TtLandmarkPage *page);
size_t tt_landmark_bytes(uint32_t n_pages);

/* False: these bytes are no place. @p->pages points into @data. */
bool tt_landmark_decode(TtLandmark *p, const uint8_t *data, size_t len);

#endif
