/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Agent expressions: gdb's bytecode for a breakpoint's condition, so that it
 * is evaluated where the breakpoint is met ("The GDB Agent Expression
 * Mechanism" in gdb's manual). Tracing, trace state variables, printing and
 * floating point are left out: gdb makes no conditions of them.
 *
 * Context: any thread; no state, no allocation. The bytes may be hostile: an error in
 * them ends the evaluation with a status, and its steps are bounded.
 */
#ifndef TT_AGENT_H
#define TT_AGENT_H

#include "io/tt-base.h"

#define TT_AGENT_BYTES_MAX  2048        /* a packet of gdb's holds no more */
#define TT_AGENT_STACK_MAX  128
#define TT_AGENT_STEPS_MAX  100000

/* Where registers and memory come from. False: it cannot be read. */
typedef struct TtAgentSource {
    void *opaque;
    bool (*reg)(void *opaque, unsigned number, uint64_t *value);
    bool (*mem)(void *opaque, uint64_t addr, uint8_t *bytes, unsigned len);
} TtAgentSource;

/*
 * tt_agent_eval: the value on top of the stack when the expression ends
 * TT_ERR_FORMAT: no valid expression; TT_ERR_LIMIT: too many steps, too deep
 * or too long; TT_ERR_INVALID: a division by zero, or something that cannot be
 * read. *@value is 0 then. A condition that fails so counts as true: gdb,
 * which looks itself once more, shows what is wrong.
 */
TtStatus tt_agent_eval(const uint8_t *code, size_t len,
                       const TtAgentSource *source, uint64_t *value,
                       TtDiag *diag);

#endif
