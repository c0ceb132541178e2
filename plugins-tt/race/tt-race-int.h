/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The race finder's memory of what was accessed, and of the races: between its files.
 *
 * Invariants:
 *   I1  The vars of a cell are sorted by their first byte and do not overlap.
 *   I2  A var of a synchronisation has no stamps; its wide has the clocks of the write
 *       that is read there.
 *   I3  A var has a wide if it is a synchronisation or was read by several vCPUs
 *       (reader == BY_SEVERAL), and no other.
 *   I4  bytes is the sum of what all pages have allocated.
 */
#ifndef TT_RACE_INT_H
#define TT_RACE_INT_H

#include "plugins-tt/race/tt-race.h"

#include <glib.h>

#define N_MAX       TT_RACE_VCPUS_MAX
#define CELL        8
#define CELLS       (TT_RACE_PAGE / CELL)
#define CACHE_SIZE  1024u
#define BY_SEVERAL  0xff

typedef struct Clocks {
    uint32_t of[N_MAX];
} Clocks;

static inline void clocks_join(uint32_t *to, const uint32_t *from)
{
    for (unsigned i = 0; i < N_MAX; i++) {
        to[i] = MAX(to[i], from[i]);
    }
}

/* An access; clock 0: none. */
typedef struct Stamp {
    uint64_t position;
    uint32_t clock, place;
} Stamp;

/* Bytes of a cell that were always used together. 0 is no var: a page begins with one
 * that is not used. */
typedef struct Var {
    Stamp write, read;          /* the last of each; read, of one vCPU */
    uint8_t first, len;         /* bytes of the cell */
    uint8_t writer, reader;     /* vCPUs, or BY_SEVERAL */
    uint16_t next, wide, cell;  /* of the page; next of the cell */
    bool is_sync, has_example;  /* a pair's first race was here */
    bool is_flag;               /* this access makes it a synchronisation */
} Var;

typedef union Wide {
    uint32_t clock[N_MAX];      /* of a synchronisation */
    Stamp read[N_MAX];          /* of those that read since the last write */
    uint16_t next_free;
} Wide;

typedef struct Page {
    uint64_t number;
    Var *vars;
    Wide *wides;                /* the first is not used */
    uint16_t n_vars, max_vars, n_wides, max_wides, free_wide;
    bool was_used;              /* since the hand came past */
    uint16_t cells[CELLS];      /* the first var, or 0 */
} Page;

typedef struct Shadow {
    GHashTable *pages;          /* number -> Page */
    GHashTable *left;           /* number -> Clocks: of synchronisations that were forgotten */
    Clocks left_by_all;         /* of those that @left has no room for */
    GPtrArray *ring;            /* the same, for the hand */
    guint hand;
    Page *cache[CACHE_SIZE];
    size_t bytes, max_bytes, peak_bytes;
    uint64_t forgotten;
} Shadow;

void tt_race_shadow_init(Shadow *s, size_t max_bytes);
void tt_race_shadow_clear(Shadow *s);           /* forgets all */
void tt_race_shadow_cleanup(Shadow *s);
/* Makes it if need be; others may be forgotten. */
Page *tt_race_shadow_page(Shadow *s, uint64_t number);
/* Joins to @clock what forgotten synchronisations of this page had: which bytes they were
 * is not known any more. */
void tt_race_shadow_join_left(const Shadow *s, uint64_t number, uint32_t clock[N_MAX]);
/* The vars for just these bytes of the page, in *@list, ascending. Returns how many.
 * Others are made and cut as it takes. */
unsigned tt_race_shadow_vars(Shadow *s, Page *p, unsigned offset, unsigned size,
                             uint16_t list[TT_RACE_ACCESS_MAX]);
/* A wide of zeros for @v, which has none; moves all wides of the page. */
void tt_race_shadow_widen(Shadow *s, Page *p, Var *v);
void tt_race_shadow_narrow(Page *p, Var *v);    /* it has one no more */

typedef struct Pairs {
    GHashTable *by_places;      /* two places -> index + 1 */
    GArray *all;                /* of Pair */
    unsigned max;
    uint64_t races, not_kept;
    uint64_t left_out;          /* the last access that was not kept */
} Pairs;

void tt_race_pairs_init(Pairs *p, unsigned max);
void tt_race_pairs_cleanup(Pairs *p);
/* @access: a number of the later access. True: these bytes are of the first race of these
 * places. */
bool tt_race_pairs_add(Pairs *p, uint64_t access, uint64_t addr, uint64_t len,
                       const TtRaceSide *earlier, const TtRaceSide *later);
/* These bytes are a synchronisation now. */
void tt_race_pairs_note(Pairs *p, uint64_t addr, uint64_t len);
const TtRacePair *tt_race_pairs_at(const Pairs *p, size_t i);

#endif
