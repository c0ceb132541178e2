/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of ToolTypes.
 */
#ifndef TT_TOOL_DWARF_INT_H
#define TT_TOOL_DWARF_INT_H

#include "tt-tool-types.h"

#ifdef TT_HAVE_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

typedef struct ToolEntry {      /* of the table of types */
    Dwarf_Die die;
    unsigned dim;               /* of an array of several dimensions */
} ToolEntry;

typedef struct ToolNumber {     /* an enumeration's */
    Dwarf_Die of, die;
    bool is_twice;              /* another enumeration has it with another value */
} ToolNumber;

struct ToolTypes {
    Dwfl *dwfl;
    Dwarf *dwarf;
    bool is_relocatable;        /* a kernel module, an object: it has no addresses yet */
    GArray *table;              /* of ToolEntry; a type's ID is its index + 1 */
    GHashTable *ids;            /* die.addr + dim -> ID */
    GHashTable *tags[4];        /* by TtTypeTag: name -> Dwarf_Die */
    GHashTable *twice[4];       /* names of which there are several */
    GHashTable *numbers;        /* name -> ToolNumber */
    GHashTable *data;           /* name -> GArray of Dwarf_Die: variables */
    /* where tool_types_member was */
    TtTypeId in;
    unsigned n;
    Dwarf_Die next;
    bool has_next;
};

/* ---- tt-tool-dwarf.c ---- */
bool tool_types_has_flag(Dwarf_Die *die, unsigned name);
/* @unit: its own entry, or that of the file that has the rest of it. */
typedef void ToolTakeUnit(ToolTypes *t, Dwarf_Die *unit, void *opaque);
void tool_types_each_unit(ToolTypes *t, ToolTakeUnit *take, void *opaque);

/* ---- tt-tool-types.c ---- */
/* The type that @die's DW_AT_type names, without const and typedefs; 0: void. */
TtTypeId tool_types_of(ToolTypes *t, Dwarf_Die *die);
/* That of @die itself. */
TtTypeId tool_types_id(ToolTypes *t, Dwarf_Die *die, unsigned dim);
/* The attribute's number, extended if @is_signed and its form has a width of its own. */
bool tool_types_number(Dwarf_Die *die, unsigned name, bool is_signed, uint64_t *value);
bool tool_types_is_signed(Dwarf_Die *enumeration);

#endif
#endif
