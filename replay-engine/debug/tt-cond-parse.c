/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parser of conditions: C's grammar of expressions without assignment, calls, commas
 * and floating point. Operands get C's usual conversions here, as casts, so that an
 * operator's two sides have one type when it is evaluated.
 */
#include "debug/tt-cond.h"
#include "tt-cond-int.h"

#include <glib.h>

typedef struct Parser {
    TtCondLexer l;
    TtCond *c;
    unsigned depth;
} Parser;

#define NONE 0xffff             /* no node: something is wrong, and it was said */

static unsigned expression(Parser *p);
static unsigned unary(Parser *p);

static bool is_op(const Parser *p, int op)
{
    return p->l.token == TOKEN_OPERATOR && p->l.op == op;
}

static unsigned fail_large(Parser *p, const char *what)
{
    if (p->l.status == TT_OK) {
        p->l.token = TOKEN_BAD;
        p->l.status = tt_fail(p->l.diag, TT_ERR_LIMIT, "the condition has too many %s",
                              what);
    }
    return NONE;
}

static unsigned add(Parser *p, TtCondNode node)
{
    if (p->l.status != TT_OK) {
        return NONE;
    }
    if (p->c->n_nodes == TT_COND_NODES_MAX) {
        return fail_large(p, "operators");
    }
    p->c->nodes[p->c->n_nodes] = node;
    return p->c->n_nodes++;
}

static TtCondType type_of(const Parser *p, unsigned node)
{
    return p->c->nodes[node].type;
}

/* ---- types ---- */

static const TtCondType int_type = { 4, true }, u64_type = { 8, false },
                        s64_type = { 8, true };

static TtCondType promoted(TtCondType t)
{
    return t.stars || t.bytes >= 4 ? t : int_type;
}

/* Of both operands; pointers are compared as addresses. */
static TtCondType common(TtCondType a, TtCondType b)
{
    if (a.stars || b.stars) {
        return u64_type;
    }
    a = promoted(a);
    b = promoted(b);
    return a.bytes == b.bytes ? (TtCondType) { a.bytes, a.is_signed && b.is_signed } :
        a.bytes > b.bytes ? a : b;
}

static unsigned cast(Parser *p, unsigned a, TtCondType type)
{
    return add(p, (TtCondNode) { .kind = NODE_CAST, .type = type, .a = a });
}

/* How far the next element is; a void * is counted in bytes, as by gdb. */
static uint64_t step_of(TtCondType t)
{
    return t.stars > 1 ? 8 : MAX(t.bytes, 1);
}

/* ---- operands ---- */

static unsigned read_at(Parser *p, unsigned addr)
{
    TtCondType t;

    if (addr == NONE) {
        return NONE;
    }
    t = type_of(p, addr);
    if (!t.stars || (t.stars == 1 && !t.bytes)) {
        tt_cond_lex_fail(&p->l, "* needs an address with a type: *(u32 *)ADDRESS");
        return NONE;
    }
    t.stars--;
    return add(p, (TtCondNode) { .kind = NODE_READ, .type = t, .a = addr });
}

static unsigned address_of(Parser *p, unsigned a)
{
    unsigned addr;
    TtCondType t;

    if (a == NONE) {
        return NONE;
    }
    if (p->c->nodes[a].kind != NODE_READ) {
        tt_cond_lex_fail(&p->l, "& needs an operand in memory");
        return NONE;
    }
    addr = p->c->nodes[a].a;
    t = type_of(p, a);
    t.stars++;
    return cast(p, addr, t);
}

static unsigned plus(Parser *p, int op, unsigned a, unsigned b);

static unsigned bracket(Parser *p, int end)
{
    unsigned e;

    tt_cond_lex_next(&p->l);
    e = expression(p);
    if (!is_op(p, end)) {
        tt_cond_lex_fail(&p->l, "'%c' is missing here", end);
        return NONE;
    }
    tt_cond_lex_next(&p->l);
    return e;
}

static unsigned number(Parser *p)
{
    unsigned node = add(p, (TtCondNode) {
        .kind = NODE_CONST, .number = p->l.number,
        .type = { p->l.is_long ? 8 : 4, !p->l.is_unsigned },
    });

    tt_cond_lex_next(&p->l);
    return node;
}

static unsigned reg(Parser *p)
{
    TtCondNode node;

    if (!tt_cond_find_reg(p->l.start + 1, p->l.at - p->l.start - 1, &node)) {
        tt_cond_lex_fail(&p->l, "there is no register '%.*s'",
                         (int)MIN(p->l.at - p->l.start, 60), p->l.start);
        return NONE;
    }
    tt_cond_lex_next(&p->l);
    return add(p, node);
}

