/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The run directory of a recording; tt_record_directory makes it.
 *
 * Context: the BQL is held, unless said otherwise.
 */
#ifndef TT_RUNDIR_H
#define TT_RUNDIR_H

void tt_rundir_made_log(void);
/* RUN/pages and RUN/checkpoints are to be there from now on, or go. Any thread. */
void tt_rundir_has_points(bool has);
/* Has it its manifest and its log? */
bool tt_rundir_is_there(void);
/* Name of a file of the recording that somebody deleted or moved; g_free. NULL: none. */
char *tt_rundir_lost(void);
/* Does tt_session.dir still name the directory that was made? If not, nothing may be
 * created or deleted by its name: another recording may be there. Any thread. */
bool tt_rundir_is_ours(void);
bool tt_rundir_check(Error **errp);     /* the same, with a sentence */
void tt_rundir_watch(void);     /* says once that it is not, or has lost a file */
void tt_rundir_release(void);           /* nobody writes into it any more */
/* Of a run that never was, nothing is to be found. */
void tt_rundir_remove(void);
/* The recording has ended: the next one makes its own. */
void tt_rundir_forget(void);

/* Can a directory of this name be made, and written to? It is removed again. */
bool tt_rundir_can_make(const char *dir, Error **errp);
/* The run directory: made, or fit to record into. Again: nothing to do. */
bool tt_record_directory(Error **errp);

#endif
