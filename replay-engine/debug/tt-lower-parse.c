/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The grammar of typed conditions: C's expressions without assignment, calls, commas and
 * floating point, of names and types that a table knows.
 */
#include "tt-lower-int.h"

static LowerVal expression(Lower *p);
static LowerVal unary(Lower *p);

static const LowerVal nothing;

static bool is_op(const Lower *p, int op)
{
    return p->l.token == TOKEN_OPERATOR && p->l.op == op;
}

static bool is_fine(const Lower *p)
{
    return p->l.status == TT_OK;
}

static bool expect(Lower *p, int op, const char *where)
{
    if (!is_op(p, op)) {
        tt_cond_lex_fail(&p->l, "'%c' is missing %s", op, where);
        return false;
    }
    tt_cond_lex_next(&p->l);
    return true;
}

static bool enter(Lower *p)
{
    if (p->depth == TT_COND_DEPTH_MAX) {
        tt_lower_fail_large(p, "nested brackets");
        return false;
    }
    p->depth++;
    return true;
}

/* ---- operands ---- */

static LowerVal number(Lower *p)
{
    LowerVal v = tt_lower_const(tt_lower_basic(p->l.is_long ? 8 : 4, !p->l.is_unsigned),
                                p->l.number);

    tt_cond_lex_next(&p->l);
    return v;
}

static LowerVal reg(Lower *p)
{
    int len = p->l.at - p->l.start;
    TtCondNode node;
    LowerVal v;

    if (!tt_cond_find_reg(p->l.start + 1, len - 1, &node)) {
        tt_cond_lex_fail(&p->l, "there is no register '%.*s'", MIN(len, 60), p->l.start);
        return nothing;
    }
    v = tt_lower_of_text(tt_lower_basic(node.type.bytes, node.type.is_signed),
                         tt_lower_text(p, "%.*s", len, p->l.start), LEVEL_UNARY);
    tt_cond_lex_next(&p->l);
    return v;
}

static LowerVal name(Lower *p)
{
    int len = p->l.at - p->l.start;
    LowerVal v = { .is_lvalue = true };
    TtNameInfo info = { 0 };
    TtDiag why = { 0 };

    if (p->l.at[0] == ':' && p->l.at[1] == ':') {
        tt_cond_lex_fail(&p->l, "names with :: cannot be written: write the last part alone, "
                         "or *(TYPE *)ADDRESS");
        return nothing;
    }
    if (!p->types->name(p->types->opaque, p->l.start, len, &info, &why)) {
        tt_cond_lex_fail(&p->l, "%.140s", why.text);
        return nothing;
    }
    v.name = tt_lower_text(p, "%.*s", MIN(len, 60), p->l.start);
    v.add = info.value;
    v.type.id = info.type;
    v.is_code = info.kind == TT_NAME_CODE;
    v.has_no_type = info.kind == TT_NAME_ADDRESS;
    v.is_per_cpu = info.is_per_cpu;
    v.lost = info.lost;
    tt_cond_lex_next(&p->l);
    if (info.kind == TT_NAME_NUMBER) {
        return tt_lower_const(info.type ? v.type : tt_lower_int(), info.value);
    }
    return v.has_no_type || v.is_code ? v : tt_lower_follow(p, v);
}

static LowerVal bracket(Lower *p, int end)
{
    LowerVal v;

    tt_cond_lex_next(&p->l);
    v = expression(p);
    expect(p, end, "here");
    return v;
}

/* "sizeof(struct x)", "sizeof x" */
static LowerVal size_of(Lower *p)
{
    TtCondLexer before;
    LowerType type;
    LowerVal v;

    tt_cond_lex_next(&p->l);
    before = p->l;
    if (is_op(p, '(')) {
        tt_cond_lex_next(&p->l);
        if (tt_lower_type(p, &type)) {
            expect(p, ')', "after a type");
            return tt_lower_const(tt_lower_basic(8, false), tt_lower_size(p, type));
        }
        if (is_fine(p)) {
            p->l = before;
        }
    }
    v = unary(p);
    if (v.bits || v.has_no_type) {
        tt_cond_lex_fail(&p->l, v.bits ? "a bit-field has no size" :
                         "the type of '%.60s' is not known", v.name);
    }
    return is_fine(p) ? tt_lower_const(tt_lower_basic(8, false),
                                       v.is_code ? 1 : tt_lower_size(p, v.type)) : nothing;
}

static LowerVal word(Lower *p)
{
    if (tt_cond_lex_is_word(&p->l, "at")) {
        tt_cond_lex_fail(&p->l, "an operand is missing before 'at'");
        return nothing;
    }
    if (tt_lower_begins_type(p) && !tt_cond_lex_is_word(&p->l, "class")) {
        tt_cond_lex_fail(&p->l, "a type is no value: write sizeof(TYPE), or a cast such as "
                         "((struct NAME *)$rdi)->MEMBER");
        return nothing;
    }
    return name(p);
}

