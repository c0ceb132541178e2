/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The replayer: matches the log with what the vCPU does, and applies its events.
 *
 * Context: the BQL is held; start: in the vCPU thread.
 */
#ifndef TT_REPLAY_H
#define TT_REPLAY_H

void tt_replay_init(void);              /* main thread, before the options */
bool tt_replay_open(Error **errp);
void tt_replay_start(CPUState *cpu);
void tt_replay_close(void);

#endif
