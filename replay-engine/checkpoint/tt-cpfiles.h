/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files of a recording's checkpoints, as the checkpoint store's thread
 * (tt-cpstore.c) works on them.
 *
 * Context: the thread while a job is under way, else whoever posts the jobs; "any"
 * may be called at any time by any thread. Calls block on the disk. Sizes are bytes.
 */
#ifndef TT_CPFILES_H
#define TT_CPFILES_H

#include "io/tt-base.h"
#include "pages/tt-page.h"
#include "pages/tt-pagestore.h"

/* As in a new process; it is not open. */
void tt_cpfiles_forget(void);
/* Makes RUN/pages and RUN/checkpoints. @max_bytes: of both together, 0 for no cap. */
bool tt_cpfiles_open(uint64_t max_bytes, TtDiag *diag);
/* Writes what is not written yet. What is known about the checkpoints stays. */
void tt_cpfiles_close(void);

/*
 * tt_cpfiles_add: the batch, against the base, becomes the new base
 * @batch: NULL: the base is the new one, and was added to the store
 * A failure is for good. tt_cpfiles_flush(true) is to follow.
 */
TtStatus tt_cpfiles_add(uint64_t pos, TtPageBatch *batch,
                        const TtCheckpointMeta *meta);
/* To disk. @is_new: one was added: it is listed, and a window moves. */
TtStatus tt_cpfiles_flush(bool is_new);
TtStatus tt_cpfiles_delete(TtNodeId id);
/* A flight recorder's window gives up what it can. */
TtStatus tt_cpfiles_move(void);
/* The log needs space. False: there is none to give. */
bool tt_cpfiles_give_room(void);
/* Writes what an earlier flush could not. */
void tt_cpfiles_flush_behind(void);
/* The counters that others read are up to date. */
void tt_cpfiles_note(void);

TtPageStore *tt_cpfiles_store(void);            /* NULL: it has given way */
/* The newest one: RAM is this and the dirty pages; 0: there is none. */
TtNodeId tt_cpfiles_base(void);
void tt_cpfiles_set_base(TtNodeId id);
const TtDiag *tt_cpfiles_diag(void);            /* of the last failure */
/* The newest one, which is the base and not in the list, has no room: delete it. 0,
 * or how many had none in turn. */
unsigned tt_cpfiles_is_over(void);
/* Something that comes once: it may work again. NULL: nothing new. */
const char *tt_cpfiles_problem(void);

/* ---- any ---- */
/* True: storing has failed for good, *@why says why. */
bool tt_cpfiles_has_failed(const char **why);
/* A full disk made the window begin later. Once. */
bool tt_cpfiles_has_shrunk(void);
uint64_t tt_cpfiles_count(void);
uint64_t tt_cpfiles_bytes(void);                /* on disk */

#endif
