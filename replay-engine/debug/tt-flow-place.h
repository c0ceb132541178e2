/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a value is that `tt origin` follows: a part of a register, or memory.
 *
 * Context: any thread. Internal API.
 */
#ifndef TT_FLOW_PLACE_H
#define TT_FLOW_PLACE_H

#include "debug/tt-cond.h"
#include "io/tt-base.h"

#define TT_FLOW_GENERAL     16      /* registers 0 to 15, in the order of their numbers */
#define TT_FLOW_REGS        32      /* 16 to 31: vector registers, of 32 bytes */

typedef enum TtFlowKind { TT_FLOW_AT_REG, TT_FLOW_AT_MEM, TT_FLOW_AT_CONST } TtFlowKind;

typedef struct TtFlowPlace {
    TtFlowKind kind;
    unsigned reg, first;        /* REG: number, and first byte in it */
    unsigned len;               /* bytes */
    uint64_t addr;              /* MEM: linear; CONST: the value */
} TtFlowPlace;

/* Have @a and @b a byte in common? Never with a constant. */
bool tt_flow_place_meets(const TtFlowPlace *a, const TtFlowPlace *b);
/* "rax", "ah", "xmm3", "rax[4..8)" ... or "0x1000" for memory. Returns @buf. */
char *tt_flow_place_text(const TtFlowPlace *p, char *buf, size_t size);
/* The same of a user: as in gdb, "sp" and "fp" have 64 bits. False: none is followed. */
bool tt_flow_place_parse(const char *name, TtFlowPlace *place);
/*
 * tt_flow_place_asked: what @text, an expression without names, asks about
 * A register: then *@memory is NULL. Or memory: the value of *@memory, the caller's.
 * TT_ERR_FORMAT: it is neither; @diag says so of @typed, which may have names.
 */
TtStatus tt_flow_place_asked(const char *text, const char *typed, TtFlowPlace *reg,
                             TtCond **memory, TtDiag *diag);
/* "rax", "sp" of 16 bits, "ah", "xmm3". False: no such register is followed. */
bool tt_flow_place_named(const char *name, TtFlowPlace *place);

#endif