static LowerVal primary(Lower *p)
{
    switch (p->l.token) {
    case TOKEN_NUMBER:
        return number(p);
    case TOKEN_REGISTER:
        return reg(p);
    case TOKEN_WORD:
        if (tt_cond_lex_is_word(&p->l, "sizeof")) {
            return size_of(p);
        }
        return word(p);
    case TOKEN_END:
        tt_cond_lex_fail(&p->l, "an operand is missing at the end");
        return nothing;
    default:
        if (is_op(p, '(')) {
            return bracket(p, ')');
        }
        tt_cond_lex_fail(&p->l, "an operand is missing here");
        return nothing;
    }
}

/* What a pointer leads to. */
static LowerVal pointed(Lower *p, LowerVal v)
{
    TtTypeInfo info;
    LowerType to;

    v = tt_lower_value(p, v);
    tt_lower_describe(p, v.type, &info, &to);
    if (is_fine(p) && info.kind != TT_TYPE_POINTER) {
        tt_cond_lex_fail(&p->l, "* needs an address with a type: *(u32 *)ADDRESS");
    }
    v.is_lvalue = true;
    v.type = to;
    return v;
}

/* "->" and a pointer, or "." and what is a struct itself */
static LowerVal member(Lower *p, LowerVal v, bool by_pointer)
{
    TtTypeInfo info;
    LowerType to;
    bool is_pointer;

    tt_cond_lex_next(&p->l);
    if (p->l.token != TOKEN_WORD) {
        tt_cond_lex_fail(&p->l, "the name of a member is missing here");
        return nothing;
    }
    tt_lower_describe(p, v.type, &info, &to);
    is_pointer = info.kind == TT_TYPE_POINTER || info.kind == TT_TYPE_ARRAY;
    if (v.has_no_type || v.is_code || (!is_pointer && info.kind != TT_TYPE_MEMBERS)) {
        tt_cond_lex_fail(&p->l, "a member needs a struct before it: write ((struct NAME *)"
                         "$rdi)->%.*s, for example", (int)MIN(p->l.at - p->l.start, 40),
                         p->l.start);
    } else if (is_pointer != by_pointer) {
        tt_cond_lex_fail(&p->l, by_pointer ? "this is a struct, not a pointer: write . "
                         "instead of ->" : "this is a pointer: write -> instead of .");
    }
    if (is_pointer) {
        v = pointed(p, v);
    }
    if (!is_fine(p) || !tt_lower_member(p, &v, p->l.start, p->l.at - p->l.start)) {
        return nothing;
    }
    tt_cond_lex_next(&p->l);
    return v;
}

static LowerVal postfix(Lower *p)
{
    LowerVal v = primary(p);

    while (is_fine(p) && p->l.token == TOKEN_OPERATOR) {
        if (is_op(p, '[')) {
            LowerVal index = bracket(p, ']');

            if (is_fine(p)) {
                v = pointed(p, tt_lower_combine(p, '+', tt_lower_value(p, v),
                                                tt_lower_value(p, index)));
            }
        } else if (is_op(p, '.') || is_op(p, OP2('-', '>'))) {
            v = member(p, v, !is_op(p, '.'));
        } else {
            break;
        }
    }
    return v;
}

static LowerVal cast_or_bracket(Lower *p)
{
    TtCondLexer before = p->l;
    LowerType type;
    LowerVal v;

    tt_cond_lex_next(&p->l);
    if (!tt_lower_type(p, &type)) {
        if (is_fine(p)) {
            p->l = before;
        }
        return postfix(p);
    }
    if (!expect(p, ')', "after a type")) {
        return nothing;
    }
    v = tt_lower_value(p, unary(p));
    return is_fine(p) ? tt_lower_cast(p, v, type) : nothing;
}

static LowerVal address_of(Lower *p, LowerVal v)
{
    if (!v.is_lvalue || v.bits) {
        tt_cond_lex_fail(&p->l, v.bits ? "a bit-field has no address" :
                         "& needs an operand in memory");
        return nothing;
    }
    return tt_lower_address(p, &v);
}

static LowerVal operator_before(Lower *p, int op)
{
    LowerVal v;

    tt_cond_lex_next(&p->l);
    v = unary(p);
    if (!is_fine(p)) {
        return nothing;
    }
    if (op == '&') {
        return address_of(p, v);
    }
    if (op == '*') {
        return pointed(p, v);
    }
    v = tt_lower_value(p, v);
    if (op != '!' && tt_lower_is_pointer(p, &v)) {
        tt_cond_lex_fail(&p->l, "'%c' needs a number, not a pointer", op);
    }
    return is_fine(p) ? tt_lower_of_text(
        op == '!' ? tt_lower_int() : tt_lower_promoted(p, &v),
        tt_lower_text(p, "%c%s", op, tt_lower_operand(p, &v, LEVEL_UNARY)), LEVEL_UNARY) :
        nothing;
}

