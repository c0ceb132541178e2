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

bool tool_types_is_declared(Dwarf_Die *die)
{
    return tool_types_has_flag(die, DW_AT_declaration) || dwarf_hasattr(die, DW_AT_signature);
}

bool tool_types_is_cplus(Dwarf_Die *die)
{
    Dwarf_Die unit;

    switch (dwarf_diecu(die, &unit, NULL, NULL) ? dwarf_srclang(&unit) : -1) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x2b:                              /* _17 and _20: not all libdw have them */
    case 0x2c:
        return true;
    default:
        return false;
    }
}

static void add_type(ToolTypes *t, TtTypeTag tag, Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);
    Dwarf_Die *known;

    if (!name) {
        return;
    }
    known = g_hash_table_lookup(t->tags[tag], name);
    if (!known) {
        g_hash_table_insert(t->tags[tag], (char *)name, copy(die));
    } else if (tool_types_is_declared(die)) {
        return;
    } else if (tool_types_is_declared(known)) {
        *known = *die;
    } else {
        g_hash_table_add(t->more[tag], (char *)name);
    }
}

static void add_number(ToolTypes *t, Dwarf_Die *of, Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);
    ToolNumber *known = name ? g_hash_table_lookup(t->numbers, name) : NULL;
    uint64_t a = 0, b = 0;

    if (known) {
        tool_types_number(&known->die, DW_AT_const_value, &a);
        tool_types_number(die, DW_AT_const_value, &b);
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

const char *tool_types_name_of(Dwarf_Die *die)
{
    Dwarf_Attribute attr;

    return dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attr));
}

static void add_variable(ToolTypes *t, Dwarf_Die *die)
{
    const char *name = tool_types_name_of(die);
    GArray *all = name ? g_hash_table_lookup(t->data, name) : NULL;

    if (name && !all) {
        all = g_array_new(false, false, sizeof(Dwarf_Die));
        g_hash_table_insert(t->data, (char *)name, all);
    }
    if (name) {
        g_array_append_val(all, *die);
    }
}

static void add(ToolTypes *t, Dwarf_Die *die, void *opaque)
{
    switch (dwarf_tag(die)) {
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
        add_type(t, TT_TAG_STRUCT, die);
        break;
    case DW_TAG_union_type:
        add_type(t, TT_TAG_UNION, die);
        break;
    case DW_TAG_enumeration_type:
        add_enum(t, die);
        break;
    case DW_TAG_typedef:
    case DW_TAG_base_type:
        add_type(t, TT_TAG_NAMED, die);
        break;
    case DW_TAG_variable:
        add_variable(t, die);
        break;
    default:
        break;
    }
}

bool tool_types_is_ahead(const Dwarf_Die *die, const void **furthest)
{
    bool is = (uintptr_t)die->addr > (uintptr_t)*furthest;

    *furthest = is ? die->addr : *furthest;
    return is;
}

static void each_child(ToolTypes *t, Dwarf_Die *of, ToolTake *take, void *opaque,
                       const void **furthest, unsigned depth)
{
    Dwarf_Die die;

    if (depth == NEST_MAX || dwarf_child(of, &die)) {
        return;
    }
    while (tool_types_is_ahead(&die, furthest)) {
        if (dwarf_tag(&die) == DW_TAG_namespace) {
            each_child(t, &die, take, opaque, furthest, depth + 1);
        } else {
            take(t, &die, opaque);
        }
        if (dwarf_siblingof(&die, &die)) {
            break;
        }
    }
}

void tool_types_each_entry(ToolTypes *t, Dwarf_Die *unit, ToolTake *take, void *opaque)
{
    const void *furthest = unit->addr;

    each_child(t, unit, take, opaque, &furthest, 0);
}

void tool_types_each_unit(ToolTypes *t, ToolTake *take, void *opaque)
{
    Dwarf_CU *cu = NULL;
    Dwarf_Die unit, split;
    uint8_t kind;

    while (!dwarf_get_units(t->dwarf, cu, &cu, NULL, &kind, &unit, &split)) {
        bool is_split = kind == DW_UT_skeleton && split.addr;
        Dwarf_Attribute attr;

        if (kind == DW_UT_skeleton && !split.addr) {
            t->lost = dwarf_formstring(dwarf_attr(&unit, DW_AT_dwo_name, &attr) ?:
                                       dwarf_attr(&unit, DW_AT_GNU_dwo_name, &attr));
        }
        take(t, is_split ? &split : &unit, opaque);
    }
}

