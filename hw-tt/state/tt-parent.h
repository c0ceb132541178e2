/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The run that a branch began in: opened for reading only, also while its recorder still
 * writes. BQL held; may block on files.
 */
#ifndef TT_PARENT_H
#define TT_PARENT_H

#include "hw-tt/memory/tt-block.h"
#include "io/tt-base.h"
#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"
#include "run/tt-cpstate.h"
#include "run/tt-manifest.h"

typedef struct TtParent {
    char *dir;                  /* absolute */
    TtManifest manifest;
    TtPageStore *store;
    TtCheckpointInfo info;      /* of the chosen checkpoint */
    void *blob;
    TtCpState state;            /* points into blob */
} TtParent;

/* Manifest and store of the run in @dir. NULL: *errp says why not. */
TtParent *tt_parent_open(const char *dir, Error **errp);
void tt_parent_close(TtParent *p);
/* Checkpoint @id is the one that is meant. */
bool tt_parent_choose(TtParent *p, uint32_t id, Error **errp);
/* The full checkpoint that the user means: ID, @NAME or @MARK. */
bool tt_parent_find(TtParent *p, const char *at, Error **errp);
/* The one that run @m in @dir began with. */
TtParent *tt_parent_of(const TtManifest *m, const char *dir, Error **errp);

/*
 * tt_parent_read: a RAM block as it is in the checkpoint
 * @put is called for its pages that are not zero, ascending, with their numbers
 * from 0 in the block.
 * TT_END: the checkpoint has no such block (or one of another size).
 */
TtStatus tt_parent_read(TtParent *p, const char *block, uint64_t size_bytes,
                        TtPagePut put, void *opaque);
/* @host becomes that block. Errors of reading; TT_END: it became zeros. */
TtStatus tt_parent_fill(TtParent *p, const char *block, uint64_t size_bytes,
                        uint8_t *host);
/* Bitmap of the pages of @b that are not as in the checkpoint; NULL: there is
 * no such block, or it cannot be read. g_free. */
unsigned long *tt_parent_compare(TtParent *p, const TtBlock *b);

#endif