static LowerVal unary(Lower *p)
{
    LowerVal v;

    if (!enter(p)) {
        return nothing;
    }
    if (is_op(p, '(')) {
        v = cast_or_bracket(p);
    } else if (p->l.token == TOKEN_OPERATOR && p->l.op < 0x100 &&
               strchr("*&!~-+", p->l.op)) {
        v = operator_before(p, p->l.op);
    } else {
        v = postfix(p);
    }
    p->depth--;
    return v;
}

/* ---- operators with two operands ---- */

static LowerVal climb(Lower *p, int least)
{
    LowerVal a = unary(p);

    while (is_fine(p) && p->l.token == TOKEN_OPERATOR &&
           tt_cond_strength(p->l.op) >= least) {
        int op = p->l.op;
        LowerVal b;

        tt_cond_lex_next(&p->l);
        b = climb(p, tt_cond_strength(op) + 1);
        if (!is_fine(p)) {
            return nothing;
        }
        a = tt_lower_value(p, a);
        b = tt_lower_value(p, b);
        a = is_fine(p) ? tt_lower_combine(p, op, a, b) : nothing;
    }
    return a;
}

static LowerVal choice(Lower *p, LowerVal test)
{
    LowerVal a, b;

    tt_cond_lex_next(&p->l);
    a = expression(p);
    if (!expect(p, ':', "here")) {
        return nothing;
    }
    b = expression(p);
    test = tt_lower_value(p, test);
    a = tt_lower_value(p, a);
    b = tt_lower_value(p, b);
    return is_fine(p) ? tt_lower_choose(p, test, a, b) : nothing;
}

static LowerVal expression(Lower *p)
{
    LowerVal v;

    if (!enter(p)) {
        return nothing;
    }
    v = climb(p, 1);
    if (is_fine(p) && is_op(p, '?')) {
        v = choice(p, v);
    }
    p->depth--;
    return is_fine(p) ? v : nothing;
}

/* ---- all of it ---- */

static const char *whole(Lower *p, bool is_address)
{
    LowerVal v = expression(p);
    TtTypeInfo info;
    LowerType to;

    if (is_fine(p) && v.is_lvalue) {
        tt_lower_describe(p, v.type, &info, &to);
        if (info.kind == TT_TYPE_ARRAY && !is_address) {
            tt_cond_lex_fail(&p->l, "this is an array: write one of its elements");
        }
        v = tt_lower_value(p, v);
    }
    return is_fine(p) ? tt_lower_operand(p, &v, LEVEL_CHOICE) : "";
}

static const char *translate(Lower *p)
{
    const char *text = "";

    if (!tt_cond_lex_is_word(&p->l, "at")) {
        text = whole(p, false);
    }
    if (is_fine(p) && tt_cond_lex_is_word(&p->l, "at")) {
        tt_cond_lex_next(&p->l);
        text = tt_lower_text(p, "%s%sat %s", text, *text ? " " : "",
                             whole(p, true));
    }
    if (is_fine(p) && p->l.token != TOKEN_END) {
        tt_cond_lex_fail(&p->l, "an operator is missing here");
    }
    return text;
}

static const char *place(Lower *p)
{
    LowerVal v = expression(p);

    if (is_fine(p) && p->l.token != TOKEN_END) {
        tt_cond_lex_fail(&p->l, "an operator is missing here");
    }
    return is_fine(p) ? tt_lower_memory(p, v) : "";
}

static TtStatus lower(const char *text, const TtTypes *types,
                      const char *(*translated)(Lower *p), char **out, TtDiag *diag)
{
    Lower p = { .types = types, .texts = g_string_chunk_new(4096) };
    const char *plain;

    *out = NULL;
    tt_cond_lex_init(&p.l, text, diag);
    plain = is_fine(&p) ? translated(&p) : "";
    if (is_fine(&p) && strlen(plain) > TT_COND_TEXT_MAX) {
        p.l.status = tt_fail(diag, TT_ERR_LIMIT, "the condition is longer than %d bytes, "
                             "with addresses for its names", TT_COND_TEXT_MAX);
    }
    if (is_fine(&p)) {
        *out = g_strdup(plain);
    }
    g_string_chunk_free(p.texts);
    return p.l.status;
}

TtStatus tt_lower(const char *text, const TtTypes *types, char **out, TtDiag *diag)
{
    return lower(text, types, translate, out, diag);
}

TtStatus tt_lower_place(const char *text, const TtTypes *types, char **out, TtDiag *diag)
{
    return lower(text, types, place, out, diag);
}
