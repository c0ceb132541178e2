/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Run store: the checkpoints of a run directory, opened for reading, and of a
 * branch the pages that they share with those of its parents (TTVM 3.6; rule P8
 * of the page store's format). A parent is opened when the first page is asked
 * for, and once more when its recorder has moved pages since.
 *
 * Context: one thread at a time, any. Blocks on files; changes none.
 */
#ifndef TT_RUNSTORE_H
#define TT_RUNSTORE_H

#include "run/tt-manifest.h"
#include "pages/tt-pagestore.h"

/*
 * tt_runstore_open: RUN/pages and RUN/checkpoints of the run @m in @dir
 * @cache_bytes: as in TtPageStoreOptions. Neither is needed afterwards.
 * TT_END: the run has none, which is fine; others as of tt_pagestore_open.
 * tt_pagestore_free closes it, and the parents.
 */
TtStatus tt_runstore_open(const char *dir, const TtManifest *m,
                          uint64_t cache_bytes, TtPageStore **out,
                          TtDiag *diag);
/*
 * tt_runstore_set_origin: has a store that is about to be made for run @m in
 * @dir leave out what its parent keeps; for a run that is no branch, nothing
 * Pages are inherited of the checkpoint that the branch began with alone: that one
 * lives for as long as the branch can be replayed.
 */
void tt_runstore_set_origin(TtPageStoreOptions *opt, const TtManifest *m,
                            const char *dir);
/*
 * tt_runstore_parent_path: where the parent of branch @m in @dir lies, or would
 * Absolute, g_free. tt_runstore_parent_dir: the same; NULL, @diag: no parent has such a
 * name.
 */
char *tt_runstore_parent_path(const TtManifest *m, const char *dir);
/* With TT_FEATURE_FRAMES: the directory of the frame stores, for the run @dir. g_free. */
char *tt_runstore_frames(const TtManifest *m, const char *dir);
char *tt_runstore_parent_dir(const TtManifest *m, const char *dir,
                             TtDiag *diag);
/* Can a manifest name @path as the parent? UTF-8 without control characters. */
TtStatus tt_runstore_check_name(const char *path, TtDiag *diag);
/*
 * tt_runstore_check_parent: are @pm and @store manifest and checkpoints of the run
 * that branch @m began in?
 * TT_ERR_FORMAT with a clause for after "the parent ...: ".
 */
TtStatus tt_runstore_check_parent(const TtManifest *m, const TtManifest *pm,
                                  const TtPageStore *store, TtDiag *diag);
/*
 * tt_runstore_branch_of: a run beside @dir (in the directory that it is in) that began
 * at @checkpoint of the run @uuid, which is in @dir: its replay needs that. g_free;
 * NULL: there is none. Reads the manifests there.
 */
char *tt_runstore_branch_of(const char *dir, const uint8_t uuid[16],
                            uint32_t checkpoint);
/*
 * tt_runstore_enclosing: the run in whose directory, or further below, @path would lie
 * Absolute, without symbolic links, g_free. NULL: none. @path need not exist, the
 * directory that it is in has to; a run has a manifest and a log.
 */
char *tt_runstore_enclosing(const char *path);

#endif
