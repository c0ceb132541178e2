/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the grammar builds of a typed condition: values with types and texts, of names and
 * types that a table knows.
 */
#include "tt-lower-int.h"

static bool is_fine(const Lower *p)
{
    return p->l.status == TT_OK;
}

static LowerVal *get(const Lower *p, TtCondValue v)
{
    return &g_array_index(p->values, LowerVal, v);
}

static TtCondValue put(Lower *p, LowerVal v)
{
    g_array_append_val(p->values, v);
    return p->values->len - 1;
}

/* ---- operands ---- */

static TtCondValue make_number(void *opaque, TtCondType type, uint64_t number)
{
    return put(opaque, tt_lower_const(type, number));
}

static TtCondValue make_reg(void *opaque, const TtCondNode *reg)
{
    Lower *p = opaque;
    const char *text = tt_lower_text(p, "%.*s", (int)(p->l.at - p->l.start), p->l.start);

    return put(p, tt_lower_of_text(reg->type, text, LEVEL_UNARY));
}

static LowerVal named(Lower *p, const TtNameInfo *info)
{
    LowerVal v = {
        .is_lvalue = true, .add = info->value, .type.id = info->type,
        .is_code = info->kind == TT_NAME_CODE, .has_no_type = info->kind == TT_NAME_ADDRESS,
        .is_per_cpu = info->is_per_cpu, .lost = info->lost,
        .name = tt_lower_text(p, "%.*s", (int)MIN(p->l.at - p->l.start, 60), p->l.start),
    };

    if (info->kind == TT_NAME_NUMBER) {
        return tt_lower_const(info->type ? v.type : tt_lower_int(), info->value);
    }
    return v.has_no_type || v.is_code ? v : tt_lower_follow(p, v);
}

static TtCondValue make_name(void *opaque)
{
    Lower *p = opaque;
    TtNameInfo info = { 0 };
    TtDiag why = { 0 };

    if (tt_lower_begins_type(p) && !tt_cond_lex_is_word(&p->l, "class")) {
        tt_cond_lex_fail(&p->l, "a type is no value: write sizeof(TYPE), or a cast such as "
                         "((struct NAME *)$rdi)->MEMBER");
    } else if (!p->types->name(p->types->opaque, p->l.start, p->l.at - p->l.start, &info,
                               &why)) {
        tt_cond_lex_fail(&p->l, "%.140s", why.text);
    }
    return is_fine(p) ? put(p, named(p, &info)) : TT_COND_NO_VALUE;
}

static bool take_type(void *opaque, TtCondType *type)
{
    return tt_lower_type(opaque, type);
}

static TtCondValue make_size_of_type(void *opaque, TtCondType type)
{
    return put(opaque, tt_lower_const(tt_lower_basic(8, false), tt_lower_size(opaque, type)));
}

static TtCondValue make_size_of(void *opaque, TtCondValue a)
{
    Lower *p = opaque;
    LowerVal v = *get(p, a);

    if (v.bits || v.has_no_type) {
        tt_cond_lex_fail(&p->l, v.bits ? "a bit-field has no size" :
                         "the type of '%.60s' is not known", v.name);
        return TT_COND_NO_VALUE;
    }
    return put(p, tt_lower_const(tt_lower_basic(8, false),
                                 v.is_code ? 1 : tt_lower_size(p, v.type)));
}

/* ---- operators ---- */

