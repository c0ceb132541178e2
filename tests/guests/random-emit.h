/*
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Makes random machine code for guest "random": one block at a time, which is
 * called, runs some turns and returns.
 *
 * A block uses all registers but ESP as it likes. Memory is addressed absolutely,
 * in the windows below, or by string instructions whose registers are set just
 * before; so whatever it does, it stays there. Faults are welcome: the start of
 * each instruction is kept, so that a handler can go on after it.
 */
#ifndef RANDOM_EMIT_H
#define RANDOM_EMIT_H

#include "rt.h"

enum { CODE_PAGES = 6, CODE_BYTES = CODE_PAGES * PAGE, DATA_PAGES = 48,
       DATA_BYTES = DATA_PAGES * PAGE, PATCHES = 64 };

extern u8 block_code[CODE_BYTES];
#define DATA ((u32)RT_ARENA)
/* The same code and data, seen at other addresses. */
#define CODE_ALIAS (48u << 20)
#define DATA_ALIAS (52u << 20)

extern u32 dice_state;
extern u16 block_next[CODE_BYTES];      /* where the next instruction begins */
extern volatile u32 block_turns;

/* A number below @n. */
static inline u32 dice(u32 n)
{
    return prng(&dice_state) % n;
}

static inline u32 dice32(void)
{
    return prng(&dice_state) << 16 ^ prng(&dice_state);
}

static inline u32 one_in(u32 n)
{
    return dice(n) == 0;
}

/* Emits a block of about @count instructions at @offset; returns its entry. */
void *emit_block(u32 offset, u32 count);

#endif
