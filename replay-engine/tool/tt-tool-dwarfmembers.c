/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Members of a program's structs, unions and classes: where they begin, by its DWARF.
 */
#include "tt-tool-dwarf-int.h"

#ifdef TT_HAVE_LIBDW

#define STEPS_MAX   (1u << 26)  /* for one expression */

bool tool_types_step(ToolTypes *t)
{
    return t->steps++ < STEPS_MAX;
}

static bool is_static(Dwarf_Die *die)
{
    return dwarf_tag(die) == DW_TAG_variable || tool_types_has_flag(die, DW_AT_declaration);
}

bool tool_types_is_member(Dwarf_Die *die)
{
    int tag = dwarf_tag(die);

    return tag == DW_TAG_inheritance || tag == DW_TAG_member || tag == DW_TAG_variable;
}

/* Its first byte: a number, or an expression that adds one. */
static bool byte_of(Dwarf_Die *die, uint64_t *byte)
{
    Dwarf_Attribute attr;
    Dwarf_Word w;
    Dwarf_Op *ops;
    uint64_t how;
    size_t n;

    *byte = 0;
    if (tool_types_number(die, DW_AT_virtuality, &how) && how != DW_VIRTUALITY_none) {
        return false;
    }
    if (!dwarf_attr(die, DW_AT_data_member_location, &attr)) {
        return !is_static(die);             /* of a union */
    }
    if (!dwarf_formudata(&attr, &w)) {
        *byte = w;
        return true;
    }
    if (dwarf_getlocation(&attr, &ops, &n) || n != 1 || ops[0].atom != DW_OP_plus_uconst) {
        return false;
    }
    *byte = ops[0].number;
    return true;
}

bool tool_types_place(Dwarf_Die *member, uint64_t *first_bit, unsigned *bits)
{
    uint64_t byte, n = 0, first, storage;
    Dwarf_Word size;
    Dwarf_Die type;
    bool is = byte_of(member, &byte);

    *first_bit = byte * 8;
    *bits = 0;
    if (!tool_types_number(member, DW_AT_bit_size, &n) || !n) {
        return is;
    }
    *bits = MIN(n, 65);                     /* more than can be */
    if (tool_types_number(member, DW_AT_data_bit_offset, &first)) {
        *first_bit = first;
    } else if (tool_types_number(member, DW_AT_bit_offset, &first)) {
        /* before DWARF 5: from the most significant bit of its unit on */
        if (!tool_types_number(member, DW_AT_byte_size, &storage)) {
            storage = tool_types_link(member, &type) && !dwarf_aggregate_size(&type, &size) ?
                size : 0;
        }
        *first_bit += storage * 8 - first - *bits;
    }
    return is;
}

static void fill(ToolTypes *t, Dwarf_Die *die, TtTypeMember *m)
{
    bool is_base = dwarf_tag(die) == DW_TAG_inheritance;

    *m = (TtTypeMember) {
        .name = is_base ? NULL : dwarf_diename(die), .type = tool_types_of(t, die),
        .is_base = is_base,
    };
    m->has_no_place = !tool_types_place(die, &m->first_bit, &m->bits);
}

/* The one that goes on at @n; or one that begins. */
static ToolCursor *cursor(ToolTypes *t, TtTypeId type, unsigned n)
{
    ToolCursor *oldest = t->cursors, *c;
    ToolEntry e;
    TtTypeTag tag;

    for (size_t i = 0; i < G_N_ELEMENTS(t->cursors); i++) {
        c = &t->cursors[i];
        if (c->in == type && c->n == n) {
            return c;
        }
        oldest = c->used < oldest->used ? c : oldest;
    }
    e = g_array_index(t->table, ToolEntry, type - 1);
    *oldest = (ToolCursor) { .in = type };
    oldest->has_next = tool_types_is_tag(&e.die, &tag) && tag != TT_TAG_ENUM &&
        !dwarf_child(&e.die, &oldest->next);
    return oldest;
}

bool tool_types_member(ToolTypes *t, TtTypeId type, unsigned n, TtTypeMember *member)
{
    ToolCursor *c;

    if (!type || type > t->table->len) {
        return false;
    }
    c = cursor(t, type, n);
    c->used = ++t->clock;
    while (c->has_next && tool_types_step(t)) {
        bool is = tool_types_is_member(&c->next) && c->n++ == n;

        if (is) {
            fill(t, &c->next, member);
        }
        c->has_next = !dwarf_siblingof(&c->next, &c->next);
        if (is) {
            return true;
        }
    }
    c->in = 0;
    c->used = 0;
    return false;
}

#else

bool tool_types_member(ToolTypes *t, TtTypeId type, unsigned n, TtTypeMember *member)
{
    return false;
}

#endif
