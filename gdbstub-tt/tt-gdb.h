/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of gdbstub-tt know of each other. Context: BQL held.
 */
#ifndef TT_GDB_H
#define TT_GDB_H

#include "tt/engine.h"

/* ---- tt-gdb.c ---- */
/* What the next resumption does instead of running the VM. */
typedef enum TtGdbErrand {
    TT_GDB_NO_ERRAND,
    TT_GDB_GOTO,
    TT_GDB_HITS,
} TtGdbErrand;

void tt_gdb_send_on_errand(TtGdbErrand errand, uint64_t target);
/* How the last errand ended, as a TtStopReason. */
int tt_gdb_errand_reason(void);

/* ---- tt-gdb-query.c: our packets, and $tt_position ---- */
void tt_gdb_init_queries(void);
/* The search for hits that an errand is: begin, and forget. */
bool tt_gdb_begin_hits(TtTravelDone *done, Error **errp);
void tt_gdb_end_hits(void);
/* Does that search look for hits at @pc? */
bool tt_gdb_counts_hits(uint64_t pc);

/* ---- tt-gdb-cond.c: conditions of breakpoints ---- */
void tt_gdb_init_conditions(void);

#endif
