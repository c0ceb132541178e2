/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hooks of the gdbstub; tt/hooks.h includes it.
 */
#ifndef TT_HOOKS_GDB_H
#define TT_HOOKS_GDB_H

#include <stdbool.h>
#include <stdint.h>

struct CPUState;
struct CPUWatchpoint;
struct Error;

/* ---- gdbstub: main thread ---- */
bool tt_gdb_note(const char *device, struct Error **errp);  /* -gdb is given */
/* gdb goes back, or makes a step back. @selected: the vCPU that it has asked about last.
 * False: cannot. True: goes, or went. */
bool tt_gdb_reverse(bool step, struct CPUState *selected);
/* The thread that gdb's old packets resume, @tid (0: any) or several. */
void tt_gdb_selects(bool is_one, uint32_t tid);
/* gdb resumes the VM, each vCPU as @actions says: 's' is a step. True: done, in
 * another way than by running it. */
bool tt_gdb_resume(const char *actions);
/* The same by one of the old packets, c, C or s: all vCPUs run, and @stepping (or NULL)
 * makes a step; @has_pc: from another address. */
bool tt_gdb_resume_plain(struct CPUState *stepping, bool has_pc);
/* A gdb has connected. */
void tt_gdb_attached(void);
/* A byte came from gdb; @is_idle: it begins something. True: nobody else need see
 * it now. */
bool tt_gdb_takes(uint8_t byte, bool is_idle);
/* A monitor command of gdb's. True: @handler is called again with the same
 * parameters when gdb's bytes can be read meanwhile. */
typedef struct _GArray TtGdbParams;
bool tt_gdb_defers(void (*handler)(TtGdbParams *params, void *opaque),
                   TtGdbParams *params);
/* A breakpoint of gdb's with its conditions (or NULL) is inserted, removed. The answer,
 * where it is there already or cannot be; or NULL. @kind: 0 software, 1 hardware, else a
 * watchpoint. */
const char *tt_gdb_inserts(unsigned kind, uint64_t addr, const char *conditions);
void tt_gdb_removes(unsigned kind, uint64_t addr);
/* gdb writes memory, or registers. True: that is refused, since it is history, and it was
 * answered. A recorder takes note of registers. */
bool tt_gdb_refuses_write(bool memory);
/* The missing part of a stop reply: where history ends, a watchpoint whose value gdb
 * must read anew, or nothing. Valid until the next call. */
const char *tt_gdb_stop_suffix(const char *reply);

/* ---- breakpoints: vCPU ---- */
extern bool tt_breakpoints_off; /* gdb's breakpoints do not stop the vCPU now */
extern bool tt_gdb_has_conditions;
bool tt_has_breakpoint(struct CPUState *cpu, uint64_t pc);      /* one of gdb's */
bool tt_gdb_condition_holds(struct CPUState *cpu, uint64_t pc);

/* A conversion looks for a recorded place at this address: is it here? */
extern bool tt_hunting;
bool tt_hunt_stops(struct CPUState *cpu);

/* At the last breakpoint of gdb's that it came to, the vCPU is to stop. */
extern bool tt_breakpoint_stopped;

/* The vCPU has come to a breakpoint of gdb's at @pc: does it stop there? */
static inline bool tt_breakpoint_stops(struct CPUState *cpu, uint64_t pc)
{
    tt_breakpoint_stopped = __builtin_expect(tt_hunting, 0) ? tt_hunt_stops(cpu) :
        !tt_breakpoints_off &&
        (!tt_gdb_has_conditions || tt_gdb_condition_holds(cpu, pc));
    return tt_breakpoint_stopped;
}

/* It stops at @pc for gdb: a breakpoint of the guest's own at this address, in its
 * debug registers, is to trap afterwards. */
static inline bool tt_breakpoint_hit(struct CPUState *cpu, uint64_t pc)
{
    return tt_breakpoint_stopped && tt_has_breakpoint(cpu, pc);
}

/* ---- watchpoints: vCPU ---- */
extern bool tt_gdb_has_filters;
bool tt_gdb_filter_passes(struct CPUState *cpu, const struct CPUWatchpoint *wp,
                          int access);
/* False: the vCPU stops for @wp after the instruction, or delivery, that it is in. */
bool tt_watchpoint_stops_at_once(struct CPUState *cpu, struct CPUWatchpoint *wp,
                                 uintptr_t ra);
/* True: the guest's own debug registers watch this access, too. They trap, and the vCPU
 * stops for @wp behind the trap. */
bool tt_watchpoint_is_guests(struct CPUState *cpu, struct CPUWatchpoint *wp,
                             uint64_t addr, uint64_t len, int access);
/* The guest's debug registers are about to trap. */
void tt_watchpoint_traps(struct CPUState *cpu);

/*
 * The vCPU is about to make an @access (BP_MEM_*) to @len bytes at @addr that a watchpoint
 * covers: does it stop at once, to make the instruction anew? @ra: 0 in the delivery of an
 * interrupt or exception. That must not be left half-way, since it would be repeated with
 * its instruction, or lost. Nor must the last instruction of a block, which may have read
 * an input already: the vCPU stops behind it.
 */
static inline bool tt_watchpoint_stops(struct CPUState *cpu, struct CPUWatchpoint *wp,
                                       uint64_t addr, uint64_t len, int access,
                                       uintptr_t ra)
{
    return (!tt_gdb_has_filters || tt_gdb_filter_passes(cpu, wp, access)) &&
        (ra || tt_watchpoint_stops_at_once(cpu, wp, 0)) &&
        !tt_watchpoint_is_guests(cpu, wp, addr, len, access) &&
        (!ra || tt_watchpoint_stops_at_once(cpu, wp, ra));
}

#endif
