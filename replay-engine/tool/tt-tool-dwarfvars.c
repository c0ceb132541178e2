/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variables and constants of a program's DWARF: where they are, or what.
 */
#include "tt-tool-dwarf-int.h"

#ifdef TT_HAVE_LIBDW

#define LOCALS_MAX  64          /* blocks in each other */

/* ---- variables and constants ---- */

typedef enum Where { WHERE_NOWHERE, WHERE_ADDRESS, WHERE_THREAD, WHERE_ELSEWHERE } Where;

static bool is_thread_local(const Dwarf_Op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ops[i].atom == DW_OP_form_tls_address ||
            ops[i].atom == DW_OP_GNU_push_tls_address) {
            return true;
        }
    }
    return false;
}

static Where where_is(Dwarf_Die *die, uint64_t *addr)
{
    Dwarf_Attribute attr, indexed;
    Dwarf_Op *ops;
    size_t n;

    if (!dwarf_attr_integrate(die, DW_AT_location, &attr)) {
        return WHERE_NOWHERE;
    }
    if (dwarf_getlocation(&attr, &ops, &n) || !n) {
        return WHERE_NOWHERE;               /* empty: it was optimized away */
    }
    if (n == 1 && ops[0].atom == DW_OP_addr) {
        *addr = ops[0].number;
        return WHERE_ADDRESS;
    }
    if (n == 1 && (ops[0].atom == DW_OP_addrx || ops[0].atom == DW_OP_GNU_addr_index) &&
        !dwarf_getlocation_attr(&attr, ops, &indexed) && !dwarf_formaddr(&indexed, addr)) {
        return WHERE_ADDRESS;
    }
    return is_thread_local(ops, n) ? WHERE_THREAD : WHERE_ELSEWHERE;
}

