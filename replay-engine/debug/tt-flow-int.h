/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of tt-flow.
 */
#ifndef TT_FLOW_INT_H
#define TT_FLOW_INT_H

#include "debug/tt-flow.h"

#ifdef TT_HAVE_CAPSTONE
#include <capstone/capstone.h>

typedef struct TtFlowWork {
    csh handle;
    const cs_insn *insn;
    const cs_x86 *x86;
    const TtFlowRegs *regs;
    TtFlow *out;
} TtFlowWork;

/* The register of capstone's, or false: none that is followed. */
bool tt_flow_reg(unsigned id, TtPlace *p);
/* The memory of an operand; what is not known of its base counts as 0. */
TtPlace tt_flow_mem(const TtFlowWork *w, const x86_op_mem *mem, unsigned len);
/* False: no place that is followed. */
bool tt_flow_operand(const TtFlowWork *w, unsigned n, TtPlace *p);
TtPlace tt_flow_general(unsigned reg, unsigned len);
TtPlace tt_flow_const(uint64_t value, unsigned len);
void tt_flow_read(TtFlowWork *w, TtPlace p);
/* Writes @to, and zeros above it where the instruction set says so. */
void tt_flow_write(TtFlowWork *w, TtPlace to, TtFlowHow how, TtPlace from);
/* True: the table knew it, and all it writes was noted. */
bool tt_flow_special(TtFlowWork *w);
#endif

#endif
