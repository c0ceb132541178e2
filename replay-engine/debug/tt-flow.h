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

#include "debug/tt-flow-place.h"

#define TT_FLOW_BYTES_MAX   15      /* of an instruction */
#define TT_FLOW_TEXT_MAX    96
#define TT_FLOW_PLACES_MAX  40

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

#endif
