/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Conditions of breakpoints.
 *
 * Context: main thread, BQL held.
 */
#ifndef TT_GDB_COND_INT_H
#define TT_GDB_COND_INT_H

void tt_gdb_init_conditions(void);
/* No breakpoint, watchpoint or step is possible here; that was said. */
bool tt_gdb_cannot_stop_at_places(void);
/* Is a breakpoint that @cpu meets at @pc to stop it (1), or not (0)? -1: look at its
 * conditions. vCPU thread. */
typedef int TtGdbLook(CPUState *cpu, uint64_t pc);
/* Once: @look is asked first, at each breakpoint, while tt_gdb_has_conditions. */
void tt_gdb_look_first(TtGdbLook *look);

#endif
