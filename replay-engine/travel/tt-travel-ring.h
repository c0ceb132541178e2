/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The undo log of single steps (timeline/tt-undoring.h): filled while a replay goes on by
 * one position at a time, and used where a movement goes back inside it.
 *
 * Context: the vCPU thread, outside cpu_exec, BQL held, unless said otherwise.
 */
#ifndef TT_TRAVEL_RING_H
#define TT_TRAVEL_RING_H

#include "hw/core/cpu.h"

/* Of the ring's memory; 0: there is none. Set while the command line is read, then by
 * tt_travel_ring_resize. */
extern size_t tt_travel_ring_bytes;
#define TT_TRAVEL_RING_BYTES (4u << 20)
#define TT_TRAVEL_RING_BYTES_MAX (1u << 30)
#define TT_TRAVEL_RING_HELP \
    "step-memory takes a size up to 1G, or 0 for no undo log of steps"

/* While the VM stands: what is logged is forgotten, and its memory free. False: *errp; it
 * stays as it is. Main thread, BQL held. */
bool tt_travel_ring_resize(uint64_t bytes, Error **errp);

/* Guest code is about to run: by one position, which is logged, or by more. */
void tt_travel_ring_runs(CPUState *cpu);
/* A movement begins; @back: by how many positions it goes back; 0: it does not. Any thread
 * that holds the BQL. */
void tt_travel_ring_moves(uint64_t back);
/* A movement executes up to @target, where it ends. Where it is to go by one position at a
 * time from, so that the next ones find a log; UINT64_MAX: nowhere. */
uint64_t tt_travel_ring_fills_from(uint64_t target);
/* Goes back to @target without executing anything. False: it is not in the log, and
 * nothing has changed. */
bool tt_travel_ring_back(uint64_t target);
/* The VM becomes another one than the log leads back from. */
void tt_travel_ring_stop(void);
/* How many steps back are in the log. Any thread, no lock: what it was a moment ago. */
size_t tt_travel_ring_steps(void);
void tt_travel_ring_close(void);

#endif
