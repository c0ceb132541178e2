/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an x86 instruction writes, and from what: for `tt origin`. The decoder is
 * capstone's; what its lists do not say (which operand is copied where, what is only
 * written sometimes) stands in tables here.
 *
 * A copy says which byte comes from where. Everything else that is computed has a list
 * of what was read for it; addresses of memory operands and flags are not in it. An
 * instruction that writes what was there already counts as a write; a conditional move
 * that is not taken, or a repeated string instruction with count 0, does not.
 *
 * Context: one thread at a time for each decoder. Bytes may be hostile. Internal API.
 */
#ifndef TT_FLOW_H
#define TT_FLOW_H

#include "io/tt-base.h"

#define TT_FLOW_BYTES_MAX   15      /* of an instruction */
#define TT_FLOW_TEXT_MAX    96
#define TT_FLOW_PLACES_MAX  40
#define TT_FLOW_GENERAL     16      /* registers 0 to 15, in the order of their numbers */
#define TT_FLOW_REGS        32      /* 16 to 31: vector registers, of 32 bytes */

typedef enum TtFlowKind { TT_FLOW_AT_REG, TT_FLOW_AT_MEM, TT_FLOW_AT_CONST } TtFlowKind;

typedef struct TtFlowPlace {
    TtFlowKind kind;
    unsigned reg, first;        /* REG: number, and first byte in it */
    unsigned len;               /* bytes */
    uint64_t addr;              /* MEM: linear; CONST: the value */
} TtFlowPlace;

typedef enum TtFlowHow {
    TT_FLOW_COPY,               /* of @from, byte by byte; again and again if it is
                                 * shorter */
    TT_FLOW_COMPUTED,           /* from reads[] */
    TT_FLOW_CONSTANT,           /* @from is it */
    TT_FLOW_PORT,               /* an input: from port @from.addr */
    TT_FLOW_TSC, TT_FLOW_RANDOM, TT_FLOW_CPUID, TT_FLOW_MSR,
    TT_FLOW_UNKNOWN,            /* it writes there, and this file knows no more */
} TtFlowHow;

typedef struct TtFlowWrite {
    TtFlowPlace to, from;
    TtFlowHow how;
} TtFlowWrite;

typedef struct TtFlow {
    unsigned len;               /* bytes */
    char text[TT_FLOW_TEXT_MAX];
    TtFlowWrite writes[TT_FLOW_PLACES_MAX];
    unsigned n_writes;
    TtFlowPlace reads[TT_FLOW_PLACES_MAX];
    unsigned n_reads;
    bool repeats;               /* a string instruction, as often as RCX says */
} TtFlow;

/* The vCPU before the instruction. */
typedef struct TtFlowRegs {
    unsigned bits;              /* of the code: 16, 32, 64 */
    uint64_t general[TT_FLOW_GENERAL];
    uint64_t pc;                /* rip: not linear */
    uint64_t flags;
    uint64_t bases[6];          /* of es, cs, ss, ds, fs, gs */
} TtFlowRegs;

typedef struct TtFlowDecoder TtFlowDecoder;

/* NULL: this program was built without capstone. */
TtFlowDecoder *tt_flow_new(void);
void tt_flow_free(TtFlowDecoder *d);            /* NULL is fine */

/* TT_ERR_FORMAT: @bytes, of which there are @n, do not begin with an instruction. */
TtStatus tt_flow_decode(TtFlowDecoder *d, const uint8_t *bytes, size_t n,
                        const TtFlowRegs *regs, TtFlow *out);
/* Registers that it may write, as bits; all of them if it cannot be decoded. */
uint32_t tt_flow_may_write(TtFlowDecoder *d, const uint8_t *bytes, size_t n,
                           unsigned bits);
/* Have @a and @b a byte in common? Never with a constant. */
bool tt_flow_place_meets(const TtFlowPlace *a, const TtFlowPlace *b);
/* "rax", "ah", "xmm3", "rax[4..8)" ... or "0x1000" for memory. Returns @buf. */
char *tt_flow_place_text(const TtFlowPlace *p, char *buf, size_t size);

#endif
