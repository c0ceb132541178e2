/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log's writer, for the recorder. Its interface for others is in tt-record.h (from
 * tt_record_seal on).
 *
 * Context: the BQL is held. Between start and end a segment is open.
 */
#ifndef TT_WRITER_H
#define TT_WRITER_H

#include "log/tt-log.h"

/* Makes buffers, and the log in tt_session.dir. When it fails, close frees what it
 * made. */
bool tt_writer_open(Error **errp);
void tt_writer_start(void);
bool tt_writer_is_at_work(void);        /* started, and not ended */
/* The log's last segment; waits for the thread, which ends. */
void tt_writer_end(void);
void tt_writer_sync(void);              /* after the end */
void tt_writer_close(void);             /* ready for another open */

/* Waits only when all segments are on their way. */
void tt_writer_put(const TtEvent *ev);
/* Seals the open segment soon. */
void tt_writer_hand_over(void);
/* For good; *@why says why, until close. */
bool tt_writer_has_failed(const char **why);
/* Has the log reached max-size, with no window that could move on? May wait for the
 * thread. */
bool tt_writer_is_full(void);

#endif
