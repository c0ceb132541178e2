/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of one name in several units of a program: most often the same one, from a header.
 */
#include "tt-tool-dwarf-int.h"

#ifdef TT_HAVE_LIBDW

#define DEPTH_MAX   24          /* of types in types */

typedef struct Same {
    ToolTypes *t;
    TtTypeTag tag;
    const char *name;
    Dwarf_Die first;            /* .addr NULL: none yet */
    bool differ;
} Same;

static bool is_same(ToolTypes *t, Dwarf_Die *a, Dwarf_Die *b, unsigned depth);

static bool is_number_same(Dwarf_Die *a, Dwarf_Die *b, unsigned attr)
{
    uint64_t x = 0, y = 0;

    return tool_types_number(a, attr, &x) == tool_types_number(b, attr, &y) && x == y;
}

static bool is_name_same(Dwarf_Die *a, Dwarf_Die *b)
{
    return !g_strcmp0(dwarf_diename(a), dwarf_diename(b));
}

static bool is_link_same(ToolTypes *t, Dwarf_Die *a, Dwarf_Die *b, unsigned depth)
{
    Dwarf_Die x, y;
    bool has_x = tool_types_link(a, &x), has_y = tool_types_link(b, &y);

    return has_x == has_y && (!has_x || is_same(t, &x, &y, depth + 1));
}

/* Moves on to the next entry of interest. */
static bool skip_to(ToolTypes *t, Dwarf_Die *die, bool is_array)
{
    for (;;) {
        if (is_array ? dwarf_tag(die) == DW_TAG_subrange_type : tool_types_is_member(die)) {
            return true;
        }
        if (!tool_types_step(t) || dwarf_siblingof(die, die)) {
            return false;
        }
    }
}

static bool is_child_same(ToolTypes *t, Dwarf_Die *a, Dwarf_Die *b, bool is_array,
                          unsigned depth)
{
    uint64_t x, y;
    unsigned m, n;

    if (is_array) {
        return is_number_same(a, b, DW_AT_count) && is_number_same(a, b, DW_AT_upper_bound);
    }
    return tool_types_place(a, &x, &m) == tool_types_place(b, &y, &n) && x == y && m == n &&
        is_name_same(a, b) && is_link_same(t, a, b, depth);
}

/* Are the members the same, or an array's dimensions? */
static bool are_children_same(ToolTypes *t, Dwarf_Die *a, Dwarf_Die *b, bool is_array,
                              unsigned depth)
{
    Dwarf_Die x, y;
    bool has_x = !dwarf_child(a, &x), has_y = !dwarf_child(b, &y);

    for (;;) {
        has_x = has_x && skip_to(t, &x, is_array);
        has_y = has_y && skip_to(t, &y, is_array);
        if (!has_x || !has_y) {
            return has_x == has_y;
        }
        if (!tool_types_step(t) || !is_child_same(t, &x, &y, is_array, depth)) {
            return false;
        }
        has_x = !dwarf_siblingof(&x, &x);
        has_y = !dwarf_siblingof(&y, &y);
    }
}

static bool are_members_same(ToolTypes *t, Dwarf_Die *a, Dwarf_Die *b, unsigned depth)
{
    if (depth && (tool_types_is_declared(a) || tool_types_is_declared(b))) {
        return true;                        /* behind a pointer */
    }
    /* inside of another one its name says enough */
    return is_number_same(a, b, DW_AT_byte_size) &&
        ((depth && dwarf_diename(a)) || are_children_same(t, a, b, false, depth));
}

static bool is_same(ToolTypes *t, Dwarf_Die *a, Dwarf_Die *b, unsigned depth)
{
    if (a->addr == b->addr || depth == DEPTH_MAX) {
        return true;
    }
    if (!tool_types_step(t) || dwarf_tag(a) != dwarf_tag(b) || !is_name_same(a, b)) {
        return false;
    }
    switch (dwarf_tag(a)) {
    case DW_TAG_base_type:
        return is_number_same(a, b, DW_AT_byte_size) && is_number_same(a, b, DW_AT_encoding);
    case DW_TAG_enumeration_type:
        return tool_types_is_declared(a) || tool_types_is_declared(b) ||
            (is_number_same(a, b, DW_AT_byte_size) &&
             tool_types_is_signed(a) == tool_types_is_signed(b));
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
        return are_members_same(t, a, b, depth);
    case DW_TAG_array_type:
        return are_children_same(t, a, b, true, depth) && is_link_same(t, a, b, depth);
    case DW_TAG_subroutine_type:
        return true;
    default:
        return is_link_same(t, a, b, depth);
    }
}

bool tool_types_is_same(ToolTypes *t, Dwarf_Die *a, Dwarf_Die *b)
{
    return is_same(t, a, b, 0);
}

static bool is_called(Dwarf_Die *die, const Same *s)
{
    int tag = dwarf_tag(die);
    TtTypeTag own;

    return (s->tag == TT_TAG_NAMED ? tag == DW_TAG_typedef || tag == DW_TAG_base_type :
            tool_types_is_tag(die, &own) && own == s->tag) &&
        !g_strcmp0(dwarf_diename(die), s->name) && !tool_types_is_declared(die);
}

static void compare(ToolTypes *t, Dwarf_Die *die, void *opaque)
{
    Same *s = opaque;

    if (!s->differ && is_called(die, s)) {
        if (s->first.addr) {
            s->differ = !is_same(t, &s->first, die, 0);
        } else {
            s->first = *die;
        }
    }
}

static void compare_unit(ToolTypes *t, Dwarf_Die *unit, void *opaque)
{
    tool_types_each_entry(t, unit, compare, opaque);
}

bool tool_types_is_one(ToolTypes *t, TtTypeTag tag, const char *name)
{
    Same s = { t, tag, name };
    gpointer known;

    if (!g_hash_table_contains(t->more[tag], name)) {
        return true;
    }
    if (!g_hash_table_lookup_extended(t->differ[tag], name, NULL, &known)) {
        tool_types_each_unit(t, compare_unit, &s);
        known = GINT_TO_POINTER(s.differ);
        g_hash_table_insert(t->differ[tag], g_strdup(name), known);
    }
    return !known;
}

bool tool_types_of_unit(ToolTypes *t, TtTypeTag tag, const char *name, Dwarf_Die *die,
                        Dwarf_Die *found)
{
    Same s = { t, tag, name };
    Dwarf_Die unit;

    if (dwarf_diecu(die, &unit, NULL, NULL)) {
        compare_unit(t, &unit, &s);
    }
    *found = s.first;
    return s.first.addr && !s.differ;
}

#endif
