/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the vCPUs remember of page tables: copies, for checkpoints that stand where the TLB
 * is not empty (operations of the backend: accel-tt/tt-vcpu-backend.h), and which entries a
 * flush has to empty (include/tt/hooks-tcg.h).
 *
 * Context: vCPU thread, outside cpu_exec, BQL held; tt_tlbs_unknown: any thread, the VM
 * stopped, BQL held. No I/O.
 */
#ifndef TT_TLB_H
#define TT_TLB_H

#include "accel-tt/tt-vcpu-backend.h"

TtTlbs *tt_tlbs_save(void);
void tt_tlbs_load(const TtTlbs *t);
void tt_tlbs_free(TtTlbs *t);
size_t tt_tlbs_bytes(const TtTlbs *t);
/* The next write through any entry asks whether there is code on the page, and tells that
 * it is written. */
void tt_tlbs_ask(void);
/* The mode of -tt changes: what the TLBs hold is not known. */
void tt_tlbs_unknown(void);

#endif
