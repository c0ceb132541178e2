/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder: events, sync points and digests of a recording.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_RECORD_H
#define TT_RECORD_H

#include "log/tt-log.h"

/* Once, at start: the vCPU and the devices report to the recorder in its mode. */
void tt_record_init(void);

/*
 * open -> start -> finish -> close. A failure of open or start is followed by
 * close; what was made on disk is removed again.
 */
bool tt_record_open(Error **errp);              /* directory and buffers */
bool tt_record_start(Error **errp);     /* vCPUs out of cpu_exec */
/* For others the run is there from now on, before it starts. The machine is made. */
bool tt_record_announce(Error **errp);
void tt_record_event(TtEvent *ev);              /* pos, nested are filled in */
void tt_record_finish(unsigned why);            /* may take seconds */
void tt_record_give_up(const char *why);        /* here, and says so */
bool tt_record_is_whole(void);                  /* after finish */
bool tt_record_is_gone(void);           /* after finish: deleted by somebody */
void tt_record_close(void);                     /* ready for another open */
void tt_record_resync(void);            /* before guest code runs */
/* Waits until all events so far are in the file. */
bool tt_record_seal(Error **errp);
/* The same without waiting, before something is said to be done: once this is settled,
 * whoever kills this process loses nothing of it. It is also settled if the log cannot be
 * written now, or if its disk is far behind. */
uint64_t tt_record_settle(void);
bool tt_record_is_settled(uint64_t mark);

/* Ends the part of the log here: *@seq is the first segment after it. There is an
 * event since the last time. */
bool tt_record_cut(uint64_t *seq, Error **errp);
/* The log of a window is to be no longer than this; 0: as it comes. */
void tt_record_limit_segments(uint64_t log_bytes);
/* A window's log would soon be longer than its limit. */
bool tt_record_is_tight(void);
/* Where it ends, if it ended here: sooner when not all of it could be written. */
uint64_t tt_record_end(void);
uint64_t tt_record_ns(void);            /* host time since the run began */
uint64_t tt_record_bytes(void);         /* the log on disk */

/* Where the log goes on: the place of the next event. */
void tt_record_place(uint64_t *segment, uint32_t *index);

#endif
