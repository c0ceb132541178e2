/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Comparing the VM with a checkpoint.
 *
 * Context: the vCPU thread, BQL held, between two instructions and outside of a
 * movement.
 */
#ifndef TT_VERIFY_COMPARE_INT_H
#define TT_VERIFY_COMPARE_INT_H

#include "session/tt-checkpoint.h"
#include "tt-verify-say-int.h"

#define TT_VERIFY_PAGES 8       /* shown of those that differ */

typedef struct TtVerifyFound {
    uint64_t n_pages;           /* that differ; the first of them: */
    TtDiffering pages[TT_VERIFY_PAGES];
    TtVerifyReg reg;            /* a register that does */
} TtVerifyFound;

/* The VM stands where @p does: is it as @p says? It is, afterwards. False: @p
 * cannot be used. */
bool tt_verify_compare(const TtCheckpointDesc *p, TtVerifyFound *f, bool *same);
/* The VM becomes that of @p. A damaged log ends the interval, and does not stop the
 * VM. False: it did not. */
bool tt_verify_restore(const TtCheckpointDesc *p);
bool tt_verify_is_restoring(void);
/* A TtPagePut: the page of the checkpoint goes into @opaque, a TtVerifyFound, if it
 * differs from RAM. */
void tt_verify_note_page(void *opaque, uint64_t page, const void *bytes);

#endif
