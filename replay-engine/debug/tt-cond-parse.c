/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The grammar of conditions, with types and without: C's expressions without assignment,
 * calls, commas and floating point. What they become, a builder makes (tt-cond-int.h).
 */
#include "debug/tt-cond.h"
#include "tt-cond-int.h"

#include <glib.h>

/* ---- operators with two operands ---- */

enum { EQUAL = 6, LESS = 7 };

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
        return LESS;
    case OP2('=', '='): case OP2('!', '='):
        return EQUAL;
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

static const TtCondType int_type = { 4, true };

TtCondType tt_cond_promoted(TtCondType t)
{
    return t.stars || t.bytes >= 4 ? t : int_type;
}

TtCondType tt_cond_common(TtCondType a, TtCondType b)
{
    if (a.stars || b.stars) {
        return (TtCondType) { 8, false };
    }
    a = tt_cond_promoted(a);
    b = tt_cond_promoted(b);
    return a.bytes == b.bytes ? (TtCondType) { a.bytes, a.is_signed && b.is_signed } :
        a.bytes > b.bytes ? a : b;
}

bool tt_cond_result(TtCondLexer *l, int op, TtCondType a, TtCondType b, TtCondType *both,
                    TtCondType *result)
{
    bool is_shift = op == OP2('<', '<') || op == OP2('>', '>');
    int strength = tt_cond_strength(op);
    bool is_logic = op == OP2('&', '&') || op == OP2('|', '|');

    *both = is_shift || is_logic ? (TtCondType) { 0 } : tt_cond_common(a, b);
    if (is_logic || strength == EQUAL || strength == LESS) {
        *result = int_type;
        return true;
    }
    if (a.stars || b.stars) {
        tt_cond_lex_fail(l, "an operator needs numbers, not a pointer: cast it to u64");
        return false;
    }
    *result = is_shift ? tt_cond_promoted(a) : *both;
    return true;
}

/* ---- the parser ---- */

typedef struct Parser {
    TtCondLexer *l;
    const TtCondBuilder *b;
    void *opaque;               /* the builder's */
    unsigned depth;
} Parser;

#define NONE TT_COND_NO_VALUE   /* here: something is wrong, and it was said */

static TtCondValue expression(Parser *p);
static TtCondValue unary(Parser *p);

static bool is_op(const Parser *p, int op)
{
    return p->l->token == TOKEN_OPERATOR && p->l->op == op;
}

static bool is_fine(const Parser *p)
{
    return p->l->status == TT_OK;
}

static TtCondValue fail(Parser *p, const char *why)
{
    p->l->about = NULL;
    tt_cond_lex_fail(p->l, "%s", why);
    return NONE;
}

/* @op must be here, behind @v. */
static TtCondValue expect(Parser *p, int op, const char *where, TtCondValue v)
{
    if (!is_op(p, op)) {
        p->l->about = NULL;
        tt_cond_lex_fail(p->l, "'%c' is missing %s", op, where);
        return NONE;
    }
    tt_cond_lex_next(p->l);
    return v;
}

static bool enter(Parser *p)
{
    if (p->depth == TT_COND_DEPTH_MAX) {
        tt_cond_lex_fail_large(p->l, "nested brackets");
        return false;
    }
    p->depth++;
    return true;
}

/* ---- operands ---- */

static TtCondValue bracket(Parser *p, int end)
{
    TtCondValue v;

    tt_cond_lex_next(p->l);
    v = expression(p);
    return is_fine(p) ? expect(p, end, "here", v) : NONE;
}

/* "(TYPE)" is read. False: there is none, or it was complained. */
static bool type_in_brackets(Parser *p, TtCondType *type)
{
    TtCondLexer before = *p->l;

    tt_cond_lex_next(p->l);
    if (p->b->type(p->opaque, type)) {
        return expect(p, ')', "after a type", 0) != NONE;
    }
    if (is_fine(p)) {
        *p->l = before;
    }
    return false;
}

/* "sizeof(struct x)", "sizeof x" */
static TtCondValue size_of(Parser *p)
{
    const char *at = p->l->start;
    TtCondType type;
    TtCondValue v;

    tt_cond_lex_next(p->l);
    if (is_op(p, '(') && type_in_brackets(p, &type)) {
        p->l->about = at;
        return p->b->size_of_type(p->opaque, type);
    }
    v = is_fine(p) ? unary(p) : NONE;
    p->l->about = at;
    return is_fine(p) ? p->b->size_of(p->opaque, v) : NONE;
}

static TtCondValue reg(Parser *p)
{
    int len = p->l->at - p->l->start;
    TtCondNode node;

    if (!tt_cond_find_reg(p->l->start + 1, len - 1, &node)) {
        tt_cond_lex_fail(p->l, "there is no register '%.*s'", MIN(len, 60), p->l->start);
        return NONE;
    }
    return p->b->reg(p->opaque, &node);
}

static TtCondValue primary(Parser *p)
{
    TtCondLexer *l = p->l;
    TtCondValue v;

    switch (l->token) {
    case TOKEN_NUMBER:
        v = p->b->number(p->opaque, (TtCondType) { l->is_long ? 8 : 4, !l->is_unsigned },
                         l->number);
        break;
    case TOKEN_REGISTER:
        v = reg(p);
        break;
    case TOKEN_WORD:
        if (tt_cond_lex_is_word(l, "at")) {
            return fail(p, "an operand is missing before 'at'");
        }
        if (p->b->size_of && tt_cond_lex_is_word(l, "sizeof")) {
            return size_of(p);
        }
        v = p->b->name(p->opaque);
        break;
    case TOKEN_END:
        return fail(p, "an operand is missing at the end");
    default:
        return is_op(p, '(') ? bracket(p, ')') : fail(p, "an operand is missing here");
    }
    tt_cond_lex_next(l);
    return v;
}

