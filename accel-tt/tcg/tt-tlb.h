/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies of what the vCPUs remember of page tables, for checkpoints that stand where
 * the TLB is not empty.
 *
 * Context: vCPU thread, outside cpu_exec, BQL held. No I/O.
 */
#ifndef TT_TLB_H
#define TT_TLB_H

typedef struct TtTlbs TtTlbs;

/* No work is queued for a vCPU. Never NULL. Some 0.1 ms. */
TtTlbs *tt_tlbs_save(void);
/* Everything else of the state is that of the copy, and the memory map has not
 * changed since: tt_memory_map_changes says the same as then. */
void tt_tlbs_load(const TtTlbs *t);
void tt_tlbs_free(TtTlbs *t);                   /* NULL: nothing to do */
size_t tt_tlbs_bytes(const TtTlbs *t);          /* host memory */

#endif
