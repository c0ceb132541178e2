/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb's view of the memory that it watches.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_GDB_WATCH_INT_H
#define TT_GDB_WATCH_INT_H

#include "hw/core/cpu.h"

void tt_gdb_init_watch(void);
void tt_gdb_watch_attached(void);       /* a new gdb believes nothing */
/* gdb resumes. True: it was answered at once, with a stop at a watchpoint. */
bool tt_gdb_watch_answers(bool step);
void tt_gdb_watch_before(CPUState *cpu);    /* its step backwards begins */
/* A stop reply goes out. @may_name: as its end, names a watchpoint if gdb has to
 * look at one. Valid until the next call. */
const char *tt_gdb_watch_at_stop(bool may_name);

#endif
