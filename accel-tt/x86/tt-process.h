/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which process of the guest runs.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_PROCESS_H
#define TT_PROCESS_H

typedef struct TtLinuxLayout {
    uint64_t current;           /* of the pointer to the task, from GS's base */
    uint64_t pid, name;         /* in that task: of the process, 16 letters */
} TtLinuxLayout;

typedef struct TtProcess {
    uint64_t root;              /* of the page tables; 0: there are none */
    int64_t pid;                /* -1: not known */
    uint8_t name[16];           /* ended by 0 */
} TtProcess;

void tt_process_set_layout(const TtLinuxLayout *l);
const TtLinuxLayout *tt_process_layout(void);   /* NULL: not known */
/* Some 2 us; changes nothing. Also while the vCPU accesses memory. */
void tt_process_now(CPUState *cpu, TtProcess *p);

#endif
