/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lender: pages that the store of a branch's checkpoints need not keep, since
 * the checkpoint that the branch began with has them (TTVM 3.6; rule P8 of the
 * page store's format). The parent's files are opened when the first page is
 * asked for, and once more when its recorder has moved pages since.
 *
 * Context: one thread at a time, any; no lock of QEMU's. Blocks on files.
 */
#ifndef TT_LENDER_H
#define TT_LENDER_H

#include "tt/engine.h"
#include "tt/pagestore.h"

typedef struct TtLender TtLender;

/*
 * For run @m in @dir, both borrowed while the lender lives; NULL when that is no
 * branch. @depth: of the chain of branches that ask, 0 for the first.
 * @only_base: lends pages of the checkpoint that the run began with alone, which
 * lives as long as the branch can be replayed: what a writer may rely on.
 */
TtLender *tt_lender_new(const TtManifest *m, const char *dir, unsigned depth,
                        bool only_base);
void tt_lender_free(TtLender *l);
/* A TtPageLend; @opaque: the lender. */
TtStatus tt_lender_lend(void *opaque, const uint64_t hash[2], void *to,
                        TtDiag *diag);

#endif
