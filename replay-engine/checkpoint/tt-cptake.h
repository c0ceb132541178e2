/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Taking one checkpoint of a recording.
 *
 * Context: the BQL is held, the vCPUs are out of cpu_exec, and the checkpoint store is
 * not busy, unless said otherwise.
 */
#ifndef TT_CPTAKE_H
#define TT_CPTAKE_H

#include "io/tt-base.h"
#include "pages/tt-page.h"
#include "run/tt-cpstate.h"

void tt_cptake_begin(void);             /* there is none yet */
/*
 * tt_cptake: a checkpoint of this position; posts the job that stores it
 * @flags: TT_CHECKPOINT_*; @full: what makes it a full one, or nothing
 * @job: its number, see tt-cpstore.h
 * When it fails none was taken.
 */
TtStatus tt_cptake(CPUState *cpu, uint32_t flags, TtBytes full, uint32_t *job);
/* For the one that was taken just now the VM stood this long in all: it was stopped, and
 * devices and disks were saved. */
void tt_cptake_stood(int64_t ns);
/*
 * Is there room for what is dirty now? If not, it is being made, by job *@job; or
 * there cannot be any: then *@job is 0. Also in cpu_exec.
 */
bool tt_cptake_has_room(uint32_t *job);
/* RAM comes from @from: say that it comes from @to, which is before it. */
bool tt_cptake_rebase(TtNodeId from, TtNodeId to);
uint64_t tt_cptake_pos(void);           /* of the last one, 0: none */
int64_t tt_cptake_ms(void);             /* host time when it was taken */

typedef struct TtCheckpointerStats {
    uint64_t count, bytes;              /* checkpoints; of the store on disk */
    uint64_t taken;                     /* since the recording began */
    /* The VM stood; the first is not among them: with it RAM is logged. */
    uint64_t pause_ns_last, pause_pages_last;
    uint64_t pause_ns_most, pause_pages_most;
} TtCheckpointerStats;

TtCheckpointerStats tt_checkpointer_stats(void);    /* any thread */

#endif
