/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text of values: every address is a number of 64 bits, every other value has the width
 * and sign that its type has, so that the parser of conditions converts as C does.
 */
#include "tt-lower-int.h"

#include <inttypes.h>
#include <stdarg.h>

#define TEXTS_MAX (8u << 20)    /* bytes of all together */

const char *tt_lower_text(Lower *p, const char *fmt, ...)
{
    va_list ap;
    g_autofree char *text = NULL;

    if (p->n_bytes > TEXTS_MAX) {
        tt_cond_lex_fail_large(&p->l, "operators");
        return "0";
    }
    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    p->n_bytes += strlen(text) + 1;
    return g_string_chunk_insert(p->texts, text);
}

LowerVal tt_lower_const(TtCondType type, uint64_t value)
{
    return (LowerVal) { .type = type, .add = value };
}

LowerVal tt_lower_of_text(TtCondType type, const char *text, int level)
{
    return (LowerVal) { .type = type, .text = text, .level = level };
}

bool tt_lower_is_pointer(const Lower *p, const LowerVal *v)
{
    TtTypeInfo info;
    TtCondType to;

    tt_lower_describe(p, v->type, &info, &to);
    return info.kind == TT_TYPE_POINTER;
}

static const char *number_text(Lower *p, const LowerVal *v)
{
    TtTypeInfo info;
    TtCondType to;

    tt_lower_describe(p, v->type, &info, &to);
    if (info.kind == TT_TYPE_POINTER || (info.bytes == 8 && !info.is_signed)) {
        return tt_lower_text(p, "0x%" PRIx64 "UL", v->add);
    }
    if (info.bytes == 4 && info.is_signed && v->add <= INT32_MAX) {
        return tt_lower_text(p, "%" PRIu64, v->add);
    }
    return tt_lower_text(p, "(%c%u)0x%" PRIx64, info.is_signed ? 's' : 'u',
                         (unsigned)(info.bytes * 8), v->add);
}

const char *tt_lower_operand(Lower *p, const LowerVal *v, int level)
{
    const char *text = v->text;
    int own = v->level;

    if (!text) {
        return number_text(p, v);
    }
    if (v->add) {
        bool is_before = v->add >> 63;
        const char *base = own < LEVEL_SUM ? tt_lower_text(p, "(%s)", text) : text;

        text = tt_lower_text(p, "%s %c 0x%" PRIx64 "UL", base, is_before ? '-' : '+',
                             is_before ? -v->add : v->add);
        own = LEVEL_SUM;
    }
    return own < level ? tt_lower_text(p, "(%s)", text) : text;
}

LowerVal tt_lower_address(Lower *p, const LowerVal *v)
{
    LowerVal a = {
        .text = v->text, .level = v->level, .add = v->add, .is_per_cpu = v->is_per_cpu,
        .name = v->name,
    };

    if (v->is_code || v->has_no_type) {
        a.type = tt_lower_basic(8, false);
    } else {
        tt_lower_point(p, v->type, &a.type);
    }
    return a;
}

/* ---- reads ---- */

static const char *read_text(Lower *p, LowerVal at, unsigned bytes, bool is_signed)
{
    at.type = tt_lower_basic(8, false);
    return tt_lower_text(p, "*(%c%u *)%s", is_signed ? 's' : 'u', bytes * 8,
                         tt_lower_operand(p, &at, LEVEL_UNARY));
}

/* The smallest unit that has all bits: one in its place, so that it lies in what surrounds
 * the bit-field, or if there is none, one that begins with it. */
static unsigned unit_of(LowerVal *v)
{
    for (unsigned bytes = 1; bytes <= 8; bytes *= 2) {
        uint64_t back = v->add % bytes;

        if (v->first_bit + back * 8 + v->bits <= bytes * 8) {
            v->add -= back;
            v->first_bit += back * 8;
            return bytes;
        }
    }
    for (unsigned bytes = 1; bytes <= 8; bytes *= 2) {
        if (v->first_bit + v->bits <= bytes * 8) {
            return bytes;
        }
    }
    return 0;
}

