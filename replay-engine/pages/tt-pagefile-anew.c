/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RUN/pages made anew: the live versions are copied into a file that takes the name of
 * the old one (P7), for a store with a cap. Holes would give the space back as well,
 * but each leaves a block or two, and the length of the file stays.
 */
#include "tt-pagefile-int.h"

#include <string.h>

void tt_pagefile_limit(TtPageFile *pf, uint64_t bytes)
{
    pf->max_bytes = bytes;
}

TtStatus tt_pagefile_anew_begin(TtPageFile *pf, TtPageFile **fresh,
                                TtDiag *diag)
{
    TtIo *io;
    TtStatus st;

    *fresh = NULL;
    if (!pf->io->ops->replace_begin) {
        return tt_fail(diag, TT_ERR_INVALID,
                       "pages: the file cannot be replaced");
    }
    st = pf->io->ops->replace_begin(pf->io, &io, diag);
    if (st != TT_OK) {
        return st;
    }
    *fresh = tt_pagefile_new(io, pf->uuid);
    (*fresh)->n_versions = pf->n_versions;
    st = tt_page_head_write(io, TT_F_PAGES_MAGIC, pf->uuid, pf->n_versions,
                            diag);
    if (st == TT_OK) {
        st = tt_pagefile_begin(*fresh, true, diag);
    }
    if (st != TT_OK) {
        tt_pagefile_anew_abort(*fresh);
        *fresh = NULL;
    }
    return st;
}

TtStatus tt_pagefile_anew_put(TtPageFile *pf, TtPageFile *fresh,
                              const TtPlace *from, TtPlace *places, unsigned n,
                              TtDiag *diag)
{
    TtStatus st = TT_OK;

    g_assert(n && n <= TT_F_GROUP_PAGES_MAX);
    st = tt_pagefile_begin(fresh, true, diag);
    for (unsigned i = 0; i < n && st == TT_OK; i++) {
        st = tt_pagefile_take_copy(fresh, pf, &from[i], diag);
    }
    if (st == TT_OK) {
        st = tt_pagefile_commit(fresh, diag);
    }
    for (unsigned i = 0; i < n && st == TT_OK; i++) {
        places[i] = tt_pagefile_placed(fresh, i);
    }
    return st;
}

TtStatus tt_pagefile_anew_end(TtPageFile *pf, TtPageFile *fresh,
                              TtDiag *diag)
{
    TtStatus st = pf->io->ops->replace_commit(pf->io, fresh->io, diag);
    GArray *groups = pf->groups;

    fresh->io = NULL;
    if (st == TT_OK) {
        pf->groups = fresh->groups;
        fresh->groups = groups;
        pf->n_groups = fresh->n_groups;
        pf->end = fresh->end;
        pf->stored_bytes = fresh->stored_bytes;
        pf->live_bytes = fresh->live_bytes;
        pf->n_inherited = fresh->n_inherited;
        pf->n_before = pf->n_versions;
        pf->n_garbage = 0;
        pf->is_broken = false;          /* the broken one is gone */
        pf->window_bytes = 0;
    }
    tt_pagefile_free(fresh);
    return st;
}

void tt_pagefile_anew_abort(TtPageFile *fresh)
{
    tt_io_close(fresh->io);
    tt_pagefile_free(fresh);
}
