/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Operators with two operands, and the types of what they make.
 */
#include "tt-lower-int.h"

#include <inttypes.h>

static const LowerVal nothing;

static TtCondType number_of(Lower *p, const LowerVal *v)
{
    TtTypeInfo info;
    LowerType to;

    tt_lower_describe(p, v->type, &info, &to);
    return (TtCondType) { .bytes = info.bytes, .is_signed = info.is_signed };
}

LowerType tt_lower_promoted(Lower *p, const LowerVal *v)
{
    TtCondType t = number_of(p, v);

    return t.bytes >= 4 ? tt_lower_basic(t.bytes, t.is_signed) : tt_lower_int();
}

/* Of both operands. */
static LowerType common(Lower *p, const LowerVal *a, const LowerVal *b)
{
    LowerType t = tt_lower_promoted(p, a), u = tt_lower_promoted(p, b);

    return t.basic.bytes == u.basic.bytes ?
        tt_lower_basic(t.basic.bytes, t.basic.is_signed && u.basic.is_signed) :
        t.basic.bytes > u.basic.bytes ? t : u;
}

static LowerVal binary(Lower *p, int op, LowerType type, LowerVal a, LowerVal b)
{
    int level = tt_cond_strength(op);
    char sign[3] = { op > 0xff ? op >> 8 : op, op > 0xff ? op & 0xff : 0, 0 };

    return tt_lower_of_text(type, tt_lower_text(p, "%s %s %s",
                                                tt_lower_operand(p, &a, level), sign,
                                                tt_lower_operand(p, &b, level + 1)), level);
}

/* The number of elements between two pointers. */
static LowerVal distance(Lower *p, LowerVal a, LowerVal b)
{
    TtTypeInfo info;
    LowerType to, other;
    uint64_t size;

    tt_lower_describe(p, a.type, &info, &to);
    tt_lower_describe(p, b.type, &info, &other);
    size = tt_lower_size(p, to);
    if (tt_lower_size(p, other) != size) {
        tt_cond_lex_fail(&p->l, "these pointers cannot be added or subtracted");
    }
    return tt_lower_of_text(
        tt_lower_basic(8, true),
        tt_lower_text(p, "(s64)(%s - %s) / (s64)0x%" PRIx64,
                      tt_lower_operand(p, &a, LEVEL_SUM),
                      tt_lower_operand(p, &b, LEVEL_SUM + 1), MAX(size, 1)),
        LEVEL_SUM + 1);
}

static LowerVal sum(Lower *p, int op, LowerVal a, LowerVal b)
{
    bool x = tt_lower_is_pointer(p, &a), y = tt_lower_is_pointer(p, &b);

    if (p->l.status != TT_OK) {
        return nothing;
    }
    if (!x && !y) {
        return binary(p, op, common(p, &a, &b), a, b);
    }
    if (x && y && op == '-') {
        return distance(p, a, b);
    }
    if (x && !y) {
        return tt_lower_index(p, a, b, op == '-' ? -1 : 1);
    }
    if (y && !x && op == '+') {
        return tt_lower_index(p, b, a, 1);
    }
    tt_cond_lex_fail(&p->l, "these pointers cannot be added or subtracted");
    return nothing;
}

LowerVal tt_lower_combine(Lower *p, int op, LowerVal a, LowerVal b)
{
    bool pointers = tt_lower_is_pointer(p, &a) || tt_lower_is_pointer(p, &b);

    switch (op) {
    case '+':
    case '-':
        return sum(p, op, a, b);
    case OP2('&', '&'):
    case OP2('|', '|'):
    case OP2('=', '='):
    case OP2('!', '='):
    case OP2('<', '='):
    case OP2('>', '='):
    case '<':
    case '>':
        return binary(p, op, tt_lower_int(), a, b);
    default:
        if (pointers) {
            tt_cond_lex_fail(&p->l, "an operator needs numbers, not a pointer: cast it to "
                             "u64");
            return nothing;
        }
        return binary(p, op, op == OP2('<', '<') || op == OP2('>', '>') ?
                      tt_lower_promoted(p, &a) : common(p, &a, &b), a, b);
    }
}

LowerVal tt_lower_choose(Lower *p, LowerVal test, LowerVal a, LowerVal b)
{
    LowerType type = tt_lower_is_pointer(p, &a) ? a.type :
        tt_lower_is_pointer(p, &b) ? b.type : common(p, &a, &b);
    const char *text = tt_lower_text(p, "%s ? %s : %s",
                                     tt_lower_operand(p, &test, LEVEL_CHOICE + 1),
                                     tt_lower_operand(p, &a, LEVEL_CHOICE),
                                     tt_lower_operand(p, &b, LEVEL_CHOICE));

    return tt_lower_of_text(type, text, LEVEL_CHOICE);
}