static unsigned primary(Parser *p)
{
    switch (p->l.token) {
    case TOKEN_NUMBER:
        return number(p);
    case TOKEN_REGISTER:
        return reg(p);
    case TOKEN_WORD:
        tt_cond_lex_fail(&p->l, "'%.*s' is not known here: registers are written as "
                         "$rax, and names of a program need its symbols",
                         (int)MIN(p->l.at - p->l.start, 60), p->l.start);
        return NONE;
    case TOKEN_END:
        tt_cond_lex_fail(&p->l, "an operand is missing at the end");
        return NONE;
    default:
        if (is_op(p, '(')) {
            return bracket(p, ')');
        }
        tt_cond_lex_fail(&p->l, "an operand is missing here");
        return NONE;
    }
}

static unsigned postfix(Parser *p)
{
    unsigned a = primary(p);

    while (a != NONE && p->l.token == TOKEN_OPERATOR) {
        if (is_op(p, '[')) {
            unsigned index = bracket(p, ']');

            a = index == NONE ? NONE : read_at(p, plus(p, '+', a, index));
        } else if (is_op(p, '.') || is_op(p, OP2('-', '>'))) {
            tt_cond_lex_fail(&p->l, "a member needs the type of what is before it, "
                             "which only a name from debug information has");
            return NONE;
        } else {
            break;
        }
    }
    return a;
}

/* "(u32 *)x", or a bracket */
static unsigned cast_or_bracket(Parser *p)
{
    TtCondLexer before = p->l;
    TtCondType type;
    unsigned a;

    tt_cond_lex_next(&p->l);
    if (!tt_cond_type(&p->l, &type)) {
        if (p->l.status == TT_OK) {
            p->l = before;
        }
        return postfix(p);
    }
    if (!is_op(p, ')')) {
        tt_cond_lex_fail(&p->l, "')' is missing after a type");
        return NONE;
    }
    if (!type.bytes && !type.stars) {
        tt_cond_lex_fail(&p->l, "nothing can be cast to void");
        return NONE;
    }
    tt_cond_lex_next(&p->l);
    a = unary(p);
    return a == NONE ? NONE : cast(p, a, type);
}

static unsigned operator_before(Parser *p, int op)
{
    unsigned a;

    tt_cond_lex_next(&p->l);
    a = unary(p);
    if (a == NONE) {
        return NONE;
    }
    switch (op) {
    case '*':
        return read_at(p, a);
    case '&':
        return address_of(p, a);
    case '!':
        return add(p, (TtCondNode) { .kind = NODE_UNARY, .op = op, .type = int_type,
                                     .a = a });
    default:
        if (type_of(p, a).stars) {
            tt_cond_lex_fail(&p->l, "'%c' needs a number, not a pointer", op);
            return NONE;
        }
        return add(p, (TtCondNode) { .kind = NODE_UNARY, .op = op, .a = a,
                                     .type = promoted(type_of(p, a)) });
    }
}

static unsigned unary(Parser *p)
{
    unsigned a;

    if (p->depth == TT_COND_DEPTH_MAX) {
        return fail_large(p, "nested brackets");
    }
    p->depth++;
    if (is_op(p, '(')) {
        a = cast_or_bracket(p);
    } else if (p->l.token == TOKEN_OPERATOR && p->l.op < 0x100 &&
               strchr("*&!~-+", p->l.op)) {
        a = operator_before(p, p->l.op);
    } else {
        a = postfix(p);
    }
    p->depth--;
    return a;
}

/* ---- operators with two operands ---- */

static unsigned binary(Parser *p, int op, TtCondType type, unsigned a, unsigned b)
{
    return add(p, (TtCondNode) { .kind = NODE_BINARY, .op = op, .type = type,
                                 .number = 1, .a = a, .b = b });
}

/* Both get one type; the result is of that, or @result if it has one. */
static unsigned arithmetic(Parser *p, int op, unsigned a, unsigned b,
                           const TtCondType *result)
{
    TtCondType t = common(type_of(p, a), type_of(p, b));
    unsigned x = cast(p, a, t), y = cast(p, b, t);

    return binary(p, op, result ? *result : t, x, y);
}

static unsigned plus(Parser *p, int op, unsigned a, unsigned b)
{
    TtCondType t, u;
    unsigned node;

    if (a == NONE || b == NONE) {
        return NONE;
    }
    t = type_of(p, a);
    u = type_of(p, b);
    if (!t.stars && u.stars && op == '+') {
        return plus(p, op, b, a);
    }
    if (!t.stars && !u.stars) {
        return arithmetic(p, op, a, b, NULL);
    }
    if (!t.stars || (u.stars && (op == '+' || step_of(t) != step_of(u)))) {
        tt_cond_lex_fail(&p->l, "these pointers cannot be added or subtracted");
        return NONE;
    }
    node = binary(p, u.stars ? OP2('-', 'p') : op, u.stars ? s64_type : t, a,
                  u.stars ? b : cast(p, b, s64_type));
    if (node != NONE) {
        p->c->nodes[node].number = step_of(t);
    }
    return node;
}

