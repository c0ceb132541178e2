/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The value of a condition, and where it can become true.
 */
#include "debug/tt-cond.h"
#include "tt-cond-int.h"

#include <glib.h>
#include <stdlib.h>

/* ---- its value ---- */

/* As the type has it, extended to 64 bits. */
static uint64_t fit(uint64_t v, TtCondType t)
{
    unsigned bits = tt_cond_type_bytes(t) * 8;

    if (bits >= 64) {
        return v;
    }
    v &= (1ull << bits) - 1;
    return t.is_signed && (v >> (bits - 1)) ? v | ~((1ull << bits) - 1) : v;
}

static TtStatus divide(int op, uint64_t a, uint64_t b, bool is_signed, uint64_t *v)
{
    if (!b) {
        return TT_ERR_INVALID;
    }
    if (is_signed && (int64_t)b == -1) {            /* the smallest / -1 traps */
        *v = op == '/' ? -a : 0;
    } else if (is_signed) {
        *v = op == '/' ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b;
    } else {
        *v = op == '/' ? a / b : a % b;
    }
    return TT_OK;
}

/* By more bits than it has leaves nothing, or the sign. */
static uint64_t shift(int op, uint64_t a, uint64_t n, TtCondType t)
{
    unsigned bits = tt_cond_type_bytes(t) * 8;

    if (op == OP2('<', '<')) {
        return n < bits ? a << n : 0;
    }
    return t.is_signed ? (uint64_t)((int64_t)a >> MIN(n, 63)) : n < 64 ? a >> n : 0;
}

static bool compare(int op, uint64_t a, uint64_t b, bool is_signed)
{
    int64_t x = a, y = b;

    switch (op) {
    case OP2('=', '='):
        return a == b;
    case OP2('!', '='):
        return a != b;
    case '<':
        return is_signed ? x < y : a < b;
    case '>':
        return is_signed ? x > y : a > b;
    case OP2('<', '='):
        return is_signed ? x <= y : a <= b;
    default:
        return is_signed ? x >= y : a >= b;
    }
}

static TtStatus compute(const TtCondNode *n, TtCondType operand, uint64_t a,
                        uint64_t b, uint64_t *v)
{
    switch (n->op) {
    case '+':
        *v = a + b * n->number;
        break;
    case '-':
        *v = a - b * n->number;
        break;
    case OP2('-', 'p'):
        *v = (int64_t)(a - b) / (int64_t)n->number;
        break;
    case '*':
        *v = a * b;
        break;
    case '/':
    case '%':
        return divide(n->op, a, b, operand.is_signed, v);
    case '&':
        *v = a & b;
        break;
    case '|':
        *v = a | b;
        break;
    case '^':
        *v = a ^ b;
        break;
    case OP2('<', '<'):
    case OP2('>', '>'):
        *v = shift(n->op, a, b, n->type);
        break;
    default:
        *v = compare(n->op, a, b, operand.is_signed);
    }
    return TT_OK;
}

static TtStatus read_memory(const TtCond *c, const TtCondNode *n,
                            const TtCondSource *source, uint64_t *v)
{
    unsigned len = tt_cond_type_bytes(n->type);
    uint8_t bytes[8] = { 0 };
    uint64_t addr;
    TtStatus s = tt_cond_eval_node(c, n->a, source, &addr);

    if (s == TT_OK && !source->mem(source->opaque, addr, bytes, len)) {
        s = TT_ERR_INVALID;
    }
    *v = tt_get_le64(bytes);
    return s;
}

static TtStatus binary(const TtCond *c, const TtCondNode *n,
                       const TtCondSource *source, uint64_t *v)
{
    bool is_or = n->op == OP2('|', '|');
    uint64_t a, b;
    TtStatus s = tt_cond_eval_node(c, n->a, source, &a);

    if (s == TT_OK && (is_or || n->op == OP2('&', '&'))) {
        if ((a != 0) == is_or) {
            *v = is_or;
            return TT_OK;
        }
        s = tt_cond_eval_node(c, n->b, source, &b);
        *v = b != 0;
        return s;
    }
    if (s == TT_OK) {
        s = tt_cond_eval_node(c, n->b, source, &b);
    }
    return s == TT_OK ? compute(n, c->nodes[n->a].type, a, b, v) : s;
}

