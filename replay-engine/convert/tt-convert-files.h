/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of a run that is converted. Context: main thread, or the vCPU's with the
 * BQL. */
#ifndef TT_CONVERT_FILES_H
#define TT_CONVERT_FILES_H

#define TT_CONVERT_EXITS "exits"        /* the log of exits, afterwards */
#define TT_CONVERT_NEW   "log.new"      /* the new log, before that */
#define TT_CONVERT_PAGES "pages.new"    /* its checkpoints, which become the run's */
#define TT_CONVERT_CHECKPOINTS "checkpoints.new"
#define TT_CONVERT_POINT "point.new"    /* the last of them */
#define TT_CONVERT_POINT_PART "point-part.new"
#define TT_CONVERT_PART "part-"         /* and its first checkpoint, .new or .done */
/* Exit statuses: a new process is to begin anew; the disk is full, what is there stays. */
#define TT_CONVERT_AGAIN 75
#define TT_CONVERT_NO_ROOM 76

/* Of a file of tt_session.dir; g_free. */
char *tt_convert_path(const char *name);
/* This process converts the run; until it ends no other does. False: *errp, another
 * does it now. */
bool tt_convert_lock(Error **errp);
void tt_convert_unlock(void);
/* In a new process: it holds the lock, too. */
void tt_convert_lock_inherit(void);
/* The manifest and the log of exits are open, and it can begin. False: *errp. */
bool tt_convert_is_possible(Error **errp);
/* log.new is whole: the names change. May be called again after it was cut. */
bool tt_convert_install(Error **errp);
/* The same; sync points count anew from @starts, of which there are @n. */
bool tt_convert_install_parts(const uint64_t *starts, unsigned n, Error **errp);
/* What a conversion has made so far goes; or what there is to go on from alone. */
void tt_convert_discard_all(void);
void tt_convert_discard_points(void);
/* This process, or its child, does not end it: what it made goes, unless the next one can
 * go on from there. @is_wrong: it cannot. */
void tt_convert_discard_unfinished(bool is_wrong);
/* There is a point to go on from. */
bool tt_convert_has_point(void);
/* The names have begun to change. */
bool tt_convert_is_installing(void);

#endif