static unsigned combine(Parser *p, int op, unsigned a, unsigned b)
{
    bool pointers = type_of(p, a).stars || type_of(p, b).stars;

    switch (op) {
    case '+':
    case '-':
        return plus(p, op, a, b);
    case OP2('&', '&'):
    case OP2('|', '|'):
        return binary(p, op, int_type, a, b);
    case OP2('=', '='):
    case OP2('!', '='):
    case OP2('<', '='):
    case OP2('>', '='):
    case '<':
    case '>':
        return arithmetic(p, op, a, b, &int_type);
    case OP2('<', '<'):
    case OP2('>', '>'):
        if (!pointers) {
            return binary(p, op, promoted(type_of(p, a)), a, b);
        }
        break;
    default:
        if (!pointers) {
            return arithmetic(p, op, a, b, NULL);
        }
    }
    tt_cond_lex_fail(&p->l, "an operator needs numbers, not a pointer: cast it to u64");
    return NONE;
}

int tt_cond_strength(int op)
{
    switch (op) {
    case '*': case '/': case '%':
        return 10;
    case '+': case '-':
        return 9;
    case OP2('<', '<'): case OP2('>', '>'):
        return 8;
    case '<': case '>': case OP2('<', '='): case OP2('>', '='):
        return 7;
    case OP2('=', '='): case OP2('!', '='):
        return 6;
    case '&':
        return 5;
    case '^':
        return 4;
    case '|':
        return 3;
    case OP2('&', '&'):
        return 2;
    case OP2('|', '|'):
        return 1;
    default:
        return 0;
    }
}

static unsigned climb(Parser *p, int least)
{
    unsigned a = unary(p);

    while (a != NONE && p->l.token == TOKEN_OPERATOR &&
           tt_cond_strength(p->l.op) >= least) {
        int op = p->l.op;
        unsigned b;

        tt_cond_lex_next(&p->l);
        b = climb(p, tt_cond_strength(op) + 1);
        a = b == NONE ? NONE : combine(p, op, a, b);
    }
    return p->l.status == TT_OK ? a : NONE;
}

static unsigned choice(Parser *p, unsigned test)
{
    unsigned a, b;
    TtCondType t, u;

    tt_cond_lex_next(&p->l);
    a = expression(p);
    if (!is_op(p, ':')) {
        tt_cond_lex_fail(&p->l, "':' is missing here");
        return NONE;
    }
    tt_cond_lex_next(&p->l);
    b = expression(p);
    if (a == NONE || b == NONE) {
        return NONE;
    }
    t = type_of(p, a);
    u = type_of(p, b);
    if (!t.stars || !u.stars || memcmp(&t, &u, sizeof(t))) {
        t = common(t, u);
        a = cast(p, a, t);
        b = cast(p, b, t);
    }
    return add(p, (TtCondNode) { .kind = NODE_TEST, .type = t, .a = a, .b = b,
                                 .c = test });
}

static unsigned expression(Parser *p)
{
    unsigned a;

    if (p->depth == TT_COND_DEPTH_MAX) {
        return fail_large(p, "nested brackets");
    }
    p->depth++;
    a = climb(p, 1);
    if (a != NONE && is_op(p, '?')) {
        a = choice(p, a);
    }
    p->depth--;
    return a;
}

/* ---- all of it ---- */

/* "EXPRESSION", "EXPRESSION at ADDRESS", "at ADDRESS" */
static TtStatus parse(Parser *p, TtDiag *diag)
{
    unsigned root = NONE;
    int at = -1;

    if (!tt_cond_lex_is_word(&p->l, "at")) {
        root = expression(p);
    }
    if (tt_cond_lex_is_word(&p->l, "at")) {
        if (root == NONE) {
            root = add(p, (TtCondNode) { .kind = NODE_CONST, .type = int_type,
                                         .number = 1 });
        }
        p->c->has_at = true;
        tt_cond_lex_next(&p->l);
        at = expression(p);
    }
    if (p->l.status == TT_OK && p->l.token != TOKEN_END) {
        tt_cond_lex_fail(&p->l, "an operator is missing here");
    }
    if (p->l.status != TT_OK) {
        return p->l.status;
    }
    p->c->root = root;
    return tt_cond_classify(p->c, at, diag);
}

TtStatus tt_cond_parse(const char *text, TtCond **out, TtDiag *diag)
{
    Parser p = { .c = g_new0(TtCond, 1) };
    TtStatus s;

    *out = NULL;
    tt_cond_lex_init(&p.l, text, diag);
    s = p.l.status == TT_OK ? parse(&p, diag) : p.l.status;
    if (s == TT_OK) {
        *out = p.c;
    } else {
        tt_cond_free(p.c);
    }
    return s;
}

void tt_cond_free(TtCond *c)
{
    g_free(c);
}
