/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A log that cannot be written now: the VM stops until it can.
 *
 * Context: the BQL is held, unless said otherwise.
 */
#ifndef TT_WRITE_STALL_H
#define TT_WRITE_STALL_H

#include "io/tt-base.h"
#include "log/tt-log.h"

/* Segments that may be on their way to the writer besides the usual ones. */
#define TT_STALL_SEGMENTS 64

/* The recording has begun; it has ended, and its writer thread, too. */
void tt_stall_arm(void);
void tt_stall_disarm(void);
/* Writer thread, no lock: stops the VM and waits until it goes on. False: the
 * recording is to end with what it has. */
bool tt_stall_wait(const TtDiag *why);
/* Waiting threads wait no longer, now or later. */
void tt_stall_give_up(void);
/* Main loop: says it, once. */
void tt_stall_tell(void);
/* One more segment while the writer waits and the VM does not stand yet; NULL:
 * it does not wait, memory is short, or these are too many. */
TtSegBuf *tt_stall_segment(void);

/* Why the recording waits and the VM with it, a sentence; NULL: it does not. */
const char *tt_stall_why(void);

#endif
