/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Agent expressions: a stack machine. Values are 64 bits wide; operands in the
 * code are big-endian, memory is the guest's, little-endian.
 *
 * Each opcode is one line of the table: how many bytes follow it, how many
 * values it takes and leaves, and the function that does the work. The loop
 * checks all of that before it calls the function, so functions do not.
 */
#include "debug/tt-agent.h"

#define OP_END 0x27

typedef struct Machine {
    const uint8_t *code;
    size_t len, pc;             /* pc: the next opcode */
    uint64_t operand;           /* of this one */
    uint64_t stack[TT_AGENT_STACK_MAX];
    unsigned depth;
    const TtAgentSource *source;
    TtDiag *diag;
} Machine;

typedef TtStatus Operation(Machine *m);

static uint64_t *top(Machine *m, unsigned below)
{
    return &m->stack[m->depth - 1 - below];
}

static uint64_t pop(Machine *m)
{
    return m->stack[--m->depth];
}

static TtStatus push(Machine *m, uint64_t v)
{
    m->stack[m->depth++] = v;
    return TT_OK;
}

/* ---- arithmetic: b is the top of the stack, a the value below ---- */

#define BINARY(name, expression)                        \
static TtStatus name(Machine *m)                        \
{                                                       \
    uint64_t b = pop(m), a = pop(m);                    \
                                                        \
    return push(m, expression);                         \
}

/* A shift by the width or more leaves nothing but the sign. */
static int64_t shift_signed(int64_t a, uint64_t b)
{
    return a >> (b > 63 ? 63 : b);
}

BINARY(op_add, a + b)
BINARY(op_sub, a - b)
BINARY(op_mul, a * b)
BINARY(op_lsh, b > 63 ? 0 : a << b)
BINARY(op_rsh_signed, shift_signed(a, b))
BINARY(op_rsh_unsigned, b > 63 ? 0 : a >> b)
BINARY(op_bit_and, a & b)
BINARY(op_bit_or, a | b)
BINARY(op_bit_xor, a ^ b)
BINARY(op_equal, a == b)
BINARY(op_less_signed, (int64_t)a < (int64_t)b)
BINARY(op_less_unsigned, a < b)

/* The lowest number by -1 has no quotient in 64 bits: it wraps. */
static uint64_t divide_signed(int64_t a, int64_t b, bool remainder)
{
    if (b == -1) {
        return remainder ? 0 : 0 - (uint64_t)a;
    }
    return remainder ? a % b : a / b;
}

#define DIVISION(name, expression)                                      \
static TtStatus name(Machine *m)                                        \
{                                                                       \
    uint64_t b = pop(m), a = pop(m);                                    \
                                                                        \
    if (!b) {                                                           \
        return tt_fail(m->diag, TT_ERR_INVALID, "division by zero");    \
    }                                                                   \
    return push(m, expression);                                         \
}

DIVISION(op_div_signed, divide_signed(a, b, false))
DIVISION(op_div_unsigned, a / b)
DIVISION(op_rem_signed, divide_signed(a, b, true))
DIVISION(op_rem_unsigned, a % b)

static TtStatus op_log_not(Machine *m)
{
    *top(m, 0) = !*top(m, 0);
    return TT_OK;
}

static TtStatus op_bit_not(Machine *m)
{
    *top(m, 0) = ~*top(m, 0);
    return TT_OK;
}

static TtStatus op_ext(Machine *m)
{
    unsigned bits = m->operand;

    if (bits && bits < 64) {
        *top(m, 0) = (int64_t)(*top(m, 0) << (64 - bits)) >> (64 - bits);
    }
    return TT_OK;
}

static TtStatus op_zero_ext(Machine *m)
{
    unsigned bits = m->operand;

    if (bits && bits < 64) {
        *top(m, 0) &= (1ull << bits) - 1;
    }
    return TT_OK;
}

/* ---- memory, registers, constants ---- */

static TtStatus fetch(Machine *m, unsigned len)
{
    uint8_t bytes[8] = { 0 };

    if (!m->source->mem(m->source->opaque, *top(m, 0), bytes, len)) {
        return tt_fail(m->diag, TT_ERR_INVALID, "cannot read memory at 0x%llx",
                       (unsigned long long)*top(m, 0));
    }
    *top(m, 0) = tt_get_le64(bytes);
    return TT_OK;
}

static TtStatus op_ref8(Machine *m)
{
    return fetch(m, 1);
}

static TtStatus op_ref16(Machine *m)
{
    return fetch(m, 2);
}

static TtStatus op_ref32(Machine *m)
{
    return fetch(m, 4);
}

static TtStatus op_ref64(Machine *m)
{
    return fetch(m, 8);
}

static TtStatus op_reg(Machine *m)
{
    uint64_t v = 0;

    if (!m->source->reg(m->source->opaque, m->operand, &v)) {
        return tt_fail(m->diag, TT_ERR_INVALID, "there is no register %u",
                       (unsigned)m->operand);
    }
    return push(m, v);
}

static TtStatus op_const(Machine *m)
{
    return push(m, m->operand);
}

/* ---- the flow and the stack ---- */

static TtStatus op_goto(Machine *m)
{
    m->pc = m->operand;         /* the loop looks whether that is inside */
    return TT_OK;
}

static TtStatus op_if_goto(Machine *m)
{
    return pop(m) ? op_goto(m) : TT_OK;
}

static TtStatus op_dup(Machine *m)
{
    return push(m, *top(m, 0));
}

static TtStatus op_pop(Machine *m)
{
    pop(m);
    return TT_OK;
}

