/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a type of a program's DWARF is, and its members. Typedefs, arrays and the like that
 * lead in a circle end after some steps, as types of which nothing is known.
 */
#include "tt-tool-dwarf-int.h"

#ifdef TT_HAVE_LIBDW

#define LINKS_MAX   64          /* typedefs of typedefs */
#define SIZES_MAX   16          /* arrays of arrays */
#define DIMS_MAX    16

/* ---- numbers ---- */

bool tool_types_number(Dwarf_Die *die, unsigned name, bool is_signed, uint64_t *value)
{
    Dwarf_Attribute attr;
    Dwarf_Sword s;
    Dwarf_Word w;
    unsigned form;

    if (!dwarf_attr_integrate(die, name, &attr)) {
        return false;
    }
    form = dwarf_whatform(&attr);
    if (form == DW_FORM_sdata || form == DW_FORM_implicit_const) {
        *value = dwarf_formsdata(&attr, &s) ? 0 : (uint64_t)s;
        return true;
    }
    /* the fixed ones have no sign of their own */
    if (dwarf_formudata(&attr, &w)) {
        return false;
    }
    *value = w;
    return true;
}

bool tool_types_is_signed(Dwarf_Die *enumeration)
{
    Dwarf_Die child;
    Dwarf_Attribute attr;
    Dwarf_Die type;
    uint64_t encoding;

    if (dwarf_attr(enumeration, DW_AT_type, &attr) && dwarf_formref_die(&attr, &type)) {
        return tool_types_number(&type, DW_AT_encoding, false, &encoding) &&
            (encoding == DW_ATE_signed || encoding == DW_ATE_signed_char);
    }
    if (tool_types_number(enumeration, DW_AT_encoding, false, &encoding)) {
        return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
    }
    if (dwarf_child(enumeration, &child)) {
        return false;
    }
    do {
        uint64_t value;

        if (tool_types_number(&child, DW_AT_const_value, true, &value) && value >> 63) {
            return true;
        }
    } while (!dwarf_siblingof(&child, &child));
    return false;
}

/* ---- the table ---- */

static bool is_transparent(int tag)
{
    return tag == DW_TAG_typedef || tag == DW_TAG_const_type ||
        tag == DW_TAG_volatile_type || tag == DW_TAG_restrict_type ||
        tag == DW_TAG_atomic_type || tag == DW_TAG_immutable_type;
}

static bool link_of(Dwarf_Die *die, Dwarf_Die *to)
{
    Dwarf_Attribute attr;

    return dwarf_attr_integrate(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, to);
}

static bool is_tag(Dwarf_Die *die, TtTypeTag *tag)
{
    switch (dwarf_tag(die)) {
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
        *tag = TT_TAG_STRUCT;
        return true;
    case DW_TAG_union_type:
        *tag = TT_TAG_UNION;
        return true;
    case DW_TAG_enumeration_type:
        *tag = TT_TAG_ENUM;
        return true;
    default:
        return false;
    }
}

/* Another unit has the members of what is declared here. */
static void complete(ToolTypes *t, Dwarf_Die *die)
{
    Dwarf_Attribute attr;
    const char *name;
    TtTypeTag tag;
    Dwarf_Die *other, of_unit;

    if (is_tag(die, &tag) && dwarf_attr(die, DW_AT_signature, &attr) &&
        dwarf_formref_die(&attr, &of_unit)) {
        *die = of_unit;                     /* -fdebug-types-section */
        return;
    }
    if (!is_tag(die, &tag) || !tool_types_has_flag(die, DW_AT_declaration)) {
        return;
    }
    name = dwarf_diename(die);
    other = name ? g_hash_table_lookup(t->tags[tag], name) : NULL;
    *die = other ? *other : *die;
}

TtTypeId tool_types_id(ToolTypes *t, Dwarf_Die *die, unsigned dim)
{
    ToolEntry e = { *die, dim };
    unsigned links = 0;
    gpointer known;

    while (is_transparent(dwarf_tag(&e.die)) && links++ < LINKS_MAX) {
        Dwarf_Die to;

        if (!link_of(&e.die, &to)) {
            return 0;                       /* of void */
        }
        e.die = to;
    }
    complete(t, &e.die);
    known = g_hash_table_lookup(t->ids, (char *)e.die.addr + dim);
    if (!known) {
        g_array_append_val(t->table, e);
        known = GUINT_TO_POINTER(t->table->len);
        g_hash_table_insert(t->ids, (char *)e.die.addr + dim, known);
    }
    return GPOINTER_TO_UINT(known);
}

