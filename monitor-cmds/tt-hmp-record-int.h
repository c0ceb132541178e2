/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HMP commands of a recording.
 *
 * Context: main thread, BQL held. @arg: what stands after the verb, or NULL.
 */
#ifndef TT_HMP_RECORD_INT_H
#define TT_HMP_RECORD_INT_H

#include "monitor/monitor.h"

void tt_hmp_save(Monitor *mon, const char *arg, Error **errp);
void tt_hmp_record(Monitor *mon, const char *arg, Error **errp);
void tt_hmp_trace(Monitor *mon, const char *arg, Error **errp);
void tt_hmp_undo(Monitor *mon, const char *arg, Error **errp);
void tt_hmp_redo(Monitor *mon, const char *arg, Error **errp);
void tt_hmp_incident(Monitor *mon, const char *arg, Error **errp);

#endif
