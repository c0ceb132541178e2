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

/* What is called so in scopes: namespaces, classes, enumerations. */
typedef struct ToolScoped {
    GArray *data, *code;        /* of Dwarf_Die: variables, functions */
    ToolNumber number;          /* .die.addr NULL: none */
    Dwarf_Die types[4];         /* by TtTypeTag; .addr NULL: none */
    bool differ[4];             /* there are several of them */
    bool is_cut;                /* it took too many steps: something may be missing */
} ToolScoped;

/* Where tool_types_member was in a type: it goes on from there. */
typedef struct ToolCursor {
    TtTypeId in;                /* 0: nowhere */
    unsigned n;
    Dwarf_Die next;
    bool has_next;
    uint64_t used;              /* at this time of the clock */
} ToolCursor;

struct ToolTypes {
    Dwfl *dwfl;
    Dwarf *dwarf;
    bool is_relocatable;        /* a kernel module, an object: it has no addresses yet */
    GArray *table;              /* of ToolEntry; a type's ID is its index + 1 */
    GHashTable *ids;            /* die.addr + dim -> ID */
    GHashTable *tags[4];        /* by TtTypeTag: name -> Dwarf_Die */
    GHashTable *more[4];        /* names that several entries define */
    GHashTable *differ[4];      /* those that were compared -> do they differ? */
    GHashTable *completed;      /* .addr of a declared one -> its Dwarf_Die elsewhere */
    GHashTable *several;        /* .addr of those of which there are several */
    GHashTable *numbers;        /* name -> ToolNumber */
    GHashTable *data;           /* name -> GArray of Dwarf_Die: variables */
    GHashTable *scoped;         /* name -> ToolScoped: what was looked for */
    Elf *elf;                   /* of the sections */
    const char *lost;           /* a file of its own for a unit, which is missing; or NULL */
    uint64_t steps;             /* from entry to entry: bounded, and never the file's */
    uint64_t clock;
    ToolCursor cursors[32];     /* more than types are nested in a search */
};

/* ---- tt-tool-dwarf.c ---- */
bool tool_types_has_flag(Dwarf_Die *die, unsigned name);
/* Or is it another unit's, by signature? */
bool tool_types_is_declared(Dwarf_Die *die);
/* @unit: its own entry, or that of the file that has the rest of it. */
typedef void ToolTake(ToolTypes *t, Dwarf_Die *die, void *opaque);
void tool_types_each_unit(ToolTypes *t, ToolTake *take, void *opaque);
/* What is directly in @unit, and in its namespaces. */
void tool_types_each_entry(ToolTypes *t, Dwarf_Die *unit, ToolTake *take, void *opaque);
/* A walk through a unit meets its entries in the order of their bytes. False: @die lies before
 * *@furthest, which it has met, so the file is damaged: it would meet some again and again. */
bool tool_types_is_ahead(const Dwarf_Die *die, const void **furthest);
const char *tool_types_name_of(Dwarf_Die *die);
bool tool_types_is_cplus(Dwarf_Die *die);
/* False: too many steps for one expression. */
bool tool_types_step(ToolTypes *t);

/* ---- tt-tool-dwarfsame.c ---- */
/* Is what is called so one type in all units that define it? Cost: looks at all, once. */
bool tool_types_is_one(ToolTypes *t, TtTypeTag tag, const char *name);
bool tool_types_is_same(ToolTypes *t, Dwarf_Die *a, Dwarf_Die *b);
/* The one that the unit of @die defines. */
bool tool_types_of_unit(ToolTypes *t, TtTypeTag tag, const char *name, Dwarf_Die *die,
                        Dwarf_Die *found);

/* ---- tt-tool-dwarfscopes.c ---- */
/* "name", "Class::NAME", where the first scopes may be missing, or "::name". Without "::",
 * of C++ only. Cost: looks at all, once. */
ToolScoped *tool_types_scoped(ToolTypes *t, const char *name);
void tool_types_scoped_free(void *scoped);

/* ---- tt-tool-dwarfvars.c ---- */
/* Where @addr lies: false: in nothing that the program has in memory. */
bool tool_types_section(ToolTypes *t, uint64_t addr, bool *is_per_cpu, bool *is_offset);

/* ---- tt-tool-dwarfmembers.c ---- */
bool tool_types_is_member(Dwarf_Die *die);
/* Where it begins in its struct. False: only the program knows. */
bool tool_types_place(Dwarf_Die *member, uint64_t *first_bit, unsigned *bits);

/* ---- tt-tool-types.c ---- */
/* Is it a struct, a union or an enumeration? */
bool tool_types_is_tag(Dwarf_Die *die, TtTypeTag *tag);
/* What DW_AT_type leads to. */
bool tool_types_link(Dwarf_Die *die, Dwarf_Die *to);
/* The type that @die's DW_AT_type names, without const and typedefs; 0: void. */
TtTypeId tool_types_of(ToolTypes *t, Dwarf_Die *die);
/* That of @die itself. */
TtTypeId tool_types_id(ToolTypes *t, Dwarf_Die *die, unsigned dim);
/* The attribute's number; of a form without a sign as it is. */
bool tool_types_number(Dwarf_Die *die, unsigned name, uint64_t *value);
bool tool_types_is_signed(Dwarf_Die *enumeration);

#endif
#endif