static TtStatus op_swap(Machine *m)
{
    uint64_t b = pop(m), a = pop(m);

    push(m, b);
    return push(m, a);
}

static TtStatus op_pick(Machine *m)
{
    if (m->operand >= m->depth) {
        return tt_fail(m->diag, TT_ERR_FORMAT, "the expression picks value "
                       "%u of %u", (unsigned)m->operand, m->depth);
    }
    return push(m, *top(m, m->operand));
}

/* a b c becomes c a b. */
static TtStatus op_rot(Machine *m)
{
    uint64_t c = pop(m), b = pop(m), a = pop(m);

    push(m, c);
    push(m, a);
    return push(m, b);
}

/* ---- the table ---- */

static const struct {
    Operation *run;             /* NULL: not an opcode, or left out */
    uint8_t operand_bytes, takes, leaves;
} ops[256] = {
    [0x02] = { op_add, 0, 2, 1 },
    [0x03] = { op_sub, 0, 2, 1 },
    [0x04] = { op_mul, 0, 2, 1 },
    [0x05] = { op_div_signed, 0, 2, 1 },
    [0x06] = { op_div_unsigned, 0, 2, 1 },
    [0x07] = { op_rem_signed, 0, 2, 1 },
    [0x08] = { op_rem_unsigned, 0, 2, 1 },
    [0x09] = { op_lsh, 0, 2, 1 },
    [0x0a] = { op_rsh_signed, 0, 2, 1 },
    [0x0b] = { op_rsh_unsigned, 0, 2, 1 },
    [0x0e] = { op_log_not, 0, 1, 1 },
    [0x0f] = { op_bit_and, 0, 2, 1 },
    [0x10] = { op_bit_or, 0, 2, 1 },
    [0x11] = { op_bit_xor, 0, 2, 1 },
    [0x12] = { op_bit_not, 0, 1, 1 },
    [0x13] = { op_equal, 0, 2, 1 },
    [0x14] = { op_less_signed, 0, 2, 1 },
    [0x15] = { op_less_unsigned, 0, 2, 1 },
    [0x16] = { op_ext, 1, 1, 1 },
    [0x17] = { op_ref8, 0, 1, 1 },
    [0x18] = { op_ref16, 0, 1, 1 },
    [0x19] = { op_ref32, 0, 1, 1 },
    [0x1a] = { op_ref64, 0, 1, 1 },
    [0x20] = { op_if_goto, 2, 1, 0 },
    [0x21] = { op_goto, 2, 0, 0 },
    [0x22] = { op_const, 1, 0, 1 },
    [0x23] = { op_const, 2, 0, 1 },
    [0x24] = { op_const, 4, 0, 1 },
    [0x25] = { op_const, 8, 0, 1 },
    [0x26] = { op_reg, 2, 0, 1 },
    [0x28] = { op_dup, 0, 1, 2 },
    [0x29] = { op_pop, 0, 1, 0 },
    [0x2a] = { op_zero_ext, 1, 1, 1 },
    [0x2b] = { op_swap, 0, 2, 2 },
    [0x32] = { op_pick, 1, 1, 2 },
    [0x33] = { op_rot, 0, 3, 3 },
};

static TtStatus step(Machine *m)
{
    uint8_t op = m->code[m->pc];
    unsigned n = ops[op].operand_bytes;

    if (!ops[op].run) {
        return tt_fail(m->diag, TT_ERR_FORMAT, "opcode 0x%02x cannot be used "
                       "in a condition", op);
    }
    if (m->len - m->pc <= n) {
        return tt_fail(m->diag, TT_ERR_FORMAT, "the expression ends within "
                       "an opcode");
    }
    if (m->depth < ops[op].takes) {
        return tt_fail(m->diag, TT_ERR_FORMAT, "opcode 0x%02x finds %u values "
                       "on the stack", op, m->depth);
    }
    if (m->depth - ops[op].takes + ops[op].leaves > TT_AGENT_STACK_MAX) {
        return tt_fail(m->diag, TT_ERR_LIMIT, "the expression needs more than "
                       "%u values", TT_AGENT_STACK_MAX);
    }
    m->operand = 0;
    for (unsigned i = 1; i <= n; i++) {
        m->operand = m->operand << 8 | m->code[m->pc + i];
    }
    m->pc += 1 + n;
    return ops[op].run(m);
}

TtStatus tt_agent_eval(const uint8_t *code, size_t len,
                       const TtAgentSource *source, uint64_t *value,
                       TtDiag *diag)
{
    Machine m = { .code = code, .len = len, .source = source, .diag = diag };
    TtStatus s;

    *value = 0;
    if (len > TT_AGENT_BYTES_MAX) {
        return tt_fail(diag, TT_ERR_LIMIT, "the expression has %zu bytes, which is too "
                       "many", len);
    }
    for (unsigned n = 0; n < TT_AGENT_STEPS_MAX; n++) {
        if (m.pc >= len) {
            return tt_fail(diag, TT_ERR_FORMAT, "the expression does not end");
        }
        if (code[m.pc] == OP_END) {
            if (!m.depth) {
                return tt_fail(diag, TT_ERR_FORMAT, "the expression has no "
                               "value");
            }
            *value = *top(&m, 0);
            return TT_OK;
        }
        s = step(&m);
        if (s != TT_OK) {
            return s;
        }
    }
    return tt_fail(diag, TT_ERR_LIMIT, "the expression does not end within %u "
                   "steps", TT_AGENT_STEPS_MAX);
}
