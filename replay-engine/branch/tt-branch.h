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

#endif
