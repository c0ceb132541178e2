/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two files of a page store: what is pending, what was written, and where.
 * It knows the nodes through their map, and not the store.
 *
 * Context: one thread at a time. Blocks in TtIo. Private to the page store. In
 * the functions that say so a file of NULL means: in memory only.
 */
#ifndef TT_STOREFILE_H
#define TT_STOREFILE_H

#include "tt-pagefile.h"
#include "tt-pagejournal.h"
#include "tt-pagenode.h"

typedef struct TtNamed {
    uint32_t page;
    TtVersion version;
} TtNamed;

/* The record that will be written: noted before the operation, since it may fail. */
typedef struct TtPendingOp {
    uint32_t kind, id, flags;
    uint64_t pos, host_ns;
    size_t n;                   /* W3: one reference on each */
    TtNamed *named;
    TtBlob *blob;
} TtPendingOp;

typedef struct TtStoreFile {
    TtPageMap *map;             /* borrowed */
    TtIo *pages_io, *journal_io;
    TtPageFile *pages;
    TtPageJournal *journal;
    bool is_writable;
    bool is_behind;             /* the journal must be made anew */
    bool said;                  /* that the journal is behind */
    bool no_cleaning;           /* something there cannot be read */
    uint64_t max_bytes;         /* of both files, 0: no cap */
    void (*origin_free)(void *origin_opaque);
    void *origin_opaque;
    GPtrArray *pending;         /* of TtPendingOp, in order */
    uint64_t dead_bytes;        /* of the journal: no use any more */
    uint64_t torn_bytes, n_lost;
    TtDiag read_error;          /* status TT_OK: none */
    TtDiag damage[2];           /* of pages, of checkpoints; TT_OK: none */
} TtStoreFile;

/* On the files of @opt, which are its own from now on; @map is borrowed. */
TtStoreFile *tt_storefile_new(TtPageMap *map, const TtPageStoreOptions *opt);

/* ---- what the store notes; @f may be NULL ---- */

/* False: memory is short. *@op is NULL when nothing is to be written. */
bool tt_storefile_prepare_add(TtStoreFile *f, const TtNode *node,
                              TtPendingOp **op);
void tt_storefile_commit(TtStoreFile *f, const TtNode *node, TtPendingOp *op);
void tt_storefile_cancel(TtStoreFile *f, TtPendingOp *op);
void tt_storefile_note_delete(TtStoreFile *f, const TtNode *node);
void tt_storefile_note_flags(TtStoreFile *f, const TtNode *node);
void tt_storefile_pending_clear(TtStoreFile *f);
void tt_storefile_stats(const TtStoreFile *f, TtPageStoreStats *st);
void tt_storefile_free(TtStoreFile *f);
/* For tests: every reference that pending operations hold. */
void tt_storefile_each_ref(const TtStoreFile *f,
                           void (*ref)(void *opaque, TtVersion v),
                           void *opaque);

/* ---- questions ---- */

/* Bytes of @node's blob, on disk or not: *@bytes is the caller's, g_free; NULL
 * when there is none. @f may be NULL. */
TtStatus tt_storefile_node_blob(TtStoreFile *f, const TtNode *node,
                                void **bytes, size_t *len, TtDiag *diag);
/* Records of the nodes as they are, if the journal were made anew. */
uint64_t tt_storefile_journal_live(const TtStoreFile *f);

/* ---- writing: see tt-pagestore.h ---- */

TtStatus tt_storefile_flush(TtStoreFile *f, TtDiag *diag);
TtStatus tt_storefile_export(TtStoreFile *f, TtIo *to, const uint8_t uuid[16],
                             TtPageStrip strip, TtDiag *diag);

/* ---- space: see tt-pagestore.h ---- */

/* Gives back what nobody needs. Nothing is pending (W3). */
TtStatus tt_storefile_give_back(TtStoreFile *f, TtDiag *diag);
bool tt_storefile_wants_thinning(const TtStoreFile *f, uint64_t bytes);
TtStatus tt_storefile_make_room(TtStoreFile *f, uint64_t bytes, TtDiag *diag);
void tt_storefile_renew(TtStoreFile *f, uint64_t least);
TtStatus tt_storefile_sync(TtStoreFile *f, TtDiag *diag);

#endif