/* What a pointer leads to. */
static LowerVal pointed(Lower *p, LowerVal v)
{
    TtTypeInfo info;
    TtCondType to;

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
static TtCondValue make_member(void *opaque, TtCondValue a, bool by_pointer)
{
    Lower *p = opaque;
    LowerVal v = *get(p, a);
    TtTypeInfo info;
    TtCondType to;
    bool is_pointer;

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
    if (is_fine(p)) {
        tt_lower_member(p, &v, p->l.start, p->l.at - p->l.start);
    }
    return put(p, v);
}

static TtCondValue make_cast(void *opaque, TtCondType type, TtCondValue a)
{
    Lower *p = opaque;
    LowerVal v = tt_lower_value(p, *get(p, a));

    return is_fine(p) ? put(p, tt_lower_cast(p, v, type)) : TT_COND_NO_VALUE;
}

static LowerVal address_of(Lower *p, const LowerVal *v)
{
    if (!v->is_lvalue || v->bits) {
        tt_cond_lex_fail(&p->l, v->bits ? "a bit-field has no address" :
                         "& needs an operand in memory");
    }
    return tt_lower_address(p, v);
}

static LowerVal computed(Lower *p, int op, LowerVal v)
{
    const char *text;
    TtCondType type;

    v = tt_lower_value(p, v);
    if (is_fine(p) && op != '!' && tt_lower_is_pointer(p, &v)) {
        tt_cond_lex_fail(&p->l, "'%c' needs a number, not a pointer", op);
    }
    if (!is_fine(p)) {
        return v;
    }
    type = op == '!' ? tt_lower_int() : tt_lower_promoted(p, &v);
    text = tt_lower_operand(p, &v, LEVEL_UNARY);
    /* no -- and ++ */
    text = tt_lower_text(p, "%c%s%s", op, strchr("-+", op) && *text == op ? " " : "", text);
    return tt_lower_of_text(type, text, LEVEL_UNARY);
}

static TtCondValue make_unary(void *opaque, int op, TtCondValue a)
{
    Lower *p = opaque;
    LowerVal v = *get(p, a);

    return put(p, op == '&' ? address_of(p, &v) : op == '*' ? pointed(p, v) :
               computed(p, op, v));
}

static TtCondValue make_binary(void *opaque, int op, TtCondValue a, TtCondValue b)
{
    Lower *p = opaque;
    LowerVal x = tt_lower_value(p, *get(p, a)), y = tt_lower_value(p, *get(p, b));

    return is_fine(p) ? put(p, tt_lower_combine(p, op, x, y)) : TT_COND_NO_VALUE;
}

static TtCondValue make_choice(void *opaque, TtCondValue test, TtCondValue a, TtCondValue b)
{
    Lower *p = opaque;
    LowerVal t = tt_lower_value(p, *get(p, test)), x = tt_lower_value(p, *get(p, a)),
             y = tt_lower_value(p, *get(p, b));

    return is_fine(p) ? put(p, tt_lower_choose(p, t, x, y)) : TT_COND_NO_VALUE;
}

/* ---- all of it ---- */

/* Becomes a value whose text is all. */
static TtCondValue make_whole(void *opaque, TtCondValue a, bool is_address)
{
    Lower *p = opaque;
    LowerVal v = *get(p, a);
    TtTypeInfo info;
    TtCondType to;

    if (v.is_lvalue) {
        tt_lower_describe(p, v.type, &info, &to);
        if (info.kind == TT_TYPE_ARRAY && !is_address) {
            tt_cond_lex_fail(&p->l, "this is an array: write one of its elements");
        }
        v = tt_lower_value(p, v);
    }
    v = (LowerVal) { .text = is_fine(p) ? tt_lower_operand(p, &v, LEVEL_CHOICE) : "" };
    return put(p, v);
}

static TtCondValue make_place(void *opaque, TtCondValue a, bool is_address)
{
    Lower *p = opaque;

    return put(p, (LowerVal) { .text = tt_lower_memory(p, *get(p, a)) });
}

static const char *translated(Lower *p, bool is_place)
{
    const TtCondBuilder builder = {
        .number = make_number, .reg = make_reg, .name = make_name, .type = take_type,
        .cast = make_cast, .unary = make_unary, .binary = make_binary,
        .choose = make_choice, .member = make_member, .size_of = make_size_of,
        .size_of_type = make_size_of_type, .whole = is_place ? make_place : make_whole,
    };
    TtCondValue what, at = TT_COND_NO_VALUE;
    const char *text;

    if (tt_cond_read(&p->l, &builder, p, &what, is_place ? NULL : &at) != TT_OK) {
        return "";
    }
    text = what == TT_COND_NO_VALUE ? "" : get(p, what)->text;
    return at == TT_COND_NO_VALUE ? text :
        tt_lower_text(p, "%s%sat %s", text, *text ? " " : "", get(p, at)->text);
}

static TtStatus lower(const char *text, const TtTypes *types, bool is_place, char **out,
                      TtDiag *diag)
{
    Lower p = {
        .types = types, .texts = g_string_chunk_new(4096),
        .values = g_array_new(false, false, sizeof(LowerVal)),
    };
    const char *plain;

    *out = NULL;
    tt_cond_lex_init(&p.l, text, diag);
    plain = is_fine(&p) ? translated(&p, is_place) : "";
    if (is_fine(&p) && strlen(plain) > TT_COND_TEXT_MAX) {
        p.l.status = tt_fail(diag, TT_ERR_LIMIT, "the condition is longer than %d bytes, "
                             "with addresses for its names", TT_COND_TEXT_MAX);
    }
    if (is_fine(&p)) {
        *out = g_strdup(plain);
    }
    g_string_chunk_free(p.texts);
    g_array_free(p.values, true);
    return p.l.status;
}

TtStatus tt_lower(const char *text, const TtTypes *types, char **out, TtDiag *diag)
{
    return lower(text, types, false, out, diag);
}

TtStatus tt_lower_place(const char *text, const TtTypes *types, char **out, TtDiag *diag)
{
    return lower(text, types, true, out, diag);
}