TtTypeId tool_types_of(ToolTypes *t, Dwarf_Die *die)
{
    Dwarf_Die to;

    return die->addr && link_of(die, &to) ? tool_types_id(t, &to, 0) : 0;
}

/* ---- what it is ---- */

static void describe_basic(Dwarf_Die *die, TtTypeInfo *info)
{
    uint64_t encoding = 0;

    tool_types_number(die, DW_AT_encoding, false, &encoding);
    info->kind = TT_TYPE_NUMBER;
    switch (encoding) {
    case DW_ATE_signed:
    case DW_ATE_signed_char:
        info->is_signed = true;
        break;
    case DW_ATE_unsigned:
    case DW_ATE_unsigned_char:
    case DW_ATE_boolean:
    case DW_ATE_address:
    case DW_ATE_UTF:
        break;
    default:
        info->kind = TT_TYPE_OTHER;
    }
}

/* Of each dimension; UINT64_MAX: nobody knows. Returns how many there are. */
static unsigned counts_of(Dwarf_Die *die, uint64_t counts[DIMS_MAX])
{
    Dwarf_Die child;
    unsigned n = 0;

    if (dwarf_child(die, &child)) {
        return 0;
    }
    do {
        uint64_t low = 0, high;

        if (dwarf_tag(&child) != DW_TAG_subrange_type || n == DIMS_MAX) {
            continue;
        }
        counts[n] = UINT64_MAX;
        if (!tool_types_number(&child, DW_AT_count, false, &counts[n]) &&
            tool_types_number(&child, DW_AT_upper_bound, false, &high)) {
            tool_types_number(&child, DW_AT_lower_bound, false, &low);
            counts[n] = high - low + 1;
        }
        n++;
    } while (!dwarf_siblingof(&child, &child));
    return n;
}

static void describe(ToolTypes *t, TtTypeId type, TtTypeInfo *info, unsigned depth);

static void describe_array(ToolTypes *t, const ToolEntry *e, TtTypeInfo *info, unsigned depth)
{
    uint64_t counts[DIMS_MAX], bytes;
    Dwarf_Die die = e->die;
    unsigned n = counts_of(&die, counts), dim = e->dim;
    TtTypeInfo element = { 0 };

    info->kind = TT_TYPE_ARRAY;
    info->to = dim + 1 < n ? tool_types_id(t, &die, dim + 1) : tool_types_of(t, &die);
    info->bytes = 0;
    if (depth < SIZES_MAX) {
        describe(t, info->to, &element, depth + 1);
    }
    if (dim < n && counts[dim] != UINT64_MAX &&
        !__builtin_mul_overflow(counts[dim], element.bytes, &bytes)) {
        info->bytes = bytes;
    }
}

static void name_type(Dwarf_Die *die, const char *word, TtTypeInfo *info)
{
    g_snprintf(info->name, sizeof(info->name), "%s%s", word,
               dwarf_diename(die) ?: "without a name");
}

static void describe_tagged(ToolTypes *t, Dwarf_Die *die, int tag, TtTypeInfo *info)
{
    if (tag == DW_TAG_enumeration_type) {
        name_type(die, "enum ", info);
        info->kind = TT_TYPE_NUMBER;
        info->is_signed = tool_types_is_signed(die);
        return;
    }
    name_type(die, tag == DW_TAG_union_type ? "union " : tag == DW_TAG_class_type ? "class " :
              "struct ", info);
    info->kind = TT_TYPE_MEMBERS;
    info->is_declared = tool_types_has_flag(die, DW_AT_declaration);
}

