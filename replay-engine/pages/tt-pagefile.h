/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RUN/pages: page versions in groups, appended and read one by one.
 * docs/reference/page-store-format.rst is the authority; P-numbers are its
 * rules. This module knows places, not what the versions are for.
 *
 * Context: one thread at a time. Blocks only in TtIo. Private to the page store.
 * Memory: what a scan keeps (36 bytes a version, until tt_pagefile_scan_done),
 * 40 bytes a group, and 2.2 MiB once something is written.
 */
#ifndef TT_PAGEFILE_H
#define TT_PAGEFILE_H

#include "io/tt-io.h"
#include "tt-pagehead.h"
#include "tt-pagepool.h"

/* ---- group ---- */
#define TT_F_GROUP_MAGIC        "TTVMGRP\n"
#define TT_F_GROUP_BYTES        64u
#define TT_F_GROUP_BYTES_MAX    4096u
#define TT_F_GROUP_PAGES_MAX    512u
enum {
    TT_F_GROUP_LENGTH = 8,
    TT_F_GROUP_FLAGS = 12,
    TT_F_GROUP_SEQ = 16,
    TT_F_GROUP_FIRST = 24,
    TT_F_GROUP_COUNT = 32,
    TT_F_GROUP_STORED = 36,
    TT_F_GROUP_TABLE_SUM = 40,
    TT_F_GROUP_SUM = 56,
};
#define TT_F_GROUP_COPIES       1u
#define TT_F_GROUP_INHERITED    2u      /* versions without bytes may be in it */
#define TT_F_GROUP_MUST_KNOW    0xffffu
#define TT_F_ENTRY_BYTES        18u     /* and 8 more in front, of a copy */
#define TT_F_TABLE_BYTES_MAX    (TT_F_GROUP_PAGES_MAX * (TT_F_ENTRY_BYTES + 8))
#define TT_F_TAIL_BYTES_MAX     (TT_F_GROUP_BYTES_MAX + TT_F_TABLE_BYTES_MAX + \
                                 TT_F_GROUP_PAGES_MAX * TT_PAGE_BYTES)
#define TT_F_VERSIONS_MAX       (UINT32_MAX / 2)

typedef struct TtPageFile TtPageFile;

typedef struct TtPageFileStats {
    uint64_t file_bytes;        /* its length; holes count */
    uint64_t stored_bytes;      /* page data not given back */
    uint64_t live_bytes;        /* of those, of versions in use */
    uint64_t torn_bytes;        /* ignored at the end, when it was opened */
    uint64_t n_versions;        /* numbers given out */
    uint64_t n_inherited;            /* in use, and bytes elsewhere (P8) */
    uint64_t n_damaged_groups;
} TtPageFileStats;

/* @io is borrowed. It is empty; a head is written. */
TtStatus tt_pagefile_create(TtIo *io, const uint8_t uuid[16],
                            TtPageFile **out, TtDiag *diag);
/* Reads all tables. @is_writable: a torn tail is cut off (P3). */
TtStatus tt_pagefile_open(TtIo *io, const uint8_t uuid[16], bool is_writable,
                          TtPageFile **out, TtDiag *diag);
void tt_pagefile_free(TtPageFile *pf);
/* What @origin has is written without its bytes, and read from there (P8). */
void tt_pagefile_set_origin(TtPageFile *pf, TtPageOrigin origin, void *opaque);

/* The fault at the end of the file, found when it was opened; NULL: it is where its
 * writer ended, or was cut off. */
const TtDiag *tt_pagefile_damage(const TtPageFile *pf);

/* While opening: where version @id lies, and a number beside it for the caller,
 * 0 at first. NULL: it was never given out. A version that is gone (P4) has the
 * offset 0. */
uint32_t *tt_pagefile_find(TtPageFile *pf, uint64_t id, TtPlace *place);
void tt_pagefile_scan_done(TtPageFile *pf);

/* A version at @place came into use, or is used no more. No I/O. */
void tt_pagefile_use(TtPageFile *pf, const TtPlace *place);
void tt_pagefile_disuse(TtPageFile *pf, const TtPlace *place);

/* Reads a page, and checks it (P5). @to: a page. */
TtStatus tt_pagefile_load(TtPageFile *pf, const TtPlace *place, void *to,
                          TtDiag *diag);

/*
 * Writing a group: begin, put up to TT_F_GROUP_PAGES_MAX pages, commit. After
 * TT_OK tt_pagefile_placed says where each lies, all in use. After a failure
 * nothing changed, and the same can be tried again unless tt_pagefile_broken.
 */
TtStatus tt_pagefile_begin(TtPageFile *pf, bool is_copies, TtDiag *diag);
/* A new page with its hash. */
void tt_pagefile_put(TtPageFile *pf, const void *page, const uint64_t hash[2]);
/* A copy of what lies elsewhere in the file; ids ascend. */
TtStatus tt_pagefile_put_copy(TtPageFile *pf, const TtPlace *from,
                              TtDiag *diag);
unsigned tt_pagefile_count(const TtPageFile *pf);
TtStatus tt_pagefile_commit(TtPageFile *pf, TtDiag *diag);
TtPlace tt_pagefile_placed(const TtPageFile *pf, unsigned index);
bool tt_pagefile_broken(const TtPageFile *pf);

/*
 * A cap: a group is not written (TT_ERR_LIMIT) if the file and a copy of all that
 * lives in it would then take more than @bytes. 0: none. With a cap nothing is
 * cleaned group by group; the caller makes the file anew.
 */
void tt_pagefile_limit(TtPageFile *pf, uint64_t bytes);
/* The bytes that the file would have if it were made anew. */
uint64_t tt_pagefile_live_bytes(const TtPageFile *pf);
/*
 * The file anew: begin, put the places of all versions in use with ascending
 * ids, end. Where the i-th lies now is in @places[i] after the end. A failure
 * changes nothing; after one of put, call end no more.
 */
TtStatus tt_pagefile_anew_begin(TtPageFile *pf, TtPageFile **fresh,
                                TtDiag *diag);
TtStatus tt_pagefile_anew_put(TtPageFile *pf, TtPageFile *fresh,
                              const TtPlace *from, TtPlace *places, unsigned n,
                              TtDiag *diag);
TtStatus tt_pagefile_anew_end(TtPageFile *pf, TtPageFile *fresh,
                              TtDiag *diag);
void tt_pagefile_anew_abort(TtPageFile *fresh);

/* Is there a group that nobody needs, and that was not given back? */
bool tt_pagefile_has_garbage(const TtPageFile *pf);
/* Gives those back. The caller has made sure of J6. */
TtStatus tt_pagefile_give_back(TtPageFile *pf, TtDiag *diag);
/* Is so much dead that groups should be emptied by copying what lives? */
bool tt_pagefile_wants_cleaning(const TtPageFile *pf);
/* Picks the groups that are best emptied next: as many as it takes, with at
 * most @room versions in use. Returns how many those are. */
unsigned tt_pagefile_pick(TtPageFile *pf, unsigned room);
/* Was the group of @place picked last? */
bool tt_pagefile_is_picked(const TtPageFile *pf, const TtPlace *place);

TtPageFileStats tt_pagefile_stats(const TtPageFile *pf);

#endif
