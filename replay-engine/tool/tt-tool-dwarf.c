/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of a program's DWARF: types, variables and constants, collected once from all
 * compilation units. The bytes may be hostile: libdw checks them, and what leads from one
 * entry to another is bounded here.
 */
#include "tt-tool-dwarf-int.h"

#ifdef TT_HAVE_LIBDW
#include <gelf.h>

#define NEST_MAX    16          /* namespaces in each other */

/* ---- all names ---- */

bool tool_types_has_flag(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attr;
    bool is = false;

    return dwarf_attr(die, name, &attr) && !dwarf_formflag(&attr, &is) && is;
}

static Dwarf_Die *copy(Dwarf_Die *die)
{
    return g_memdup2(die, sizeof(*die));
}

/* Is it what another unit has, too? */
static bool is_same(Dwarf_Die *a, Dwarf_Die *b)
{
    return dwarf_tag(a) == dwarf_tag(b) && dwarf_bytesize(a) == dwarf_bytesize(b);
}

static void add_type(ToolTypes *t, TtTypeTag tag, Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);
    Dwarf_Die *known;

    if (!name) {
        return;
    }
    known = g_hash_table_lookup(t->tags[tag], name);
    if (!known || (tool_types_has_flag(known, DW_AT_declaration) &&
                   !tool_types_has_flag(die, DW_AT_declaration))) {
        g_hash_table_insert(t->tags[tag], (char *)name, copy(die));
    } else if (tag != TT_TAG_NAMED && !tool_types_has_flag(die, DW_AT_declaration) &&
               !is_same(known, die)) {
        g_hash_table_add(t->twice[tag], (char *)name);
    }
}

static void add_number(ToolTypes *t, Dwarf_Die *of, Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);
    ToolNumber *known = name ? g_hash_table_lookup(t->numbers, name) : NULL;
    uint64_t a = 0, b = 0;

    if (known) {
        tool_types_number(&known->die, DW_AT_const_value, false, &a);
        tool_types_number(die, DW_AT_const_value, false, &b);
        known->is_twice |= a != b;
    } else if (name) {
        known = g_new(ToolNumber, 1);
        *known = (ToolNumber) { *of, *die };
        g_hash_table_insert(t->numbers, (char *)name, known);
    }
}

static void add_enum(ToolTypes *t, Dwarf_Die *die)
{
    Dwarf_Die child;

    add_type(t, TT_TAG_ENUM, die);
    if (dwarf_child(die, &child)) {
        return;
    }
    do {
        if (dwarf_tag(&child) == DW_TAG_enumerator) {
            add_number(t, die, &child);
        }
    } while (!dwarf_siblingof(&child, &child));
}

static const char *name_of(Dwarf_Die *die)
{
    Dwarf_Attribute attr;

    return dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attr));
}

static void add_variable(ToolTypes *t, Dwarf_Die *die)
{
    const char *name = name_of(die);
    GArray *all = name ? g_hash_table_lookup(t->data, name) : NULL;

    if (name && !all) {
        all = g_array_new(false, false, sizeof(Dwarf_Die));
        g_hash_table_insert(t->data, (char *)name, all);
    }
    if (name) {
        g_array_append_val(all, *die);
    }
}

static void add_children(ToolTypes *t, Dwarf_Die *of, unsigned depth)
{
    Dwarf_Die die;

    if (depth == NEST_MAX || dwarf_child(of, &die)) {
        return;
    }
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_structure_type:
        case DW_TAG_class_type:
            add_type(t, TT_TAG_STRUCT, &die);
            break;
        case DW_TAG_union_type:
            add_type(t, TT_TAG_UNION, &die);
            break;
        case DW_TAG_enumeration_type:
            add_enum(t, &die);
            break;
        case DW_TAG_typedef:
        case DW_TAG_base_type:
            add_type(t, TT_TAG_NAMED, &die);
            break;
        case DW_TAG_variable:
            add_variable(t, &die);
            break;
        case DW_TAG_namespace:
            add_children(t, &die, depth + 1);
            break;
        default:
            break;
        }
    } while (!dwarf_siblingof(&die, &die));
}

void tool_types_each_unit(ToolTypes *t, ToolTakeUnit *take, void *opaque)
{
    Dwarf_CU *cu = NULL;
    Dwarf_Die unit, split;
    uint8_t kind;

    while (!dwarf_get_units(t->dwarf, cu, &cu, NULL, &kind, &unit, &split)) {
        take(t, kind == DW_UT_skeleton && split.addr ? &split : &unit, opaque);
    }
}

