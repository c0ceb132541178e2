/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which full checkpoint of a run is meant, where a branch is to start.
 *
 * Context: any thread. Blocks on files; changes none.
 */
#ifndef TT_RUNFULL_H
#define TT_RUNFULL_H

#include "pages/tt-pagestore.h"

/*
 * tt_runfull_find: the full checkpoint @at of the run in @dir, whose checkpoints are @store
 * @at is the number of a checkpoint, or @NAME, of a full one or of a mark. Another kind of
 * checkpoint and a mark stand for their position, at which there must be a full one.
 * TT_ERR_INVALID: @diag says why there is none, and which one is nearest.
 */
TtStatus tt_runfull_find(const char *dir, TtPageStore *store, const char *at, uint32_t *id,
                         TtDiag *diag);

#endif