static TtStatus evaluate(const TtCond *c, const TtCondNode *n,
                         const TtCondSource *source, uint64_t *v)
{
    uint64_t a;
    TtStatus s;

    switch (n->kind) {
    case NODE_CONST:
        *v = n->number;
        return TT_OK;
    case NODE_REG:
        s = source->reg(source->opaque, n->reg, v) ? TT_OK : TT_ERR_INVALID;
        *v >>= n->shift;
        return s;
    case NODE_READ:
        return read_memory(c, n, source, v);
    case NODE_CAST:
        s = tt_cond_eval_node(c, n->a, source, v);
        if (n->type.is_bool && !n->type.stars) {
            *v = !!*v;
        }
        return s;
    case NODE_UNARY:
        s = tt_cond_eval_node(c, n->a, source, &a);
        *v = n->op == '!' ? !a : n->op == '~' ? ~a : n->op == '-' ? -a : a;
        return s;
    case NODE_BINARY:
        return binary(c, n, source, v);
    case NODE_TEST:
        s = tt_cond_eval_node(c, n->c, source, &a);
        return s == TT_OK ? tt_cond_eval_node(c, a ? n->a : n->b, source, v) : s;
    }
    g_assert_not_reached();
}

TtStatus tt_cond_eval_node(const TtCond *c, unsigned node, const TtCondSource *source,
                           uint64_t *value)
{
    const TtCondNode *n = &c->nodes[node];
    TtStatus s;

    *value = 0;
    s = evaluate(c, n, source, value);
    *value = s == TT_OK ? fit(*value, n->type) : 0;
    return s;
}

TtStatus tt_cond_eval(const TtCond *c, const TtCondSource *source, uint64_t *value)
{
    return tt_cond_eval_node(c, c->root, source, value);
}

/* ---- where it can become true ---- */

static bool no_reg(void *opaque, TtCondReg reg, uint64_t *value)
{
    return false;
}

static bool no_mem(void *opaque, uint64_t addr, uint8_t *bytes, unsigned len)
{
    return false;
}

static bool is_constant(const TtCond *c, unsigned node, uint64_t *value)
{
    static const TtCondSource none = { NULL, no_reg, no_mem };

    return tt_cond_eval_node(c, node, &none, value) == TT_OK;
}

/* $rip, however it was cast to another type of 64 bits */
static bool is_rip(const TtCond *c, unsigned node)
{
    const TtCondNode *n = &c->nodes[node];

    while (n->kind == NODE_CAST && tt_cond_type_bytes(n->type) == 8) {
        n = &c->nodes[n->a];
    }
    return n->kind == NODE_REG && n->reg == TT_COND_RIP && n->type.bytes == 8;
}

static bool add_place(TtCond *c, uint64_t place)
{
    if (c->n_places == TT_COND_PLACES_MAX) {
        return false;
    }
    c->places[c->n_places++] = place;
    return true;
}

