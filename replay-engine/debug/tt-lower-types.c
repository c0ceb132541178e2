/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of an expression: their names, sizes and members.
 */
#include "tt-lower-int.h"

#define STARS_MAX   8
#define NEST_MAX    16          /* structs without a name in each other */
#define LOOKS_MAX   100000      /* at members, for one name */

void tt_lower_describe(const Lower *p, TtCondType t, TtTypeInfo *info, TtCondType *to)
{
    *info = (TtTypeInfo) { 0 };
    *to = (TtCondType) { 0 };
    if (t.stars) {
        info->kind = TT_TYPE_POINTER;
        info->bytes = 8;
        *to = t;
        to->stars--;
    } else if (t.id) {
        p->types->describe(p->types->opaque, t.id, info);
        info->name[sizeof(info->name) - 1] = 0;
        tt_replace_controls(info->name, '?');
        to->id = info->to;
    } else if (t.bytes) {
        info->kind = TT_TYPE_NUMBER;
        info->bytes = t.bytes;
        info->is_signed = t.is_signed;
        info->is_bool = t.is_bool;
    }
}

static void not_known(Lower *p, const char *what, const char *are, const TtTypeInfo *info)
{
    const char *why = info->is_several ? "there are several types of that name" :
        "it is only declared there";

    if (info->kind == TT_TYPE_ARRAY) {
        tt_cond_lex_fail(&p->l, "the %s of the array %s not known", what, are);
    } else {
        tt_cond_lex_fail(&p->l, "the %s of '%.60s' %s not known: %s", what, info->name, are,
                         why);
    }
}

bool tt_lower_point(Lower *p, TtCondType type, TtCondType *out)
{
    if (type.stars == STARS_MAX) {
        tt_cond_lex_fail(&p->l, "a type has more than %d stars", STARS_MAX);
        return false;
    }
    type.stars++;
    *out = type;
    return true;
}

uint64_t tt_lower_size(Lower *p, TtCondType t)
{
    TtTypeInfo info;
    TtCondType to;

    tt_lower_describe(p, t, &info, &to);
    if (info.kind == TT_TYPE_VOID || info.kind == TT_TYPE_FUNCTION) {
        return 1;                           /* as gcc counts them */
    }
    if (!info.bytes && (info.kind != TT_TYPE_MEMBERS || info.is_declared)) {
        not_known(p, "size", "is", &info);
    }
    return info.bytes;
}

/* ---- names of types ---- */

static bool take_word(Lower *p, const char *word)
{
    bool is = tt_cond_lex_is_word(&p->l, word);

    if (is) {
        tt_cond_lex_next(&p->l);
    }
    return is;
}

static bool is_qualifier(const Lower *p)
{
    return tt_cond_lex_is_word(&p->l, "const") || tt_cond_lex_is_word(&p->l, "volatile");
}

static bool is_tag(const TtCondLexer *l, TtTypeTag *tag)
{
    static const struct { const char *word; TtTypeTag tag; } tags[] = {
        { "struct", TT_TAG_STRUCT }, { "class", TT_TAG_STRUCT }, { "union", TT_TAG_UNION },
        { "enum", TT_TAG_ENUM },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(tags); i++) {
        if (tt_cond_lex_is_word(l, tags[i].word)) {
            *tag = tags[i].tag;
            return true;
        }
    }
    return false;
}

static TtTypeId find(const Lower *p, TtTypeTag tag, TtDiag *why)
{
    *why = (TtDiag) { 0 };
    return p->l.token != TOKEN_WORD ? 0 :
        p->types->find(p->types->opaque, tag, p->l.start, p->l.at - p->l.start, why);
}

bool tt_lower_begins_type(const Lower *p)
{
    TtTypeTag tag;

    return is_qualifier(p) || is_tag(&p->l, &tag) ||
        (tt_cond_is_reserved(p->l.start, p->l.at - p->l.start) &&
         !tt_cond_lex_is_word(&p->l, "at"));
}

static bool is_type(const Lower *p)
{
    TtDiag why;

    return p->l.token == TOKEN_WORD && (tt_lower_begins_type(p) ||
                                        find(p, TT_TAG_NAMED, &why) || why.text[0]);
}

static bool tagged(Lower *p, TtTypeTag tag, TtCondType *type)
{
    static const char *const words[] = { "struct", "union", "enum" };
    TtDiag why;
    int len;

    tt_cond_lex_next(&p->l);
    len = MIN(p->l.at - p->l.start, 60);
    if (p->l.token != TOKEN_WORD) {
        tt_cond_lex_fail(&p->l, "the name of the %s is missing here", words[tag]);
        return false;
    }
    type->id = find(p, tag, &why);
    if (!type->id && why.text[0]) {
        tt_cond_lex_fail(&p->l, "%.140s", why.text);
        return false;
    }
    if (!type->id) {
        tt_cond_lex_fail(&p->l, "there is no '%s %.*s'", words[tag], len, p->l.start);
        return false;
    }
    tt_cond_lex_next(&p->l);
    return true;
}

static bool take_stars(Lower *p, TtCondType *type)
{
    for (;;) {
        if (is_qualifier(p)) {
            tt_cond_lex_next(&p->l);
        } else if (p->l.token == TOKEN_OPERATOR && p->l.op == '*') {
            if (!tt_lower_point(p, *type, type)) {
                return false;
            }
            tt_cond_lex_next(&p->l);
        } else {
            return p->l.status == TT_OK;
        }
    }
}

