/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The steps of a plan, carried out with a TtIo: for tools, tests and whoever has no event
 * loop. The block driver has its own way.
 */
#include "block-tt/tt-blockmap-int.h"

TtStatus tt_block_step_io(const TtBlockStep *s, TtIo *io, TtDiag *diag)
{
    uint64_t size = 0;
    TtStatus st;

    switch (s->kind) {
    case TT_BLOCK_WRITE:
        return io->ops->write_at(io, s->offset, s->data, s->len, diag);
    case TT_BLOCK_SYNC:
        return io->ops->sync(io, diag);
    case TT_BLOCK_GROW:
        break;
    }
    st = io->ops->size(io, &size, diag);
    return st == TT_OK && size < s->offset ?
        io->ops->write_at(io, s->offset - 1, "", 1, diag) : st;
}

/* Status of the step that failed; *@again: tt_blockmap_commit_stop says so. */
static TtStatus commit_once(TtBlockMap *bm, TtIo *io, bool *again, TtDiag *diag)
{
    TtBlockPlan plan;
    TtStatus st = tt_blockmap_commit_begin(bm, &plan, diag);

    if (st != TT_OK) {
        return st;
    }
    for (unsigned i = 0; i < plan.n; i++) {
        st = tt_block_step_io(&plan.step[i], io, diag);
        if (st != TT_OK) {
            *again = tt_blockmap_commit_stop(bm, &plan, i);
            return st;
        }
    }
    if (plan.after.len) {
        (void)io->ops->write_at(io, plan.after.offset, plan.after.data, plan.after.len,
                                NULL);
    }
    tt_blockmap_commit_end(bm, true);
    return TT_OK;
}

TtStatus tt_blockmap_commit(TtBlockMap *bm, TtIo *io, TtDiag *diag)
{
    bool again = false;
    TtStatus st = commit_once(bm, io, &again, diag);

    return again ? commit_once(bm, io, &again, diag) : st;
}