static ToolNamed fail(TtDiag *why, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

static ToolNamed fail(TtDiag *why, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_vsnprintf(why->text, sizeof(why->text), fmt, ap);
    va_end(ap);
    return TOOL_NAMED_WRONG;
}

/* One that has a value instead of an address. */
static bool take_value(ToolTypes *t, Dwarf_Die *die, TtNameInfo *info)
{
    Dwarf_Attribute attr;
    TtTypeInfo type;

    info->type = tool_types_of(t, die);
    if (!info->type || !dwarf_attr_integrate(die, DW_AT_const_value, &attr)) {
        return false;
    }
    tool_types_describe(t, info->type, &type);
    info->kind = TT_NAME_NUMBER;
    if (type.kind != TT_TYPE_NUMBER || type.bytes > 8 || !type.bytes ||
        !tool_types_number(die, DW_AT_const_value, type.is_signed, &info->value)) {
        return false;
    }
    if (type.bytes < 8) {
        unsigned up = 64 - 8 * type.bytes;

        info->value = type.is_signed ? (uint64_t)((int64_t)(info->value << up) >> up) :
            info->value << up >> up;
    }
    return true;
}

typedef struct Found {
    uint64_t addr;
    unsigned n;                 /* at so many addresses */
    bool is_global, has_addr, is_declared, is_in_thread, is_gone;
    Dwarf_Die die, other;
} Found;

static void look_at(Dwarf_Die *die, Found *f)
{
    bool is_global = tool_types_has_flag(die, DW_AT_external);
    Dwarf_Attribute attr;
    uint64_t addr = 0;
    Where where = where_is(die, &addr);

    if (where == WHERE_ADDRESS && (!f->is_global || is_global)) {
        f->n = is_global && !f->is_global ? 1 : f->n + (!f->n || addr != f->addr);
        f->is_global = is_global;
        f->addr = addr;
        f->die = *die;
    } else if (where != WHERE_ADDRESS && !f->other.addr) {
        f->other = *die;
        f->is_in_thread = where == WHERE_THREAD;
        f->is_declared = tool_types_has_flag(die, DW_AT_declaration);
        f->is_gone = !f->is_declared && !dwarf_attr(die, DW_AT_const_value, &attr);
    }
}

static ToolNamed take_variable(ToolTypes *t, const char *name, size_t len, GArray *all,
                               TtNameInfo *info, TtDiag *why)
{
    int shown = MIN(len, 60);
    Found f = { 0 };

    for (unsigned i = 0; i < all->len; i++) {
        look_at(&g_array_index(all, Dwarf_Die, i), &f);
    }
    if (f.n > 1) {
        return fail(why, "there are several variables '%.*s': write the address of the one "
                    "that you mean", shown, name);
    }
    if (f.n && t->is_relocatable) {
        return fail(why, "'%.*s' has no address until its module is loaded: write "
                    "*(TYPE *)ADDRESS", shown, name);
    }
    if (f.n) {
        *info = (TtNameInfo) { TT_NAME_DATA, f.addr, tool_types_of(t, &f.die) };
        return TOOL_NAMED_HERE;
    }
    if (f.is_in_thread) {
        return fail(why, "'%.*s' is thread-local: each thread has one, at an address from "
                    "its $fs_base on", shown, name);
    }
    if (take_value(t, &f.other, info)) {
        return TOOL_NAMED_HERE;
    }
    *info = (TtNameInfo) { TT_NAME_DATA, 0, tool_types_of(t, &f.other) };
    if (f.is_gone) {
        fail(why, "'%.*s' was optimized away: it is not in memory", shown, name);
    }
    return TOOL_NAMED_TYPE;
}

ToolNamed tool_types_name(ToolTypes *t, const char *name, size_t len, TtNameInfo *info,
                          TtDiag *why)
{
    g_autofree char *key = g_strndup(name, len);
    GArray *all = g_hash_table_lookup(t->data, key);
    ToolNumber *number = g_hash_table_lookup(t->numbers, key);

    if (all) {
        return take_variable(t, name, len, all, info, why);
    }
    if (!number) {
        return TOOL_NAMED_NONE;
    }
    if (number->is_twice) {
        return fail(why, "there are several constants '%.*s' with different values: write "
                    "the number", (int)MIN(len, 60), name);
    }
    *info = (TtNameInfo) { TT_NAME_NUMBER, 0, tool_types_id(t, &number->of, 0) };
    if (!tool_types_number(&number->die, DW_AT_const_value,
                           tool_types_is_signed(&number->of), &info->value)) {
        return fail(why, "the value of '%.*s' is not known", (int)MIN(len, 60), name);
    }
    return TOOL_NAMED_HERE;
}

/* ---- local variables ---- */

typedef struct Local {
    const char *name;
    size_t len;
    TtDiag *why;
    bool found;
} Local;

static void look_in_block(Dwarf_Die *of, const char *function, Local *l, unsigned depth)
{
    Dwarf_Die die;

    if (depth == LOCALS_MAX || dwarf_child(of, &die)) {
        return;
    }
    do {
        int tag = dwarf_tag(&die);
        const char *name = dwarf_diename(&die);

        if (function && (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) &&
            name && !strncmp(name, l->name, l->len) && !name[l->len]) {
            tt_fail(l->why, TT_ERR_FORMAT, "'%.*s' is a %s of %.40s(): write the register or "
                    "the memory that it is in", (int)MIN(l->len, 40), l->name,
                    tag == DW_TAG_variable ? "local variable" : "parameter", function);
            l->found = true;
        } else if (tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block ||
                   tag == DW_TAG_namespace) {
            look_in_block(&die, tag == DW_TAG_subprogram ? name ?: "?" : function, l,
                          depth + 1);
        }
    } while (!l->found && !dwarf_siblingof(&die, &die));
}

static void look_in_unit(ToolTypes *t, Dwarf_Die *unit, void *opaque)
{
    Local *l = opaque;

    if (!l->found) {
        look_in_block(unit, NULL, l, 0);
    }
}

bool tool_types_is_local(ToolTypes *t, const char *name, size_t len, TtDiag *why)
{
    Local l = { name, len, why, false };

    tool_types_each_unit(t, look_in_unit, &l);
    return l.found;
}

#else

ToolNamed tool_types_name(ToolTypes *t, const char *name, size_t len, TtNameInfo *info,
                          TtDiag *why)
{
    return TOOL_NAMED_NONE;
}

bool tool_types_is_local(ToolTypes *t, const char *name, size_t len, TtDiag *why)
{
    return false;
}

#endif
