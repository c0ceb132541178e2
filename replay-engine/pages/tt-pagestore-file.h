/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files of a page store, as opening and writing see them.
 */
#ifndef TT_PAGESTORE_FILE_H
#define TT_PAGESTORE_FILE_H

#include "tt-pagejournal.h"
#include "tt-pagestore-int.h"

struct TtStoreFile {
    TtIo *pages_io, *journal_io;
    TtPageFile *pages;
    TtPageJournal *journal;
    bool is_writable;
    bool is_behind;             /* the journal must be made anew */
    bool said;                  /* that it is behind */
    bool no_cleaning;           /* something there cannot be read */
    uint64_t max_bytes;         /* of both files, 0: no cap */
    void (*origin_free)(void *origin_opaque);
    void *origin_opaque;
    GPtrArray *pending;         /* of TtPendingOp, in order */
    uint64_t dead_bytes;        /* of the journal: no use any more */
    uint64_t torn_bytes, n_lost;
    TtDiag read_error;          /* status TT_OK: none */
    TtDiag damage[2];           /* of pages, of checkpoints; TT_OK: none */
};

/* A store on the files of @opt; they are the store's from now on. */
TtPageStore *tt_storefile_new(const TtPageStoreOptions *opt);
/* Reads pages and journal into a new store. */
TtStatus tt_storefile_load(TtPageStore *ps, const TtPageStoreOptions *opt,
                           TtDiag *diag);
/* Records of the nodes as they are, if the journal were made anew. */
uint64_t tt_storefile_journal_live(const TtPageStore *ps);
/* Gives back what nobody needs. Nothing is pending (W3). */
TtStatus tt_storefile_give_back(TtPageStore *ps, TtDiag *diag);

#endif
