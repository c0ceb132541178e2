/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Branch traces: written while the vCPU runs, if its backend can report branches.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_BRANCH_TRACE_H
#define TT_BRANCH_TRACE_H

#include "accel-tt/tt-vcpus.h"

typedef struct TtTraced {
    const char *path;           /* interned */
    uint64_t from, to;          /* positions */
    uint64_t branches, bytes;
} TtTraced;

/* From position @from on, or now, up to @to, into a file that is made. One at a
 * time. */
bool tt_trace_begin(const char *path, uint64_t from, uint64_t to,
                    Error **errp);
/* ... up to here. False: it is not whole, or there is none; *errp says why. */
bool tt_trace_end(TtTraced *t, Error **errp);
bool tt_trace_has_failed(void);         /* has that been so? */
/* The same, if there is one, and says on stderr what came of it. Also where the
 * history jumps: a trace is of one piece. */
void tt_trace_end_and_tell(void);
/* Before guest code runs, if tt_trace_is_on: begins or ends what is due. */
void tt_trace_turn(void);
uint64_t tt_trace_limit(void);          /* run no further than this */

/* ---- for the backend: the blocks that a traced vCPU enters ---- */
typedef struct TtTracedVcpu {
    uint64_t end;               /* where its last instruction ended */
    bool has_begun;             /* its first entry is in the trace */
} TtTracedVcpu;
extern TtTracedVcpu tt_traced[TT_VCPUS_MAX];
/* It went on at @pc, which is position @pos, and not where that ended; or it is the
 * first block. */
void tt_trace_jumped(CPUState *cpu, uint64_t pos, uint64_t pc);

#endif
