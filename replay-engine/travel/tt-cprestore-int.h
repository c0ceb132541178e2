/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of a restore that loading the recorder's checkpoints needs.
 *
 * Context: the vCPU thread, outside cpu_exec, BQL held.
 */
#ifndef TT_CPRESTORE_INT_H
#define TT_CPRESTORE_INT_H

#include "io/tt-base.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-cprestore.h"
#include "tt-cptable-int.h"

/* As tt_checkpoints_restore, but of a failure half-way nothing is said. */
TtRestored tt_cprestore_try(CPUState *cpu, TtCheckpointId id);
/* The state of a stored checkpoint; TT_ERR_NOMEM, or *@why says what is wrong with
 * it. */
TtStatus tt_cprestore_load(TtRestorable *c, char **why);
/* Of a TtPagePut: what is written down for a checkpoint can be read. Can it be put,
 * too? @opaque: a bool, set if not. */
void tt_cprestore_put_nowhere(void *opaque, uint64_t page, const void *bytes);
/* The replay, which is new, begins at @pos; it is over. */
void tt_cprestore_begins_at(uint64_t pos);
void tt_cprestore_forget(void);

#endif
