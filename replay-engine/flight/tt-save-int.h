/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directory that a window is saved into, and copying into it.
 *
 * Context: making it and removing leftovers: the BQL is held. The rest: any thread,
 * one at a time; calls block on the disk.
 */
#ifndef TT_SAVE_INT_H
#define TT_SAVE_INT_H

#include "io/tt-base.h"

typedef struct TtSaveDir {
    char *to;                   /* its name when it is whole */
    char *making;               /* until then */
    int lock;                   /* on that directory */
} TtSaveDir;

/* @name: beside the recording's directory; with a slash, anywhere. NULL: save-1,
 * save-2, ... @may_number: if it is taken, NAME-2, NAME-3, ... *@mark: the name, if it is no
 * path (g_free). */
bool tt_savedir_make(const char *name, bool may_number, TtSaveDir *d, char **mark,
                     Error **errp);
/* All is in it: it gets its name. Fails if somebody has made something of that name
 * meanwhile. */
TtStatus tt_savedir_name(const TtSaveDir *d, TtDiag *diag);
void tt_savedir_discard(const TtSaveDir *d);    /* it, and what was put into it */
void tt_savedir_close(TtSaveDir *d);            /* nobody works on it any more */
void tt_savedir_free(TtSaveDir *d);             /* the names; after close */
void tt_savedir_sync(const char *path);         /* a directory, to disk */
/* Removes what a process left that was killed while it saved a window of this run. */
void tt_savedir_remove_leftovers(void);

/* Copies @from as it is now; holes stay holes. @to must not exist. Fails with
 * ECANCELED soon after @cancelled is set. */
TtStatus tt_save_copy(const char *from, const char *to, const bool *cancelled,
                      TtDiag *diag);
/* Fills in @diag: "cannot @what @path", and why, by errno. */
TtStatus tt_save_fail(TtDiag *diag, const char *what, const char *path);

#endif