/* C makes an int of a bit-field that fits in one. */
static LowerVal bits_of(Lower *p, LowerVal v, const TtTypeInfo *info)
{
    unsigned bytes = unit_of(&v), left;
    bool fits = v.bits < 32 || (v.bits == 32 && info->is_signed);
    TtCondType type = fits ? tt_lower_basic(4, true) :
        tt_lower_basic(v.bits == 32 ? 4 : 8, info->is_signed);
    const char *text;

    if (!bytes || v.bits > 64 || info->bytes > 8) {
        tt_cond_lex_fail(&p->l, "a bit-field over nine bytes cannot be read");
        return v;
    }
    left = 64 - v.first_bit - v.bits;
    text = tt_lower_text(p, "(%c%u)((%c64)((u64)%s << %u) >> %u)",
                         type.is_signed ? 's' : 'u', type.bytes * 8,
                         info->is_signed ? 's' : 'u', read_text(p, v, bytes, false), left,
                         64 - v.bits);
    return tt_lower_of_text(type, text, LEVEL_UNARY);
}

static LowerVal no_value(Lower *p, const LowerVal *v, const TtTypeInfo *info)
{
    if (info->kind == TT_TYPE_MEMBERS) {
        tt_cond_lex_fail(&p->l, "'%.50s' is not a number: write one of its members",
                         info->name);
    } else if (info->kind == TT_TYPE_VOID) {
        tt_cond_lex_fail(&p->l, "* needs an address with a type: *(u32 *)ADDRESS");
    } else {
        tt_cond_lex_fail(&p->l, "a value of type '%.50s' cannot be used: only integers and "
                         "pointers can", info->name);
    }
    return *v;
}

static LowerVal no_type(Lower *p, const LowerVal *v)
{
    if (v->lost) {
        tt_cond_lex_fail(&p->l, "the type of '%.40s' is not known: the file '%.60s' that has "
                         "it is missing", v->name, v->lost);
    } else {
        tt_cond_lex_fail(&p->l, "the type of '%.40s' is not known: write *(u32 *)&%.40s, or "
                         "another type that fits", v->name, v->name);
    }
    return *v;
}

static LowerVal no_cpu(Lower *p, const LowerVal *v)
{
    const char *name = v->name ?: "it";

    tt_cond_lex_fail(&p->l, "each CPU has a '%.40s' of its own: write *(TYPE *)($gs_base + "
                     "(u64)&%.40s)", name, name);
    return *v;
}

