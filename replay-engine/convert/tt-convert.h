/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first pass over a run that was recorded under KVM: it is executed under TCG, with
 * the devices' part taken from its log of exits, and written again as a log whose
 * positions are instructions. From then on it is a run like any other (decision 0019).
 *
 *   RUN/log (exits) --> TCG --> RUN/log.new     then: log -> exits, log.new -> log
 *
 * Context: main thread, unless said otherwise.
 */
#ifndef TT_CONVERT_H
#define TT_CONVERT_H

#include "hw/core/cpu.h"

/* -tt convert: this process makes the pass. Before the options of the machine. */
void tt_convert_set_on(void);
bool tt_convert_is_on(void);
/* So often there is a point from which a later process can go on; 0: never. */
extern int64_t tt_convert_interval_ms;
/* So many processes at a time; 0: as many as there are processors. */
extern int64_t tt_convert_jobs;
/* This process converts a part only: FROM-TO, or puts them together: join-MS. */
void tt_convert_part_option(const char *text);
/* Opens the log of exits. */
bool tt_convert_open(Error **errp);
/* The machine is there: vCPU thread. */
void tt_convert_start(CPUState *cpu);

/* -tt replay: if the run in tt_session.dir has not been converted yet, a process of
 * its own does it now, with its progress on stderr. */
bool tt_convert_if_needed(Error **errp);

#endif
