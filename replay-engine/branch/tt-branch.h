/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Branches: a new run that begins at a full checkpoint of another.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_BRANCH_H
#define TT_BRANCH_H

/* Once, at start: goes along with the recording that a branch is. */
void tt_branch_init(void);
/* What the option says; @dir: the run to start in. */
void tt_branch_option(const char *dir, const char *at, bool is_forced);
bool tt_is_branch(void);
/* All options are read; no device or disk is there yet. */
bool tt_branch_open(Error **errp);

/*
 * In a process whose machine exists already. choose: full checkpoint @id of the run in
 * @dir is meant; false: it does not fit, and nothing has changed. Then, with the VM
 * stopped and no recording: note_parent, in the manifest of the run that begins; load,
 * when it has its directory: disks, RAM, devices. False, with *@has_changed: the VM cannot
 * go on. A recording that starts ends it all, or drop does.
 */
bool tt_branch_choose(const char *dir, uint32_t id, Error **errp);
uint64_t tt_branch_pos(void);               /* of that checkpoint */
void tt_branch_note_parent(void);
bool tt_branch_load(bool *has_changed, Error **errp);
void tt_branch_drop(void);

#endif
