/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The driver moves the replay: it says how far the vCPU runs, takes the replay to other
 * positions, and hears what happens on the way. Travel is the driver, and it is
 * installed once, before the first replay; all functions are there.
 *
 * Context: the vCPU thread, BQL held, unless said otherwise.
 */
#ifndef TT_REPLAY_DRIVER_H
#define TT_REPLAY_DRIVER_H

#include "hw/core/cpu.h"

typedef struct TtReplayDriver {
    void (*init)(CPUState *cpu);        /* the first state is loaded */
    void (*begin)(void);                /* ... and it can be moved from here on */

    /* ---- a movement ---- */
    bool (*is_active)(void);            /* there is one; BQL */
    bool (*is_blind)(void);             /* no stop of gdb's counts now */
    bool (*steps_over)(void);           /* the breakpoint here does not */
    uint64_t (*stop_at)(void);          /* UINT64_MAX: nowhere */
    uint64_t (*came_from)(void);        /* where the way to this position began */
    /* Position of the first one after @pos; UINT64_MAX: there is none. */
    uint64_t (*next_checkpoint)(uint64_t pos);
    bool (*is_pending)(void);           /* the next step is due here */
    bool (*advance)(CPUState *cpu);     /* take it; true: run on */
    void (*runs)(CPUState *cpu);        /* all is done here, and guest code is next */
    /* In cpu_exec, between two instructions, an event is or was applied. False: leave
     * cpu_exec first. */
    bool (*passes)(CPUState *cpu);
    void (*changes_inside)(CPUState *cpu);  /* RAM or its map was, inside of one */
    void (*abort)(void);                /* the vCPU does not run; BQL */

    /* ---- what happens on the way ---- */
    void (*sync_point)(CPUState *cpu);  /* a good place for a checkpoint */
    void (*switches)(CPUState *from);   /* its turn ends here */
    /* A stop fired at @pos; @wp: the watchpoint it was, or NULL. */
    void (*hit)(uint64_t pos, CPUWatchpoint *wp);
    void (*ended)(int reason);          /* end of log, divergence */
    /* A digest differs, @why: noted, and the replay goes on. False: it is to end. */
    bool (*goes_on)(const char *why);
    /* A state is loaded whose damage the driver deals with: the VM is not to stop. */
    bool (*is_restoring)(void);
} TtReplayDriver;

extern const TtReplayDriver *tt_replay_driver;

void tt_replay_drive(const TtReplayDriver *driver);

#endif
