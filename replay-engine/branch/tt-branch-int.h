/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the two halves of a branch's start share. Main thread, BQL held. */
#ifndef TT_BRANCH_INT_H
#define TT_BRANCH_INT_H

#include "hw-tt/state/tt-parent.h"
#include "run/tt-fullstate.h"

/* The disks of the checkpoint that the branch starts at, and the run it is of; NULL:
 * this is no branch. */
const TtFullDesc *tt_branch_disks_wanted(const char **parent_dir);
bool tt_branch_is_forced(void);         /* images may have changed */
/* The branch did not begin: removes what was made for its disks. */
void tt_branch_discard_disks(void);
/* The same in a process that recorded until now: can @d, of the run in @dir, come back? */
bool tt_branch_disks_fit(const TtFullDesc *d, const char *dir, Error **errp);
/* Does the parent still have the versions of the checkpoint? */
bool tt_branch_check_versions(Error **errp);
/* After the machine was made: are the disks those of the checkpoint? */
bool tt_branch_check_disks(Error **errp);
/* After the machine was made: are its RAM blocks those of the checkpoint of @parent, the run
 * in @dir? One that may have another size gets it. */
bool tt_branch_check_blocks(const TtParent *parent, const char *dir, Error **errp);
/* Gives the VM the frames that were on their way to it at the checkpoint @name, at @pos, of
 * the run in @dir, if that is one of a group. What cannot be is said. */
void tt_branch_take_frames(const char *dir, const char *name, uint64_t pos);

#endif
