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
bool tt_flow_reg(unsigned id, TtFlowPlace *p);
/* The memory of an operand; what is not known of its base counts as 0. */
TtFlowPlace tt_flow_mem(const TtFlowWork *w, const x86_op_mem *mem, unsigned len);
/* False: no place that is followed. */
bool tt_flow_operand(const TtFlowWork *w, unsigned n, TtFlowPlace *p);
TtFlowPlace tt_flow_general(unsigned reg, unsigned len);
TtFlowPlace tt_flow_const(uint64_t value, unsigned len);
void tt_flow_read(TtFlowWork *w, TtFlowPlace p);
/* Writes @to, and zeros above it where the instruction set says so. */
void tt_flow_write(TtFlowWork *w, TtFlowPlace to, TtFlowHow how, TtFlowPlace from);
/* @len bytes of it. */
TtFlowPlace tt_flow_cut(TtFlowPlace p, unsigned from, unsigned len);
/* @from, or as much of it as fits, to the lower bytes of @to. */
void tt_flow_copy(TtFlowWork *w, TtFlowPlace to, TtFlowPlace from);
/* The lower @len bytes of a vector register; zeros above them where it is loaded. */
void tt_flow_move_scalar(TtFlowWork *w, unsigned len, bool keeps);
/* Is one of the first two operands a vector register? */
bool tt_flow_is_vector(const TtFlowWork *w);
/* True: the table knew it, and all it writes was noted. */
bool tt_flow_moves(TtFlowWork *w);
bool tt_flow_special(TtFlowWork *w);
#endif

#endif
