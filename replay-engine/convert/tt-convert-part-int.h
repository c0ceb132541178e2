/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of the pass, each in a process of its own. */
#ifndef TT_CONVERT_PART_INT_H
#define TT_CONVERT_PART_INT_H

#include "hw/core/cpu.h"
#include "run/tt-cpstate.h"

#define TT_CONVERT_END UINT64_MAX

/* All are numbers of 64 bits: they are written as they stand here. Checkpoints are those
 * of the recorder, by number; 0: the run's start. */
typedef struct TtConvertPart {
    uint64_t from, to;              /* TT_CONVERT_END: the end of the log */
    uint64_t is_clean;              /* that end */
    uint64_t positions, n_passed, log_bytes;
    uint64_t places, candidates, same_registers, compared;
} TtConvertPart;

/* A checkpoint at which it came by, or ended. */
typedef struct TtConvertPassed {
    uint64_t index, pos;            /* from the part's start on */
    uint64_t segment;               /* of its log, which begins there */
    TtBytes state;                  /* as in a checkpoint (TtCpState) */
} TtConvertPassed;

/* What the file of a part that is whole says. */
typedef struct TtConvertDone {
    TtConvertPart part;
    GArray *passed;                 /* of TtConvertPassed */
    char *bytes;                    /* they lead into it */
    gsize len;
} TtConvertDone;

bool tt_convert_part_is_on(void);
/* This process puts parts together: when the pass began; 0: it does not. */
int64_t tt_convert_part_join(void);
/* They are whole: they become the run. False: *errp. */
bool tt_convert_join(Error **errp);
/* After that failed: the exit status. */
int tt_convert_join_status(void);
/* The checkpoint at which this process begins; 0: the run's start. */
uint64_t tt_convert_part_from(void);
/* Of a file in the run; g_free. */
char *tt_convert_part_name(uint64_t from, bool is_done);
/* The vCPU stands at a checkpoint, and RAM is the recorded one. True: the part ends. */
bool tt_convert_part_passes(CPUState *cpu, uint64_t index);
/* Its log is whole: so is the part. @is_end: of the log of exits. False: *diag. */
bool tt_convert_part_finish(uint64_t log_bytes, bool is_end, bool is_clean, TtDiag *diag);
/* False: there is no whole part from there. Otherwise it has to be cleaned up. */
bool tt_convert_part_load(const char *dir, uint64_t from, TtConvertDone *done);
void tt_convert_done_cleanup(TtConvertDone *done);

#endif
