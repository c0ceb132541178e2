/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Versions of disks whose checkpoint was deleted: no branch can begin there any more, so
 * they are deleted, too, and the space that only they needed is used again.
 *
 * Those of a branch that began there stay, and so do all of a run whose log names what
 * was read (disk-reads=store).
 *
 * With a cap (max-size), versions go before their checkpoints when they keep more than
 * that: it becomes one from which no branch can start.
 */
#ifndef TT_CPDISKS_H
#define TT_CPDISKS_H

#include "pages/tt-pagestore.h"

/* The checkpoint store's thread, or another one that has the store: checkpoint @id, or
 * all of them, are about to be deleted; one was not added. gone: the files on disk say
 * so. */
void tt_cpdisks_going(TtPageStore *store, TtNodeId id);
void tt_cpdisks_all_going(TtPageStore *store);
void tt_cpdisks_not_stored(const TtCheckpointMeta *meta);
bool tt_cpdisks_are_going(void);
/* A branch beside the run began at checkpoint @id: its replay needs that. Not asked of a
 * window's, which go all the same. Reads the manifests there. */
bool tt_cpdisks_has_branch(TtPageStore *store, TtNodeId id);
/* The user asked for it, or it has a branch. One of them, or any. */
bool tt_cpdisks_is_wanted(TtPageStore *store, const TtCheckpointInfo *info);
bool tt_cpdisks_has_wanted(TtPageStore *store);
/* What was let go since tt_cpdisks_has_branch was asked is let go on disk, too. */
void tt_cpdisks_decided(void);
/* Before a checkpoint is added to @store: if versions keep more than @max_bytes (not 0),
 * the oldest full checkpoints that nobody asked for become others; a flush is to follow.
 * So many of them stay full, with the one that is added. */
#define TT_CPDISKS_STAY 4
void tt_cpdisks_limit(TtPageStore *store, uint64_t max_bytes);
void tt_cpdisks_gone(void);
/* Any thread: what versions keep now. */
void tt_cpdisks_note(uint64_t kept_bytes);
/* Any thread: another run has the disks of this one, as they are up to @pos. */
void tt_cpdisks_are_shared(uint64_t pos);
/* Main thread: they keep more, and nothing more can go. True once for each recording. */
bool tt_cpdisks_is_over(void);
/* Main thread: no version is pending any more; a new recording. */
void tt_cpdisks_collect(void);
void tt_cpdisks_forget(void);

#endif
