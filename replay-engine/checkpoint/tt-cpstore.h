/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checkpoint store of a recording: jobs for its thread. What it works on is
 * tt-cpfiles.h.
 *
 * Context: BQL held, any thread but the checkpoint store's own, unless said otherwise. One
 * job is under way at a time: post one only when it is not busy.
 */
#ifndef TT_CPSTORE_H
#define TT_CPSTORE_H

#include "io/tt-base.h"
#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"

/* As in a new process. It is not open. */
void tt_cpstore_forget(void);
/* Makes RUN/pages and RUN/checkpoints, and the thread. @max_bytes: of both files
 * together, 0 for no cap. */
bool tt_cpstore_open(uint64_t max_bytes, TtDiag *diag);
/* Waits for the job. What is known about the points stays. */
void tt_cpstore_close(void);
bool tt_cpstore_is_open(void);
bool tt_cpstore_is_busy(void);            /* also while a window is saved */
bool tt_cpstore_is_saving(void);
void tt_cpstore_wait(void);               /* until it is not; the BQL is kept */

/* ---- while it is not busy ---- */
/* To work with it; NULL: it has given way. The log may wait until it is released:
 * log nothing meanwhile. */
TtPageStore *tt_cpstore_take(void);
void tt_cpstore_release(void);
void tt_cpstore_set_base(TtNodeId id);    /* see tt_cpfiles_base */
/* For copies of pages; tt_cpstore_room says how many more it takes. */
TtPageBatch *tt_cpstore_batch(void);
size_t tt_cpstore_room(void);
/*
 * Post a job; its number. Add: the batch against the base becomes the new base;
 * without @has_batch the base is the new one, and was added to the store. @meta's
 * blob is the checkpoint store's now. Prepare: a batch for @n pages, if memory allows. Move: a
 * window gives up what it can, now that more of the log is on disk.
 */
/* The job that is posted next does not begin before tt_cpstore_let_go. It is under way,
 * and tt_cpstore_wait waits for the disks, too. @problem: NULL, or why no branch can
 * begin at the checkpoint that it adds: then that is no full one. */
void tt_cpstore_hold(void);
bool tt_cpstore_is_held(void);
void tt_cpstore_let_go(const char *problem);
/* The next job adds a checkpoint whose disks failed before it was posted. */
void tt_cpstore_is_unkept(const char *problem);
void tt_cpstore_has_no_job(void);       /* it was not added, so nothing is posted */
uint32_t tt_cpstore_add(uint64_t pos, bool has_batch,
                      const TtCheckpointMeta *meta);
uint32_t tt_cpstore_delete(TtNodeId id, bool is_users);
uint32_t tt_cpstore_prepare(size_t n);
uint32_t tt_cpstore_move(void);

/* ---- at any time ---- */
bool tt_cpstore_is_done(uint32_t job);
/* Of one that was the user's (a pinned or full add, a delete) and is done: TT_OK, and *@id is
 * the new one's; or *@diag says what went wrong. */
TtStatus tt_cpstore_result(uint32_t job, TtNodeId *id, TtDiag *diag);
/* Once, at start: what copies the files while nobody works on them, in the thread or,
 * when there is none, in the caller of tt_cpstore_save. False: it failed, and all that
 * it made is gone. */
typedef bool TtCpstoreSave(void);
void tt_cpstore_on_save(TtCpstoreSave *save);
/* BQL. It is called before any job that is posted later. */
void tt_cpstore_save(void);
/* Deletes the store, for the log. Any thread without the BQL; waits for the job.
 * False: there is none to delete. */
bool tt_cpstore_make_room(void);

#endif
