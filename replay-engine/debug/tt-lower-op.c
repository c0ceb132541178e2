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
    TtCondType to;

    tt_lower_describe(p, v->type, &info, &to);
    return (TtCondType) {
        .bytes = info.bytes, .is_signed = info.is_signed,
        .stars = info.kind == TT_TYPE_POINTER,
    };
}

TtCondType tt_lower_promoted(Lower *p, const LowerVal *v)
{
    return tt_cond_promoted(number_of(p, v));
}

static LowerVal binary(Lower *p, int op, TtCondType type, LowerVal a, LowerVal b)
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
    TtCondType to, other;
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

/* One of them is a pointer. */
static LowerVal sum(Lower *p, int op, LowerVal a, LowerVal b)
{
    bool x = tt_lower_is_pointer(p, &a), y = tt_lower_is_pointer(p, &b);

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
    TtCondType t = number_of(p, &a), u = number_of(p, &b), both, result;

    if ((op == '+' || op == '-') && (t.stars || u.stars)) {
        return sum(p, op, a, b);
    }
    return tt_cond_result(&p->l, op, t, u, &both, &result) ? binary(p, op, result, a, b) :
        nothing;
}

LowerVal tt_lower_choose(Lower *p, LowerVal test, LowerVal a, LowerVal b)
{
    TtCondType t = number_of(p, &a), u = number_of(p, &b);
    TtCondType type = t.stars ? a.type : u.stars ? b.type : tt_cond_common(t, u);
    const char *text = tt_lower_text(p, "%s ? %s : %s",
                                     tt_lower_operand(p, &test, LEVEL_CHOICE + 1),
                                     tt_lower_operand(p, &a, LEVEL_CHOICE),
                                     tt_lower_operand(p, &b, LEVEL_CHOICE));

    return tt_lower_of_text(type, text, LEVEL_CHOICE);
}
