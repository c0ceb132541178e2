/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Branches: a new run that begins at a full checkpoint of another.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_BRANCH_H
#define TT_BRANCH_H

#include "hw-tt/memory/tt-block.h"

/* What the option says; @dir: the run to start in. */
void tt_branch_option(const char *dir, const char *at, bool is_forced);
bool tt_is_branch(void);
/* All options are read; no device or disk is there yet. */
bool tt_branch_open(Error **errp);
/* Recording starts: pages of @b that are not as in the parent's checkpoint (g_free);
 * NULL: it has no such block, or this is no branch. */
unsigned long *tt_branch_compare(const TtBlock *b);
void tt_branch_begun(void);             /* ... has started */

/* Nothing of a branch that did not begin is left; of any other recording, or again, nothing. */
void tt_branch_discard(void);

#endif
