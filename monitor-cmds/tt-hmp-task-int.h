/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HMP commands that last.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_HMP_TASK_INT_H
#define TT_HMP_TASK_INT_H

#include "monitor-cmds/tt-task.h"
#include "monitor/monitor.h"

/* @gave_up: has a gdb whose command HMP carries out left it? */
void tt_hmp_task_init(bool (*gave_up)(void));
/* Until it has ended; this monitor waits. False: *errp. The caller clears @t. */
bool tt_hmp_carry_out(Monitor *mon, TtTask *t, Error **errp);
void tt_hmp_find(Monitor *mon, const char *arg, Error **errp);
/* tt-time-cmd.c; does not last. */
void tt_hmp_time(Monitor *mon, const char *arg, Error **errp);

#endif