/* ---- operators behind and before an operand ---- */

static TtCondValue element(Parser *p, TtCondValue a)
{
    const char *at = p->l->start;
    TtCondValue index = bracket(p, ']');

    p->l->about = at;
    a = is_fine(p) ? p->b->binary(p->opaque, '+', a, index) : NONE;
    return is_fine(p) ? p->b->unary(p->opaque, '*', a) : NONE;
}

static TtCondValue member(Parser *p, TtCondValue a)
{
    bool by_pointer = !is_op(p, '.');

    tt_cond_lex_next(p->l);
    if (p->l->token != TOKEN_WORD) {
        return fail(p, "the name of a member is missing here");
    }
    a = p->b->member(p->opaque, a, by_pointer);
    tt_cond_lex_next(p->l);
    return a;
}

static TtCondValue postfix(Parser *p)
{
    TtCondValue a = primary(p);

    while (is_fine(p)) {
        if (is_op(p, '[')) {
            a = element(p, a);
        } else if (is_op(p, '.') || is_op(p, OP2('-', '>'))) {
            a = member(p, a);
        } else if (is_op(p, '(')) {
            return fail(p, "functions cannot be called, and names end before a bracket");
        } else {
            return a;
        }
    }
    return NONE;
}

/* "(u32 *)x", or a bracket */
static TtCondValue cast_or_bracket(Parser *p)
{
    const char *at = p->l->start;
    TtCondType type;
    TtCondValue a;

    if (!type_in_brackets(p, &type)) {
        return is_fine(p) ? postfix(p) : NONE;
    }
    a = unary(p);
    p->l->about = at;
    return is_fine(p) ? p->b->cast(p->opaque, type, a) : NONE;
}

static TtCondValue operator_before(Parser *p)
{
    const char *at = p->l->start;
    int op = p->l->op;
    TtCondValue a;

    tt_cond_lex_next(p->l);
    a = unary(p);
    p->l->about = at;
    return is_fine(p) ? p->b->unary(p->opaque, op, a) : NONE;
}

static TtCondValue unary(Parser *p)
{
    TtCondValue a;

    if (!enter(p)) {
        return NONE;
    }
    if (is_op(p, '(')) {
        a = cast_or_bracket(p);
    } else if (p->l->token == TOKEN_OPERATOR && p->l->op < 0x100 &&
               strchr("*&!~-+", p->l->op)) {
        a = operator_before(p);
    } else {
        a = postfix(p);
    }
    p->depth--;
    return a;
}

/* ---- with two operands ---- */

static TtCondValue climb(Parser *p, int least)
{
    TtCondValue a = unary(p);

    while (is_fine(p) && p->l->token == TOKEN_OPERATOR &&
           tt_cond_strength(p->l->op) >= least) {
        const char *at = p->l->start;
        int op = p->l->op;
        TtCondValue b;

        tt_cond_lex_next(p->l);
        b = climb(p, tt_cond_strength(op) + 1);
        p->l->about = at;
        a = is_fine(p) ? p->b->binary(p->opaque, op, a, b) : NONE;
    }
    return a;
}

static TtCondValue choice(Parser *p, TtCondValue test)
{
    const char *at = p->l->start;
    TtCondValue a, b = NONE;

    tt_cond_lex_next(p->l);
    a = expression(p);
    a = is_fine(p) ? expect(p, ':', "here", a) : NONE;
    b = is_fine(p) ? expression(p) : NONE;
    p->l->about = at;
    return is_fine(p) ? p->b->choose(p->opaque, test, a, b) : NONE;
}

static TtCondValue expression(Parser *p)
{
    TtCondValue a;

    if (!enter(p)) {
        return NONE;
    }
    a = climb(p, 1);
    if (is_fine(p) && is_op(p, '?')) {
        a = choice(p, a);
    }
    p->depth--;
    return a;
}

/* ---- all of it ---- */

/* Up to the end, or to "at". */
static TtCondValue whole(Parser *p, bool is_address, bool may_have_at)
{
    const char *start = p->l->start;
    TtCondValue v = expression(p);

    if (is_fine(p) && p->l->token != TOKEN_END &&
        !(may_have_at && tt_cond_lex_is_word(p->l, "at"))) {
        return fail(p, "an operator is missing here");
    }
    p->l->about = start;
    return is_fine(p) && p->b->whole ? p->b->whole(p->opaque, v, is_address) : v;
}

TtStatus tt_cond_read(TtCondLexer *l, const TtCondBuilder *b, void *opaque,
                      TtCondValue *what, TtCondValue *at)
{
    Parser p = { l, b, opaque };

    *what = NONE;
    if (!at || !tt_cond_lex_is_word(l, "at")) {
        *what = whole(&p, false, at);
    }
    if (at) {
        *at = NONE;
    }
    if (at && tt_cond_lex_is_word(l, "at")) {
        tt_cond_lex_next(l);
        *at = whole(&p, true, false);
    }
    return l->status;
}
