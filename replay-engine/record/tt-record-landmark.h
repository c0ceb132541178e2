/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A place where a vCPU of KVM was made to leave guest code goes into the log. */
#ifndef TT_RECORD_LANDMARK_H
#define TT_RECORD_LANDMARK_H

#include "log/tt-landmark.h"

struct CPUState;

/* Adds the pages written since the place before. vCPU thread, BQL held. Costs a
 * dirty log of the kernel's, and 0.3 us a page. */
void tt_record_landmark(struct CPUState *cpu, TtLandmark *place);
/* There is none, and the vCPU does not go on: the recording ends. */
void tt_record_lost(void);

#endif