static bool is_number(unsigned bytes)
{
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

LowerVal tt_lower_value(Lower *p, LowerVal v)
{
    TtTypeInfo info;
    TtCondType to;
    LowerVal a;

    if (!v.is_lvalue) {
        return v;
    }
    if (v.is_code) {
        return tt_lower_address(p, &v);
    }
    if (v.has_no_type) {
        return v.is_per_cpu ? no_cpu(p, &v) : no_type(p, &v);
    }
    tt_lower_describe(p, v.type, &info, &to);
    if (info.kind == TT_TYPE_ARRAY) {
        a = tt_lower_address(p, &v);
        tt_lower_point(p, to, &a.type);
        return a;
    }
    if (info.kind == TT_TYPE_FUNCTION) {
        v.is_code = true;
        return tt_lower_address(p, &v);
    }
    if ((info.kind != TT_TYPE_NUMBER && info.kind != TT_TYPE_POINTER) ||
        !is_number(info.bytes)) {
        return no_value(p, &v, &info);
    }
    if (v.is_per_cpu) {
        return no_cpu(p, &v);
    }
    if (v.bits) {
        return bits_of(p, v, &info);
    }
    a = tt_lower_of_text(v.type, read_text(p, v, info.bytes, info.is_signed),
                         LEVEL_UNARY);
    if (info.kind == TT_TYPE_POINTER && info.bytes != 8) {
        a.text = tt_lower_text(p, "(u64)%s", a.text);
    }
    return a;
}

LowerVal tt_lower_follow(Lower *p, LowerVal v)
{
    TtTypeInfo info;
    TtCondType to;

    tt_lower_describe(p, v.type, &info, &to);
    if (v.is_lvalue && info.is_reference) {
        v = tt_lower_value(p, v);
        v.is_lvalue = true;
        v.type = to;
    }
    return v;
}

const char *tt_lower_memory(Lower *p, LowerVal v)
{
    TtTypeInfo info;
    TtCondType to;

    tt_lower_value(p, v);                   /* complains if it has none */
    if (p->l.status == TT_OK && (!v.is_lvalue || v.is_code)) {
        tt_cond_lex_fail(&p->l, "'%.80s' is not a place: write a register, a variable, a "
                         "member, or *(TYPE *)ADDRESS", p->l.text);
    }
    if (p->l.status != TT_OK) {
        return "";
    }
    tt_lower_describe(p, v.type, &info, &to);
    if (info.kind == TT_TYPE_ARRAY || info.kind == TT_TYPE_FUNCTION) {
        tt_cond_lex_fail(&p->l, "this is an array or a function: write one of its elements");
        return "";
    }
    return read_text(p, v, v.bits ? unit_of(&v) : info.bytes, info.is_signed && !v.bits);
}

/* ---- conversions ---- */

static const char *as_u64(Lower *p, const LowerVal *v)
{
    return tt_lower_text(p, "(u64)%s", tt_lower_operand(p, v, LEVEL_UNARY));
}

LowerVal tt_lower_cast(Lower *p, LowerVal v, TtCondType type)
{
    TtTypeInfo info;
    TtCondType to;
    bool was_pointer = tt_lower_is_pointer(p, &v);
    const char *name;

    tt_lower_describe(p, type, &info, &to);
    if (info.kind == TT_TYPE_POINTER) {
        if (v.text && !was_pointer) {
            v = tt_lower_of_text(type, as_u64(p, &v), LEVEL_UNARY);
        }
        v.type = type;
        return v;
    }
    if (info.kind != TT_TYPE_NUMBER || !is_number(info.bytes)) {
        tt_cond_lex_fail(&p->l, "nothing can be cast to '%.50s': cast to a pointer to it",
                         info.kind == TT_TYPE_VOID ? "void" : info.name);
        return v;
    }
    name = info.is_bool && info.bytes == 1 ? "bool" :
        tt_lower_text(p, "%c%u", info.is_signed ? 's' : 'u', (unsigned)info.bytes * 8);
    return tt_lower_of_text(type, tt_lower_text(p, "(%s)%s", name,
                                                tt_lower_operand(p, &v, LEVEL_UNARY)),
                            LEVEL_UNARY);
}

LowerVal tt_lower_index(Lower *p, LowerVal a, LowerVal index, int sign)
{
    TtTypeInfo info;
    TtCondType to;
    const char *far;
    uint64_t size;

    tt_lower_describe(p, a.type, &info, &to);
    size = tt_lower_size(p, to);
    if (!index.text) {
        a.add += sign < 0 ? -(index.add * size) : index.add * size;
        return a;
    }
    far = as_u64(p, &index);
    if (size != 1) {
        far = tt_lower_text(p, "%s * 0x%" PRIx64 "UL", far, size);
    }
    if (a.text || sign < 0) {
        LowerVal base = a;

        base.add = 0;
        far = tt_lower_text(p, "%s %c %s", tt_lower_operand(p, &base, LEVEL_SUM),
                            sign < 0 ? '-' : '+', far);
    }
    a.text = far;
    a.level = LEVEL_SUM;
    return a;
}