/* "char" alone: it has the sign that the program was compiled with. */
static bool take_char(Lower *p, TtCondType *type)
{
    TtCondLexer before = p->l;
    TtDiag why;

    if (!tt_cond_lex_is_word(&p->l, "char")) {
        return false;
    }
    type->id = find(p, TT_TAG_NAMED, &why);
    tt_cond_lex_next(&p->l);
    if (tt_cond_lex_is_word(&p->l, "unsigned") || tt_cond_lex_is_word(&p->l, "signed") ||
        (!type->id && !why.text[0])) {
        p->l = before;
        type->id = 0;
        return false;
    }
    if (!type->id) {
        tt_cond_lex_fail(&p->l, "char is signed in one file and unsigned in another: write "
                         "s8 or u8");
    }
    return true;
}

bool tt_lower_type(Lower *p, TtCondType *type)
{
    TtTypeTag tag;
    TtDiag why;

    *type = (TtCondType) { 0 };
    if (!is_type(p)) {
        return false;
    }
    while (take_word(p, "const") || take_word(p, "volatile")) {
        continue;
    }
    if (is_tag(&p->l, &tag)) {
        if (!tagged(p, tag, type)) {
            return false;
        }
    } else if (take_char(p, type)) {
        return take_stars(p, type);
    } else if (!tt_cond_type(&p->l, type)) {
        type->id = find(p, TT_TAG_NAMED, &why);
        if (!type->id) {
            tt_cond_lex_fail(&p->l, "%.140s", why.text[0] ? why.text :
                             "the name of a type is missing here");
            return false;
        }
        tt_cond_lex_next(&p->l);
    }
    return take_stars(p, type);
}

/* ---- members ---- */

typedef struct Search {
    const char *name;
    size_t len;
    unsigned looks;
    bool is_ambiguous;
} Search;

static bool is_called(const char *name, const Search *s)
{
    return !strncmp(name, s->name, s->len) && !name[s->len];
}

static bool find_member(Lower *p, TtTypeId type, Search *s, unsigned depth, uint64_t bit,
                        TtTypeMember *found);

static bool look_inside(Lower *p, const TtTypeMember *m, Search *s, unsigned depth,
                        TtTypeMember *found)
{
    if (m->name || !m->type || depth == NEST_MAX ||
        !find_member(p, m->type, s, depth + 1, m->first_bit, found)) {
        return false;
    }
    found->has_no_place |= m->has_no_place;
    return true;
}

/* A member of the class itself hides those of its base classes. */
static bool find_in_bases(Lower *p, TtTypeId type, Search *s, unsigned depth, uint64_t bit,
                          TtTypeMember *found)
{
    TtTypeMember m, one;
    bool is_found = false;

    for (unsigned n = 0; s->looks < LOOKS_MAX &&
         p->types->member(p->types->opaque, type, n, &m); n++) {
        s->looks++;
        m.first_bit += bit;
        if (m.is_base && look_inside(p, &m, s, depth, &one)) {
            s->is_ambiguous |= is_found;
            is_found = true;
            *found = one;
        }
    }
    return is_found;
}

/* In @type, and in its members without a name; @bit: where it begins. */
static bool find_member(Lower *p, TtTypeId type, Search *s, unsigned depth, uint64_t bit,
                        TtTypeMember *found)
{
    bool has_bases = false;
    TtTypeMember m;

    for (unsigned n = 0; s->looks < LOOKS_MAX &&
         p->types->member(p->types->opaque, type, n, &m); n++) {
        s->looks++;
        m.first_bit += bit;
        has_bases |= m.is_base;
        if (m.name && is_called(m.name, s)) {
            *found = m;
            return true;
        }
        if (!m.is_base && look_inside(p, &m, s, depth, found)) {
            return true;
        }
    }
    return has_bases && find_in_bases(p, type, s, depth, bit, found);
}

static void become(LowerVal *v, const TtTypeMember *m)
{
    v->add += m->first_bit / 8;
    v->type = (TtCondType) { .id = m->type };
    v->bits = m->bits;
    v->first_bit = m->first_bit % 8;
}

bool tt_lower_member(Lower *p, LowerVal *v, const char *name, size_t len)
{
    Search s = { name, len, 0 };
    TtTypeMember m;
    TtTypeInfo info;
    TtCondType to;
    int shown = MIN(len, 50);

    tt_lower_describe(p, v->type, &info, &to);
    if (info.kind != TT_TYPE_MEMBERS) {
        tt_cond_lex_fail(&p->l, "'%.*s' is no member of it: it is no struct or union",
                         shown, name);
    } else if (info.is_declared) {
        not_known(p, "members", "are", &info);
    } else if (!find_member(p, v->type.id, &s, 0, 0, &m)) {
        tt_cond_lex_fail(&p->l, "'%.50s' has no member '%.*s'", info.name, shown, name);
    } else if (s.is_ambiguous) {
        tt_cond_lex_fail(&p->l, "several base classes of '%.50s' have a member '%.*s'",
                         info.name, shown, name);
    } else if (m.has_no_place) {
        tt_cond_lex_fail(&p->l, "'%.*s' has no fixed place in '%.50s': it is a static member, "
                         "or one of a virtual base class", shown, name, info.name);
    } else {
        become(v, &m);
        *v = tt_lower_follow(p, *v);
        return p->l.status == TT_OK;
    }
    return false;
}