static void add_unit(ToolTypes *t, Dwarf_Die *unit, void *opaque)
{
    tool_types_each_entry(t, unit, add, NULL);
}

/* ---- the file ---- */

static char *debuginfo_path;    /* NULL: libdwfl's usual places */

/* Files of this machine only: nobody asked for a server. */
static Dwfl_Module *open_module(const char *path, Dwfl **dwfl)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address, .debuginfo_path = &debuginfo_path,
    };
    Dwfl_Module *module;

    g_unsetenv("DEBUGINFOD_URLS");
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
    t->elf = elf;
    t->table = g_array_new(false, false, sizeof(ToolEntry));
    t->ids = g_hash_table_new(NULL, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(t->tags); i++) {
        t->tags[i] = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
        t->more[i] = g_hash_table_new(g_str_hash, g_str_equal);
        t->differ[i] = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    }
    t->completed = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    t->several = g_hash_table_new(NULL, NULL);
    t->numbers = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    t->data = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_array);
    t->scoped = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                      tool_types_scoped_free);
    tool_types_each_unit(t, add_unit, NULL);
    return t;
}

void tool_types_free(ToolTypes *t)
{
    if (t) {
        g_array_free(t->table, true);
        g_hash_table_destroy(t->ids);
        for (unsigned i = 0; i < G_N_ELEMENTS(t->tags); i++) {
            g_hash_table_destroy(t->tags[i]);
            g_hash_table_destroy(t->more[i]);
            g_hash_table_destroy(t->differ[i]);
        }
        g_hash_table_destroy(t->completed);
        g_hash_table_destroy(t->several);
        g_hash_table_destroy(t->numbers);
        g_hash_table_destroy(t->data);
        g_hash_table_destroy(t->scoped);
        dwfl_end(t->dwfl);
        g_free(t);
    }
}

/* ---- types by name ---- */

static TtTypeId fail(TtDiag *why, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

static TtTypeId fail(TtDiag *why, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_vsnprintf(why->text, sizeof(why->text), fmt, ap);
    va_end(ap);
    return 0;
}

/* C++ needs no tag. */
static Dwarf_Die *without_tag(ToolTypes *t, const char *name, TtTypeTag *tag)
{
    static const TtTypeTag tags[] = { TT_TAG_STRUCT, TT_TAG_UNION, TT_TAG_ENUM };

    for (size_t i = 0; i < G_N_ELEMENTS(tags); i++) {
        Dwarf_Die *die = g_hash_table_lookup(t->tags[tags[i]], name);

        if (die && tool_types_is_cplus(die)) {
            *tag = tags[i];
            return die;
        }
    }
    return NULL;
}

/* C++'s "Class::Type", which needs no tag. */
static TtTypeId find_scoped(ToolTypes *t, TtTypeTag tag, const char *name, TtDiag *why)
{
    ToolScoped *s = tool_types_scoped(t, name);
    TtTypeId found = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(s->types); i++) {
        if ((tag != TT_TAG_NAMED && tag != i) || !s->types[i].addr) {
            continue;
        }
        if (s->differ[i] || found) {
            return fail(why, "there are several types '%.40s': write more of its scopes, or "
                        "begin with a variable that leads to the one that you mean", name);
        }
        found = tool_types_id(t, &s->types[i], 0);
    }
    return found;
}

TtTypeId tool_types_find(ToolTypes *t, TtTypeTag tag, const char *name, size_t len,
                         TtDiag *why)
{
    static const char *const words[] = { "struct ", "union ", "enum ", "" };
    g_autofree char *key = g_strndup(name, len);
    Dwarf_Die *die = g_hash_table_lookup(t->tags[tag], key);
    bool has_no_tag = tag == TT_TAG_NAMED;

    if (strstr(key, "::")) {
        return find_scoped(t, tag, key, why);
    }
    if (!die && has_no_tag) {
        die = without_tag(t, key, &tag);
    }
    if (die && has_no_tag && (g_hash_table_contains(t->data, key) ||
                              g_hash_table_contains(t->numbers, key))) {
        return fail(why, "'%.40s' is a variable or constant in one file and a type in "
                    "another: for the variable, write it without brackets around it", key);
    }
    if (die && !tool_types_is_one(t, tag, key)) {
        return fail(why, "there are several types '%s%.40s': %sbegin with a variable that "
                    "leads to the one that you mean", has_no_tag ? "" : words[tag], key,
                    tool_types_is_cplus(die) ? "write CLASS::NAME, or " : "");
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