static void take_unit(ToolTypes *t, Dwarf_Die *unit, void *opaque)
{
    add_children(t, unit, 0);
}

/* ---- the file ---- */

static char *debuginfo_path;    /* NULL: libdwfl's usual places */

static Dwfl_Module *open_module(const char *path, Dwfl **dwfl)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address, .debuginfo_path = &debuginfo_path,
    };
    Dwfl_Module *module;

    *dwfl = dwfl_begin(&callbacks);
    module = *dwfl ? dwfl_report_offline(*dwfl, "", path, -1) : NULL;
    if (*dwfl) {
        dwfl_report_end(*dwfl, NULL, NULL);
    }
    return module;
}

bool tool_types_are_there(const char *path, char **separate)
{
    Dwfl *dwfl;
    Dwfl_Module *module = open_module(path, &dwfl);
    const char *file = NULL;
    Dwarf_Addr bias;
    bool is = module && dwfl_module_getdwarf(module, &bias);

    if (is) {
        dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, &file);
    }
    *separate = g_strdup(file);
    dwfl_end(dwfl);
    return is;
}

static void free_array(void *a)
{
    g_array_free(a, true);
}

ToolTypes *tool_types_open(const char *path)
{
    ToolTypes *t = g_new0(ToolTypes, 1);
    Dwfl_Module *module = open_module(path, &t->dwfl);
    Dwarf_Addr bias;
    GElf_Ehdr head;
    Elf *elf;

    t->dwarf = module ? dwfl_module_getdwarf(module, &bias) : NULL;
    if (!t->dwarf) {
        dwfl_end(t->dwfl);
        g_free(t);
        return NULL;
    }
    elf = dwfl_module_getelf(module, &bias);
    t->is_relocatable = elf && gelf_getehdr(elf, &head) && head.e_type == ET_REL;
    t->table = g_array_new(false, false, sizeof(ToolEntry));
    t->ids = g_hash_table_new(NULL, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(t->tags); i++) {
        t->tags[i] = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
        t->twice[i] = g_hash_table_new(g_str_hash, g_str_equal);
    }
    t->numbers = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    t->data = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_array);
    tool_types_each_unit(t, take_unit, NULL);
    return t;
}

void tool_types_free(ToolTypes *t)
{
    if (t) {
        g_array_free(t->table, true);
        g_hash_table_destroy(t->ids);
        for (unsigned i = 0; i < G_N_ELEMENTS(t->tags); i++) {
            g_hash_table_destroy(t->tags[i]);
            g_hash_table_destroy(t->twice[i]);
        }
        g_hash_table_destroy(t->numbers);
        g_hash_table_destroy(t->data);
        dwfl_end(t->dwfl);
        g_free(t);
    }
}

/* ---- types by name ---- */

TtTypeId tool_types_find(ToolTypes *t, TtTypeTag tag, const char *name, size_t len,
                         TtDiag *why)
{
    static const char *const words[] = { "struct ", "union ", "enum ", "" };
    g_autofree char *key = g_strndup(name, len);
    Dwarf_Die *die = g_hash_table_lookup(t->tags[tag], key);

    if (!die && tag == TT_TAG_NAMED) {          /* C++ needs no tag */
        die = g_hash_table_lookup(t->tags[TT_TAG_STRUCT], key);
        die = die && dwarf_tag(die) == DW_TAG_class_type ? die : NULL;
    }
    if (die && g_hash_table_contains(t->twice[tag], key)) {
        tt_fail(why, TT_ERR_FORMAT, "there are several types '%s%.60s' of different sizes: "
                "begin with a variable that leads to the one that you mean", words[tag], key);
        return 0;
    }
    return die ? tool_types_id(t, die, 0) : 0;
}

#else

ToolTypes *tool_types_open(const char *path)
{
    return NULL;
}

void tool_types_free(ToolTypes *t)
{
}

bool tool_types_are_there(const char *path, char **separate)
{
    *separate = NULL;
    return false;
}

TtTypeId tool_types_find(ToolTypes *t, TtTypeTag tag, const char *name, size_t len,
                         TtDiag *why)
{
    return 0;
}

#endif
