/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to replay-engine/glue; tt_record_directory makes it. The BQL is held. */
#ifndef TT_RUNDIR_H
#define TT_RUNDIR_H

#include "tt/engine.h"

void tt_rundir_made_log(void);
/* Has it its manifest? */
bool tt_rundir_is_there(void);
/* Of a run that never was, nothing is to be found. */
void tt_rundir_remove(void);
/* The recording has ended: the next one makes its own. */
void tt_rundir_forget(void);

#endif
