/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the two halves of a branch's start share. Main thread, BQL held. */
#ifndef TT_BRANCH_H
#define TT_BRANCH_H

#include "tt/engine.h"
#include "tt/fullstate.h"

/* The disks of the checkpoint that the branch starts at, and its run; NULL:
 * this is no branch. */
const TtFullDesc *tt_branch_disks_wanted(const char **parent_dir);
bool tt_branch_is_forced(void);         /* images may have changed */
/* Nothing of them is left: the branch did not begin. */
void tt_branch_discard_disks(void);
/* The same, and its directory; of any other recording, or again, nothing. */
void tt_branch_discard(void);
/* After the machine was made: the disks are those. */
bool tt_branch_check_disks(Error **errp);

#endif