/* Is it true at some places only? They are added to what there is, or nothing is. */
static bool find_places(TtCond *c, unsigned node)
{
    const TtCondNode *n = &c->nodes[node];
    size_t before = c->n_places;
    uint64_t place;

    if (n->kind == NODE_BINARY && n->op == OP2('=', '=')) {
        return ((is_rip(c, n->a) && is_constant(c, n->b, &place)) ||
                (is_rip(c, n->b) && is_constant(c, n->a, &place))) &&
            add_place(c, place);
    }
    if (n->kind == NODE_BINARY && n->op == OP2('&', '&')) {
        return find_places(c, n->a) || find_places(c, n->b);
    }
    if (n->kind == NODE_BINARY && n->op == OP2('|', '|')) {
        if (find_places(c, n->a) && find_places(c, n->b)) {
            return true;
        }
        c->n_places = before;
    }
    return false;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void sort_places(TtCond *c)
{
    size_t n = 0;

    qsort(c->places, c->n_places, sizeof(c->places[0]), by_number);
    for (size_t i = 0; i < c->n_places; i++) {
        if (!n || c->places[i] != c->places[n - 1]) {
            c->places[n++] = c->places[i];
        }
    }
    c->n_places = n;
}

/* What its value depends on: nodes that no operator uses any more are none. */
static void look_through(const TtCond *c, unsigned node, bool *memory, bool *scope,
                         bool *regs)
{
    const TtCondNode *n = &c->nodes[node];

    switch (n->kind) {
    case NODE_CONST:
        return;
    case NODE_REG:
        *(n->reg == TT_COND_CPU || n->reg == TT_COND_CR3 ? scope : regs) = true;
        return;
    case NODE_READ:
        *memory = true;
        break;
    case NODE_TEST:
        look_through(c, n->c, memory, scope, regs);
        look_through(c, n->b, memory, scope, regs);
        break;
    case NODE_BINARY:
        look_through(c, n->b, memory, scope, regs);
        break;
    case NODE_CAST:
    case NODE_UNARY:
        break;
    }
    look_through(c, n->a, memory, scope, regs);
}

/* Then it has no value, wherever that is asked for. */
static bool divides_by_zero(const TtCond *c)
{
    uint64_t by;

    for (unsigned i = 0; i < c->n_nodes; i++) {
        const TtCondNode *n = &c->nodes[i];

        if (n->kind == NODE_BINARY && (n->op == '/' || n->op == '%') &&
            is_constant(c, n->b, &by) && !by) {
            return true;
        }
    }
    return false;
}

TtStatus tt_cond_classify(TtCond *c, int at, TtDiag *diag)
{
    bool memory = false, scope = false, regs = false;
    uint64_t place;

    if (divides_by_zero(c)) {
        return tt_fail(diag, TT_ERR_INVALID, "the condition divides by zero: a divisor in it "
                       "is 0 everywhere");
    }
    if (c->has_at) {
        if (!is_constant(c, at, &place)) {
            return tt_fail(diag, TT_ERR_FORMAT, "'at' must be followed by an address "
                           "that never changes");
        }
        add_place(c, place);
        c->kind = TT_COND_AT_PLACES;
        return TT_OK;
    }
    look_through(c, c->root, &memory, &scope, &regs);
    if (!memory && !scope && !regs) {
        return tt_fail(diag, TT_ERR_INVALID, "nothing in the condition ever changes: it "
                       "has neither a register nor memory");
    }
    if (find_places(c, c->root)) {
        sort_places(c);
        c->kind = TT_COND_AT_PLACES;
    } else {
        c->n_places = 0;
        c->kind = regs || !memory ? TT_COND_OF_REGISTERS : TT_COND_OF_MEMORY;
    }
    return TT_OK;
}

TtCondKind tt_cond_kind(const TtCond *c)
{
    return c->kind;
}

const uint64_t *tt_cond_places(const TtCond *c, size_t *n)
{
    *n = c->n_places;
    return c->places;
}

bool tt_cond_has_at(const TtCond *c)
{
    return c->has_at;
}

bool tt_cond_is_read(const TtCond *c)
{
    return !c->has_at && c->nodes[c->root].kind == NODE_READ;
}

/* ---- the memory that it is the value of ---- */

/* What a bit-field is made of besides casts. */
static bool takes_bits(const TtCond *c, const TtCondNode *n)
{
    uint64_t ignored;

    return n->kind == NODE_BINARY &&
        (n->op == OP2('<', '<') || n->op == OP2('>', '>') || n->op == '&') &&
        is_constant(c, n->b, &ignored);
}

/* The read, or NULL. */
static const TtCondNode *read_of(const TtCond *c)
{
    const TtCondNode *n = &c->nodes[c->root];

    while (n->kind == NODE_CAST || takes_bits(c, n)) {
        n = &c->nodes[n->a];
    }
    return n->kind == NODE_READ && !c->has_at ? n : NULL;
}

/* Of the bits @wanted of the node's value, those that it has of its own: above its type
 * are zeros, or copies of its sign. */
static uint64_t own_bits(uint64_t wanted, TtCondType t)
{
    unsigned bits = tt_cond_type_bytes(t) * 8;
    uint64_t own = bits < 64 ? (1ull << bits) - 1 : UINT64_MAX;

    return (wanted & own) | (t.is_signed && wanted & ~own ? 1ull << (bits - 1) : 0);
}

/* Of those, the bits of its operand that they come from. */
static uint64_t bits_below(const TtCond *c, const TtCondNode *n, uint64_t wanted)
{
    uint64_t k = 0;

    if (n->kind == NODE_CAST) {
        return n->type.is_bool && !n->type.stars ? UINT64_MAX : wanted;
    }
    is_constant(c, n->b, &k);
    if (n->op == '&') {
        return wanted & k;
    }
    if (n->op == OP2('<', '<')) {
        return k < tt_cond_type_bytes(n->type) * 8 ? wanted >> k : 0;
    }
    if (n->type.is_signed) {
        k = MIN(k, 63);
        return wanted << k | (k && wanted >> (64 - k) ? 1ull << 63 : 0);
    }
    return k < 64 ? wanted << k : 0;
}

/* The bytes of the read @n that the value depends on; all, if that is none. */
static void narrow(const TtCond *c, const TtCondNode *n, uint64_t *addr, unsigned *len)
{
    uint64_t wanted = UINT64_MAX;

    for (const TtCondNode *m = &c->nodes[c->root]; m != n; m = &c->nodes[m->a]) {
        wanted = bits_below(c, m, own_bits(wanted, m->type));
    }
    wanted = own_bits(wanted, n->type);
    if (wanted) {
        *addr += __builtin_ctzll(wanted) / 8;
        *len = (63 - __builtin_clzll(wanted)) / 8 - __builtin_ctzll(wanted) / 8 + 1;
    }
}

TtStatus tt_cond_place(const TtCond *c, const TtCondSource *source, uint64_t *addr,
                       unsigned *len)
{
    const TtCondNode *n = read_of(c);
    TtStatus s = n ? tt_cond_eval_node(c, n->a, source, addr) : TT_ERR_INVALID;

    *len = n ? tt_cond_type_bytes(n->type) : 0;
    if (s == TT_OK) {
        narrow(c, n, addr, len);
    }
    return s;
}

/* ---- how it may be searched for ---- */

static TtStatus refuse(TtDiag *diag, const char *why)
{
    return tt_fail(diag, TT_ERR_INVALID, "%s", why);
}

TtStatus tt_cond_check(const TtCond *c, unsigned how, uint64_t from, uint64_t to,
                       TtDiag *diag)
{
    bool changes = how & TT_COND_CHANGES, monotone = how & TT_COND_MONOTONE;

    if (how & (how - 1)) {
        return refuse(diag, "'changes', 'written' and 'monotone' exclude each other: leave "
                      "out all but one");
    }
    if (how & TT_COND_WRITTEN && !read_of(c)) {
        return refuse(diag, "'written' needs one place in memory: a variable, or *(u32 *)"
                      "ADDRESS, without a comparison and without 'at'");
    }
    if (monotone && c->kind == TT_COND_AT_PLACES) {
        return refuse(diag, "a condition of $rip, or with 'at', does not stay true: "
                      "leave out 'monotone'");
    }
    if (changes && c->kind == TT_COND_AT_PLACES && !c->has_at) {
        return refuse(diag, "to see how something changes from one execution of an address "
                      "to the next, write it as EXPRESSION at ADDRESS");
    }
    if (!monotone && c->kind == TT_COND_OF_REGISTERS && to > from &&
        to - from > TT_COND_STEPS_MAX) {
        return tt_fail(diag, TT_ERR_INVALID, "registers can change with each "
                       "instruction, so say where to look: put '$rip == ADDRESS &&' in "
                       "front, or give a part of the run of at most %d positions",
                       TT_COND_STEPS_MAX);
    }
    return TT_OK;
}
