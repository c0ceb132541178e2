/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's time and the guest's time stamp counter, in the log: TT_EV_TIME, at most four
 * times a millisecond. A replay does not need them; `tt time` tells of them.
 *
 * Context: the BQL is held, the recording is live.
 */
#ifndef TT_RECORD_TIME_H
#define TT_RECORD_TIME_H

#include "log/tt-log.h"

void tt_record_time_start(void);        /* a recording begins */
/* @ev is about to be logged: an access to a device, an interrupt, or the end of a halt. */
typedef void TtRecordPut(TtEvent *ev);  /* the recorder's */
void tt_record_time_before(const TtEvent *ev, TtRecordPut *record);
/* The vCPU has left guest code, between two instructions. */
void tt_record_time(TtRecordPut *record);

#endif
