/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of gdbstub-tt know of each other. Context: BQL held.
 */
#ifndef TT_GDB_INT_H
#define TT_GDB_INT_H

#include "travel/tt-travel.h"

/* ---- tt-gdb.c ---- */
/* What the next resumption does instead of running the VM. */
typedef enum TtGdbJob {
    TT_GDB_NO_JOB,
    TT_GDB_GOTO,                /* a position */
    TT_GDB_BACK,                /* by so many */
    TT_GDB_HITS,
} TtGdbJob;

void tt_gdb_post_job(TtGdbJob job, uint64_t place);
/* How the last job ended, as a TtStopReason. */
int tt_gdb_job_reason(void);

/* ---- tt-gdb-query.c: our packets, and $tt_position ---- */
void tt_gdb_init_queries(void);
/* The search for hits that an job is: begin, and forget. */
bool tt_gdb_begin_hits(TtTravelDone *done, Error **errp);
void tt_gdb_end_hits(void);
/* Does that search look for hits at @pc? Does one of @cpu there count? */
bool tt_gdb_counts_hits(uint64_t pc);
bool tt_gdb_hit_counts(CPUState *cpu);

/* ---- tt-gdb-watch.c: what gdb believes of the memory it watches ---- */
void tt_gdb_init_watch(void);
void tt_gdb_watch_attached(void);       /* a new gdb believes nothing */
/* gdb resumes. True: it was answered at once, with a stop at a watchpoint. */
bool tt_gdb_watch_answers(bool step);
void tt_gdb_watch_before(void);         /* a step backwards begins */
/* A stop reply goes out. @may_name: as its end, names a watchpoint if gdb has to
 * look at one. Valid until the next call. */
const char *tt_gdb_watch_at_stop(bool may_name);

/* ---- tt-gdb-process.c: one process of the guest ---- */
typedef struct TtGdbWho {       /* a process */
    char kind;                  /* r, p or n: what is compared; 0: anybody */
    uint64_t value[2];
} TtGdbWho;

void tt_gdb_init_process(void);
bool tt_gdb_is_turn_of(CPUState *cpu, const TtGdbWho *who);
/* False: no such kind. */
bool tt_gdb_parse_who(const uint64_t v[3], TtGdbWho *who);
/* Numbers in hex with commas between them; how many, 0 if they are none. */
unsigned tt_gdb_parse_list(const char *text, uint64_t *values, unsigned most);
void tt_gdb_process_attached(void);        /* those of the gdb before are gone */

/* ---- tt-gdb-rcmd.c: monitor commands, during which gdb may be heard ---- */
bool tt_gdb_rcmd_takes(uint8_t byte);

/* ---- tt-gdb-cond.c: conditions of breakpoints ---- */
void tt_gdb_init_conditions(void);

#endif