static void describe(ToolTypes *t, TtTypeId type, TtTypeInfo *info, unsigned depth)
{
    ToolEntry e;
    int tag, size;

    *info = (TtTypeInfo) { 0 };
    if (!type || type > t->table->len) {
        return;
    }
    e = g_array_index(t->table, ToolEntry, type - 1);
    tag = dwarf_tag(&e.die);
    size = dwarf_bytesize(&e.die);
    info->kind = TT_TYPE_OTHER;
    info->bytes = MAX(size, 0);
    switch (tag) {
    case DW_TAG_base_type:
        name_type(&e.die, "", info);
        describe_basic(&e.die, info);
        break;
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
        info->kind = TT_TYPE_POINTER;
        info->bytes = size > 0 ? size : 8;
        info->to = tool_types_of(t, &e.die);
        break;
    case DW_TAG_array_type:
        describe_array(t, &e, info, depth);
        break;
    case DW_TAG_subroutine_type:
        info->kind = TT_TYPE_FUNCTION;
        break;
    case DW_TAG_unspecified_type:
        info->kind = TT_TYPE_VOID;
        break;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
        describe_tagged(t, &e.die, tag, info);
        break;
    default:
        name_type(&e.die, "", info);
    }
}

void tool_types_describe(ToolTypes *t, TtTypeId type, TtTypeInfo *info)
{
    describe(t, type, info, 0);
}

/* ---- members ---- */

static bool is_member(Dwarf_Die *die)
{
    int tag = dwarf_tag(die);

    /* declared only: a static one of C++ */
    return tag == DW_TAG_inheritance ||
        (tag == DW_TAG_member && !tool_types_has_flag(die, DW_AT_declaration));
}

/* Its first byte: a number, or an expression that adds one. */
static uint64_t place_of(Dwarf_Die *die)
{
    Dwarf_Attribute attr;
    Dwarf_Word w;
    Dwarf_Op *ops;
    size_t n;

    if (!dwarf_attr(die, DW_AT_data_member_location, &attr)) {
        return 0;                           /* of a union */
    }
    if (!dwarf_formudata(&attr, &w)) {
        return w;
    }
    return !dwarf_getlocation(&attr, &ops, &n) && n == 1 &&
        ops[0].atom == DW_OP_plus_uconst ? ops[0].number : 0;
}

static void fill_member(ToolTypes *t, Dwarf_Die *die, TtTypeMember *m)
{
    uint64_t bits = 0, first, storage;
    TtTypeInfo type;

    *m = (TtTypeMember) {
        .name = dwarf_tag(die) == DW_TAG_member ? dwarf_diename(die) : NULL,
        .type = tool_types_of(t, die), .first_bit = place_of(die) * 8,
    };
    if (!tool_types_number(die, DW_AT_bit_size, false, &bits) || !bits) {
        return;
    }
    m->bits = MIN(bits, 65);                /* more than can be */
    if (tool_types_number(die, DW_AT_data_bit_offset, false, &first)) {
        m->first_bit = first;
    } else if (tool_types_number(die, DW_AT_bit_offset, false, &first)) {
        /* before DWARF 5: from the most significant bit of its unit on */
        tool_types_describe(t, m->type, &type);
        if (!tool_types_number(die, DW_AT_byte_size, false, &storage)) {
            storage = type.bytes;
        }
        m->first_bit += storage * 8 - first - m->bits;
    }
}

bool tool_types_member(ToolTypes *t, TtTypeId type, unsigned n, TtTypeMember *member)
{
    TtTypeTag tag;

    if (!type || type > t->table->len) {
        return false;
    }
    if (t->in != type || t->n != n) {       /* not the one after the last */
        ToolEntry e = g_array_index(t->table, ToolEntry, type - 1);

        t->in = type;
        t->n = 0;
        t->has_next = is_tag(&e.die, &tag) && tag != TT_TAG_ENUM &&
            !dwarf_child(&e.die, &t->next);
    }
    while (t->has_next) {
        bool is = is_member(&t->next) && t->n++ == n;

        if (is) {
            fill_member(t, &t->next, member);
        }
        t->has_next = !dwarf_siblingof(&t->next, &t->next);
        if (is) {
            return true;
        }
    }
    t->in = 0;
    return false;
}

#else

void tool_types_describe(ToolTypes *t, TtTypeId type, TtTypeInfo *info)
{
    *info = (TtTypeInfo) { 0 };
}

bool tool_types_member(ToolTypes *t, TtTypeId type, unsigned n, TtTypeMember *member)
{
    return false;
}

#endif
