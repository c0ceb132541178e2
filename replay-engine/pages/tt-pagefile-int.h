/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Insides of RUN/pages, for reading, opening and writing it.
 */
#ifndef TT_PAGEFILE_INT_H
#define TT_PAGEFILE_INT_H

#include "tt-pagefile.h"

#include <glib.h>
#include <zstd.h>

/* One group of the file. n_live and live_bytes count versions in use. */
typedef struct TtPageGroup {
    uint64_t offset;
    uint32_t data_at;           /* from offset: header and table */
    uint32_t stored;            /* page data; 0 once given back */
    uint32_t live_bytes;
    uint16_t header_bytes;
    uint16_t n_live;
    bool is_gone;               /* given back, or damaged */
    bool is_picked;
} TtPageGroup;

/* A version as the tables have it, while opening. */
typedef struct TtPageEntry {
    uint64_t offset;            /* 0: gone */
    uint64_t hash[2];
    uint32_t mark;              /* the caller's */
    uint16_t len;
} TtPageEntry;

/* The group that is being written. */
typedef struct TtPageDraft {
    uint64_t id[TT_F_GROUP_PAGES_MAX];
    uint64_t hash[TT_F_GROUP_PAGES_MAX][2];
    uint32_t at[TT_F_GROUP_PAGES_MAX];      /* in the page data */
    uint16_t len[TT_F_GROUP_PAGES_MAX];
    unsigned n;
    bool is_copies, has_inherited;
    uint32_t n_bytes;                       /* of page data */
    uint64_t data_at;                       /* in the file, after commit */
    /* header and table end where the page data begins */
    uint8_t front[TT_F_GROUP_BYTES + TT_F_TABLE_BYTES_MAX];
    uint8_t data[TT_F_GROUP_PAGES_MAX * TT_PAGE_BYTES];
} TtPageDraft;

#define TT_PAGE_WINDOW_BYTES    65536u

struct TtPageFile {
    TtIo *io;
    TtPageOrigin origin;
    void *origin_opaque;
    uint8_t uuid[16];
    uint64_t seed;
    uint64_t max_bytes;         /* see tt_pagefile_limit; 0: none */
    GArray *groups;             /* of TtPageGroup, by offset */
    uint64_t n_groups;          /* numbers given out */
    uint64_t end;               /* of the last whole group */
    uint64_t n_versions;        /* numbers given out */
    uint64_t n_before;          /* of those, before the file was made anew */
    uint64_t stored_bytes, live_bytes, torn_bytes, n_damaged;
    TtDiag damage, table_damage;    /* status TT_OK: none */
    uint64_t n_inherited;            /* versions in use that lie elsewhere (P8) */
    uint64_t n_garbage;         /* groups that could be given back */
    /* While opening: by number - n_before - 1; of those before, by number. */
    TtPageEntry *entry;
    uint64_t cap_entries;
    GHashTable *before;         /* number -> TtPageEntry */
    bool is_broken, no_holes;
    ZSTD_CCtx *cctx;
    ZSTD_DCtx *dctx;
    TtPageDraft *draft;
    /* The part that was read last, and what may be read next from it. */
    uint64_t window_at, window_bytes, next_read;
    uint8_t window[TT_PAGE_WINDOW_BYTES];
};

/*
 * The stored bytes of @place, from the window or by a read: valid until the
 * next one. TT_ERR_FORMAT: the file is shorter than that.
 */
TtStatus tt_pagefile_read_stored(TtPageFile *pf, const TtPlace *place,
                                 const uint8_t **bytes, TtDiag *diag);
/* tt_pagefile_put_copy of what lies in another file. */
TtStatus tt_pagefile_take_copy(TtPageFile *pf, TtPageFile *source,
                               const TtPlace *from, TtDiag *diag);
/* Of an open file, or of a new one. */
TtPageFile *tt_pagefile_new(TtIo *io, const uint8_t uuid[16]);

#endif
