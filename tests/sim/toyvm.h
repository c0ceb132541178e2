/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A toy VM: a deterministic machine of a few pages and two registers, driven by
 * inputs that a seed stands for. It knows where it is, which pages it wrote,
 * and where a breakpoint or a watchpoint would stop it: all that a real VM
 * tells the timeline and the page store, and nothing else.
 */
#ifndef TT_TOYVM_H
#define TT_TOYVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOYVM_PAGES     12u
#define TOYVM_PAGE      4096u

typedef struct ToyRegs {
    uint64_t pos;
    uint64_t acc;
} ToyRegs;

typedef struct ToyVm {
    uint32_t seed;
    ToyRegs regs;
    uint8_t ram[TOYVM_PAGES][TOYVM_PAGE];
    bool is_dirty[TOYVM_PAGES];     /* since the caller cleared it */
    bool was_written[TOYVM_PAGES];  /* by the last toyvm_step */
} ToyVm;

/* Where it stops; debugging state, so no part of the VM. */
typedef struct ToyStops {
    uint32_t break_modulus;         /* stop where acc % it == 0; 0: unarmed */
    int watch_page;                 /* stop when it is written; -1: unarmed */
} ToyStops;

void toyvm_reset(ToyVm *vm, uint32_t seed);
/* Executes up to the next position where it can stand: one further, or seldom
 * more, as a real VM delivers some traps together with their instruction. */
void toyvm_step(ToyVm *vm);
/* Would it stop where it stands? A breakpoint looks at the state only, so it
 * fires also right after a restore; a watchpoint needs the step before. */
bool toyvm_at_break(const ToyVm *vm, const ToyStops *stops);
bool toyvm_at_watch(const ToyVm *vm, const ToyStops *stops);
/* Hash of registers and RAM. */
uint64_t toyvm_digest(const ToyVm *vm);

#endif
