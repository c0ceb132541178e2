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

bool tool_types_number(Dwarf_Die *die, unsigned name, uint64_t *value)
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
    if (dwarf_formudata(&attr, &w)) {
        return false;
    }
    *value = w;
    return true;
}

static bool is_transparent(int tag)
{
    return tag == DW_TAG_typedef || tag == DW_TAG_const_type ||
        tag == DW_TAG_volatile_type || tag == DW_TAG_restrict_type ||
        tag == DW_TAG_atomic_type || tag == DW_TAG_immutable_type;
}

/* Without typedefs and const. False: it is void. */
static bool peel(Dwarf_Die *die)
{
    for (unsigned links = 0; is_transparent(dwarf_tag(die)) && links < LINKS_MAX; links++) {
        Dwarf_Die to;

        if (!tool_types_link(die, &to)) {
            return false;
        }
        *die = to;
    }
    return true;
}

bool tool_types_is_signed(Dwarf_Die *enumeration)
{
    Dwarf_Die child, type;
    uint64_t encoding;

    if (tool_types_link(enumeration, &type)) {
        return peel(&type) && tool_types_number(&type, DW_AT_encoding, &encoding) &&
            (encoding == DW_ATE_signed || encoding == DW_ATE_signed_char);
    }
    if (tool_types_number(enumeration, DW_AT_encoding, &encoding)) {
        return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
    }
    if (dwarf_child(enumeration, &child)) {
        return false;
    }
    do {
        uint64_t value;

        if (tool_types_number(&child, DW_AT_const_value, &value) && value >> 63) {
            return true;
        }
    } while (!dwarf_siblingof(&child, &child));
    return false;
}

/* ---- the table ---- */

bool tool_types_link(Dwarf_Die *die, Dwarf_Die *to)
{
    Dwarf_Attribute attr;

    return dwarf_attr_integrate(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, to);
}

bool tool_types_is_tag(Dwarf_Die *die, TtTypeTag *tag)
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

/* Another unit, or this one, has the members of what is declared here. */
static bool find_complete(ToolTypes *t, Dwarf_Die *die, TtTypeTag tag, Dwarf_Die *found)
{
    const char *name = dwarf_diename(die);
    Dwarf_Die *other = name ? g_hash_table_lookup(t->tags[tag], name) : NULL;

    if (!other) {
        return false;
    }
    if (tool_types_is_one(t, tag, name)) {
        *found = *other;
        return true;
    }
    if (tool_types_of_unit(t, tag, name, die, found)) {
        return true;
    }
    g_hash_table_add(t->several, die->addr);
    return false;
}

static void complete(ToolTypes *t, Dwarf_Die *die)
{
    Dwarf_Die *known = g_hash_table_lookup(t->completed, die->addr), found;
    Dwarf_Attribute attr;
    TtTypeTag tag;

    if (known) {
        *die = *known;
        return;
    }
    if (!tool_types_is_tag(die, &tag) || !tool_types_is_declared(die)) {
        return;
    }
    if (!(dwarf_attr(die, DW_AT_signature, &attr) && dwarf_formref_die(&attr, &found)) &&
        !find_complete(t, die, tag, &found)) {
        found = *die;
    }
    g_hash_table_insert(t->completed, die->addr, g_memdup2(&found, sizeof(found)));
    *die = found;
}

TtTypeId tool_types_id(ToolTypes *t, Dwarf_Die *die, unsigned dim)
{
    ToolEntry e = { *die, dim };
    gpointer known;

    if (!peel(&e.die)) {
        return 0;                           /* void */
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

    return die->addr && tool_types_link(die, &to) ? tool_types_id(t, &to, 0) : 0;
}

/* ---- what it is ---- */

static void describe_basic(Dwarf_Die *die, TtTypeInfo *info)
{
    uint64_t encoding = 0;

    tool_types_number(die, DW_AT_encoding, &encoding);
    info->kind = TT_TYPE_NUMBER;
    switch (encoding) {
    case DW_ATE_signed:
    case DW_ATE_signed_char:
        info->is_signed = true;
        break;
    case DW_ATE_boolean:
        info->is_bool = true;
        break;
    case DW_ATE_unsigned:
    case DW_ATE_unsigned_char:
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
        if (!tool_types_number(&child, DW_AT_count, &counts[n]) &&
            tool_types_number(&child, DW_AT_upper_bound, &high)) {
            tool_types_number(&child, DW_AT_lower_bound, &low);
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
    info->is_declared = tool_types_is_declared(die);
    info->is_several = g_hash_table_contains(t->several, die->addr);
}

static void describe(ToolTypes *t, TtTypeId type, TtTypeInfo *info, unsigned depth)
{
    ToolEntry e;
    uint64_t size = 0;
    int tag;

    *info = (TtTypeInfo) { 0 };
    if (!type || type > t->table->len) {
        return;
    }
    e = g_array_index(t->table, ToolEntry, type - 1);
    tag = dwarf_tag(&e.die);
    tool_types_number(&e.die, DW_AT_byte_size, &size);
    info->kind = TT_TYPE_OTHER;
    info->bytes = size;
    switch (tag) {
    case DW_TAG_base_type:
        name_type(&e.die, "", info);
        describe_basic(&e.die, info);
        break;
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
        info->kind = TT_TYPE_POINTER;
        info->bytes = size ?: 8;
        info->is_reference = tag != DW_TAG_pointer_type;
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

#else

void tool_types_describe(ToolTypes *t, TtTypeId type, TtTypeInfo *info)
{
    *info = (TtTypeInfo) { 0 };
}

#endif
