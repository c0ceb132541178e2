/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files of a log: RUN/log, or parts, RUN/log.000001, RUN/log.000002, ..., of
 * which the oldest may be gone (docs/reference/log-format.rst, R11 and R12).
 *
 * Context: any thread. Blocks in the file system.
 */
#ifndef TT_LOGPARTS_H
#define TT_LOGPARTS_H

#include "io/tt-io.h"

#define TT_LOGPARTS_MAX 4096u   /* of one run; the recorder makes some hundred */

/* Path of part @number (from 1) in @dir; 0: of the log that is one file. g_free. */
char *tt_logparts_path(const char *dir, uint32_t number);
/*
 * The parts that follow one another up to the newest, ascending (g_free); NULL and
 * 0 in *@n when there are none.
 */
uint32_t *tt_logparts_list(const char *dir, unsigned *n);
/*
 * tt_logparts_gap: are there parts that do not count, since others are missing between
 * them and the newest? Then *@oldest is the oldest of them; *@before and *@behind are the
 * parts on either side of the last gap.
 */
bool tt_logparts_gap(const char *dir, uint32_t *oldest, uint32_t *before,
                     uint32_t *behind);
/*
 * tt_logparts_open: the log of run @dir for reading, whatever it is made of: the
 * parts one after another look like one file
 * All are open from then on, so that a recorder which deletes old ones does not
 * disturb; one that goes meanwhile is left out, with those before it. The size is
 * that of the moment. TT_ERR_IO with a sentence; TT_ERR_LIMIT: more parts than
 * any run of ours has.
 */
TtStatus tt_logparts_open(const char *dir, TtIo **out, TtDiag *diag);

#endif
