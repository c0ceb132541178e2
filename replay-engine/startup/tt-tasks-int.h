/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a replay is for: verify=, find=, trace=, plugin=, origin= of -tt.
 *
 * Context: main thread, at start.
 */
#ifndef TT_TASKS_INT_H
#define TT_TASKS_INT_H

void tt_tasks_parse(struct QemuOpts *opts);     /* exits on what is wrong */
/* The replay has such a task: no user moves it, and it ends by itself. */
bool tt_tasks_is_one(void);

#endif
