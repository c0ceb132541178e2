/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The window of the recording that goes on, when it is a flight recorder (last=):
 * log/tt-window.h, kept up to date by the threads that change it.
 *
 * Context: any thread; a lock of its own, never held across I/O. Without last= all
 * of it does nothing.
 */
#ifndef TT_FLIGHT_H
#define TT_FLIGHT_H

#include "io/tt-base.h"
#include "io/tt-io.h"
#include "log/tt-log.h"
#include "pages/tt-page.h"

/* The recording begins in tt_session.dir, with a window of
 * tt_record_options.window_ns; it has ended. */
void tt_flight_begin(void);
void tt_flight_end(void);
bool tt_flight_is_on(void);
void tt_flight_limit_log(uint64_t bytes);       /* 0: no limit */
uint64_t tt_flight_log_bytes(void);

/* ---- the log: its writer's thread ---- */
/* The file of the next part. */
TtStatus tt_flight_create_part(TtIo **io, TtDiag *diag);
/* Its head is written, and it begins there. */
void tt_flight_part_begun(const TtLogPlace *at);
/* By so much, in all up to @end. */
void tt_flight_grew(uint64_t bytes, TtLogPlace end);
bool tt_flight_wants_part(void);
/* Where the newest part begins, and its number. */
uint32_t tt_flight_newest_part(TtLogPlace *at);
uint32_t tt_flight_oldest_part(void);

/* ---- checkpoints ---- */
/* The checkpointer takes one, here; its place in the log is segment @seq. */
void tt_flight_taking(uint64_t seq);
bool tt_flight_wants_point(void);
/* The checkpoint store's thread: it is stored; it is deleted. */
void tt_flight_enter(TtNodeId id);
void tt_flight_forget(TtNodeId id);
/* The oldest one, if the window does not need it any more; if there is a newer one,
 * *@next. 0: no. */
TtNodeId tt_flight_surplus(void);
TtNodeId tt_flight_oldest(TtNodeId *next);
bool tt_flight_has_spent(void);         /* parts that no checkpoint needs? */
/* Deletes the parts that no checkpoint needs; were there any? */
bool tt_flight_drop_parts(void);

uint64_t tt_flight_start(void);         /* where it begins; any thread. 0 without */

#endif
