/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is a recorder writing to a run directory now? It holds a lock on the directory, which
 * ends with its process, however that ends: so a run whose recorder was killed can be
 * told from one that is still growing.
 *
 * And is it letting go checkpoints just now? That is a lock on RUN/checkpoints, from
 * before it looks for branches until its files say what it has decided.
 *
 * Context: any thread. Cost: three system calls. A file system that cannot lock a
 * directory says nothing either way: the recording goes on, and a reader takes it for
 * one that has ended.
 */
#ifndef TT_RUNLOCK_H
#define TT_RUNLOCK_H

#include "io/tt-base.h"

/*
 * Until tt_runlock_release(*@fd), or until the process ends, @dir is this recorder's. *@fd
 * is the open directory, without a lock where there are none. With a sentence, and *@fd
 * is -1: TT_ERR_INVALID, another has it; TT_ERR_IO, it cannot be opened.
 */
TtStatus tt_runlock_take(const char *dir, int *fd, TtDiag *diag);
void tt_runlock_release(int fd);        /* the recording has ended; -1: nothing */
void tt_runlock_drop(int fd);           /* closes it, too */
/* Is it still that directory which @dir names? True if it cannot be told (-1). */
bool tt_runlock_is_at(int fd, const char *dir);
/* For readers, of a directory that holds a manifest: a recorder that is about to take
 * the lock would mistake us for another. False if it cannot be told. */
bool tt_runlock_is_held(const char *dir);

/* The recorder of @dir is about to decide; the descriptor, or -1: no lock can be had. Its
 * end: tt_runlock_drop. */
int tt_runlock_decide(const char *dir);
/* For others, who only ask and take no lock. False if it cannot be told. */
bool tt_runlock_is_deciding(const char *dir);

#endif
