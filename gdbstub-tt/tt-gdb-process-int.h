/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Breakpoints and watchpoints of one process of the guest.
 *
 * Context: the BQL is held.
 */
#ifndef TT_GDB_PROCESS_INT_H
#define TT_GDB_PROCESS_INT_H

typedef struct TtGdbWho {       /* a process */
    char kind;                  /* r, p or n: what is compared; 0: anybody */
    uint64_t value[2];
} TtGdbWho;

void tt_gdb_init_process(void);
bool tt_gdb_is_turn_of(CPUState *cpu, const TtGdbWho *who);
/* False: no such kind. */
bool tt_gdb_parse_who(const uint64_t v[3], TtGdbWho *who);
void tt_gdb_process_attached(void);     /* those of the gdb before are gone */

#endif
