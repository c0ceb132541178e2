/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the parts of the page store and its users: limits, numbers of nodes,
 * callbacks, options and statistics. tt-pagestore.h explains the model.
 *
 * Types only: no function, no state, any thread.
 */
#ifndef TT_PAGE_H
#define TT_PAGE_H

#include "io/tt-base.h"
#include "io/tt-io.h"

#define TT_PAGE_BYTES           4096u
#define TT_PAGES_MAX            (1ull << 28)    /* 1 TiB of guest RAM */
#define TT_PAGESTORE_NODES_MAX  (1u << 20)
#define TT_PAGESTORE_BLOB_MAX   (64u << 20)

typedef uint32_t TtNodeId;                  /* never reused; 0 is "none" */

/* Fetches page @page of the current RAM; the pointer is read at once (and
 * must not change meanwhile). Called in ascending order of pages. */
typedef const void *(*TtPageFetch)(void *opaque, uint64_t page);
/* Puts one page into the current RAM; NULL @bytes means all zero. Called in
 * ascending order of pages. Must not call the store. */
typedef void (*TtPagePut)(void *opaque, uint64_t page, const void *bytes);

/*
 * TtPageOrigin: puts the page with this hash (XXH3-128: low, high), which another
 * store holds, into @to. TT_END: it has none. Called while pages are written or
 * read, by the thread that does that.
 */
typedef TtStatus (*TtPageOrigin)(void *opaque, const uint64_t hash[2], void *to,
                               TtDiag *diag);

typedef struct TtCheckpointMeta {
    uint32_t flags;
    uint64_t host_ns;           /* host time since the run began */
    const void *blob;           /* the caller's, copied; means nothing here */
    size_t blob_bytes;          /* at most TT_PAGESTORE_BLOB_MAX */
} TtCheckpointMeta;

/* Changes what goes along with an exported checkpoint: its blob (g_malloc'ed)
 * and its flags. */
typedef void (*TtPageStrip)(void **blob, size_t *len, uint32_t *flags);

/* ---- the files of a store, and what is in it ---- */

typedef struct TtPageStoreOptions {
    TtIo *pages, *checkpoints;  /* the store closes them, in any case */
    TtPageOrigin origin;        /* pages that this store need not keep; NULL:
                                   it keeps all of its own */
    void *origin_opaque;
    void (*origin_free)(void *origin_opaque);   /* with the store, or when that
                                   cannot be opened; NULL: nothing to free */
    uint8_t uuid[16];           /* of the run */
    uint64_t cache_bytes;       /* page bytes in memory beyond this are dropped
                                   as soon as they are on disk */
    uint64_t max_pages;         /* pages of the guest's RAM; bounds what a
                                   hostile file can ask for. No writer may have
                                   added more. 0: TT_PAGES_MAX */
    uint64_t max_bytes;         /* cap of both files together; 0: none */
    bool read_only;             /* what is added or deleted stays in memory */
} TtPageStoreOptions;

typedef struct TtPageStoreStats {
    uint64_t n_versions;        /* different contents, zero not counted */
    uint64_t raw_bytes;         /* of those, uncompressed */
    uint64_t live_bytes;        /* of those, on disk */
    uint64_t stored_bytes;      /* on disk, with what is dead */
    uint64_t pages_file_bytes;  /* length of the file; holes count */
    uint64_t journal_bytes;
    uint64_t cached_bytes, pending_bytes;   /* in memory; not on disk yet */
    uint64_t packed_bytes;                  /* in memory, compressed */
    uint64_t n_shared;          /* pages that were there already */
    uint64_t n_inherited;       /* versions whose bytes another store has */
    uint64_t n_loads, n_evicted;
    uint64_t torn_bytes;        /* ignored at the ends, when it was opened */
    uint64_t n_lost;            /* versions needed that damage took */
    bool is_behind;             /* a flush failed, and none succeeded since */
} TtPageStoreStats;

#endif
