/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variables and constants of a program's DWARF: where they are, or what.
 */
#include "tt-tool-dwarf-int.h"

#ifdef TT_HAVE_LIBDW

#include <gelf.h>

#define LOCALS_MAX  64          /* blocks in each other */

/* ---- where it is ---- */

static bool is_name_per_cpu(const char *name)
{
    return name && (!strcmp(name, ".data..percpu") || !strcmp(name, ".data.percpu"));
}

bool tool_types_section(ToolTypes *t, uint64_t addr, bool *is_per_cpu, bool *is_offset)
{
    Elf_Scn *section = NULL;
    bool is = false, has_any = false;
    GElf_Shdr h;
    size_t names;

    *is_per_cpu = *is_offset = false;
    if (!t->elf || elf_getshdrstrndx(t->elf, &names)) {
        return true;
    }
    while ((section = elf_nextscn(t->elf, section))) {
        if (!gelf_getshdr(section, &h) || !(h.sh_flags & SHF_ALLOC) || h.sh_flags & SHF_TLS) {
            continue;
        }
        has_any = true;
        /* what has no bytes may be at the end */
        is |= addr - h.sh_addr <= h.sh_size && (addr || h.sh_size);
        if (addr - h.sh_addr < h.sh_size &&
            is_name_per_cpu(elf_strptr(t->elf, names, h.sh_name))) {
            *is_per_cpu = true;
            *is_offset = !h.sh_addr;
        }
    }
    return is || !has_any;
}

bool tool_types_per_cpu(ToolTypes *t, TtNameInfo *info)
{
    bool is_offset = false;

    if (!t->is_relocatable) {               /* there all addresses count from 0 */
        tool_types_section(t, info->value, &info->is_per_cpu, &is_offset);
    }
    return is_offset;
}

const char *tool_types_lost(ToolTypes *t)
{
    return t->lost;
}

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
        !tool_types_number(die, DW_AT_const_value, &info->value)) {
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

static void look_at(ToolTypes *t, Dwarf_Die *die, Found *f)
{
    bool is_global = tool_types_has_flag(die, DW_AT_external), is_per_cpu, is_offset;
    Dwarf_Attribute attr;
    uint64_t addr = 0;
    Where where = where_is(die, &addr);

    if (where == WHERE_ADDRESS && !t->is_relocatable &&
        !tool_types_section(t, addr, &is_per_cpu, &is_offset)) {
        where = WHERE_NOWHERE;              /* the linker left it out */
    }
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

/* What has an address, or several. */
static ToolNamed take_found(ToolTypes *t, const char *name, size_t len, Found *f,
                            TtNameInfo *info, TtDiag *why)
{
    int shown = MIN(len, 60);

    if (f->n > 1) {
        return fail(why, "there are several variables '%.*s': write %s of the one that you "
                    "mean", shown, name, tool_types_is_cplus(&f->die) ?
                    "the scope (CLASS::NAME, or ::NAME) or the address" : "the address");
    }
    if (t->is_relocatable) {
        return fail(why, "'%.*s' has no address until its module is loaded: write "
                    "*(TYPE *)ADDRESS", shown, name);
    }
    *info = (TtNameInfo) { TT_NAME_DATA, f->addr, tool_types_of(t, &f->die) };
    return TOOL_NAMED_HERE;
}

static ToolNamed take_variable(ToolTypes *t, const char *name, size_t len, GArray *all,
                               TtNameInfo *info, TtDiag *why)
{
    int shown = MIN(len, 60);
    Found f = { 0 };

    for (unsigned i = 0; i < all->len; i++) {
        look_at(t, &g_array_index(all, Dwarf_Die, i), &f);
    }
    if (f.n) {
        return take_found(t, name, len, &f, info, why);
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

/* Of an enumeration: in C what fits is an int; C++ makes one of it where it is used, unless
 * the enumeration is wider. */
static void take_constant(ToolTypes *t, ToolNumber *number, TtNameInfo *info)
{
    int64_t value = info->value;
    bool is_int = value <= INT32_MAX &&
        value >= (tool_types_is_signed(&number->of) ? INT32_MIN : 0);
    uint64_t bytes = 0;

    info->kind = TT_NAME_NUMBER;
    tool_types_number(&number->of, DW_AT_byte_size, &bytes);
    if (!is_int ||
        (bytes > 4 && tool_types_is_cplus(&number->of))) {
        info->type = tool_types_id(t, &number->of, 0);
    }
}

static ToolNamed take_enumerator(ToolTypes *t, const char *name, size_t len,
                                 ToolNumber *number, TtNameInfo *info, TtDiag *why)
{
    int shown = MIN(len, 60);

    if (number->is_twice) {
        return fail(why, "there are several constants '%.*s' with different values: write "
                    "%sthe number", shown, name, tool_types_is_cplus(&number->of) ?
                    "its scope, as in CLASS::NAME, or " : "");
    }
    if (!tool_types_number(&number->die, DW_AT_const_value, &info->value)) {
        return fail(why, "the value of '%.*s' is not known", shown, name);
    }
    take_constant(t, number, info);
    return TOOL_NAMED_HERE;
}

static ToolNamed take_function(ToolTypes *t, const char *name, size_t len, GArray *all,
                               TtNameInfo *info, TtDiag *why)
{
    int shown = MIN(len, 60);
    bool is_per_cpu, is_offset;
    Dwarf_Addr addr;
    unsigned n = 0;

    for (unsigned i = 0; i < all->len; i++) {
        if (!dwarf_lowpc(&g_array_index(all, Dwarf_Die, i), &addr) &&
            (t->is_relocatable || tool_types_section(t, addr, &is_per_cpu, &is_offset)) &&
            (!n || addr != info->value)) {
            *info = (TtNameInfo) { TT_NAME_CODE, addr };
            n++;
        }
    }
    if (n > 1) {
        return fail(why, "there are several functions '%.*s': write the one's name in the "
                    "symbol table, as nm prints it, or its address", shown, name);
    }
    if (n && t->is_relocatable) {
        return fail(why, "'%.*s' has no address until its module is loaded: write the address",
                    shown, name);
    }
    return n ? TOOL_NAMED_HERE :
        fail(why, "'%.*s' has no code of its own here: it was inlined, or is elsewhere", shown,
             name);
}

/* In namespaces, classes and enumerations. */
static ToolNamed take_scoped(ToolTypes *t, const char *name, size_t len, TtNameInfo *info,
                             TtDiag *why)
{
    g_autofree char *key = g_strndup(name, len);
    ToolScoped *s = tool_types_scoped(t, key);

    if (s->is_cut) {
        return fail(why, "the debug information is too large to look for '%.*s' in it",
                    (int)MIN(len, 60), name);
    }
    return s->data->len ? take_variable(t, name, len, s->data, info, why) :
        s->number.die.addr ? take_enumerator(t, name, len, &s->number, info, why) :
        s->code->len ? take_function(t, name, len, s->code, info, why) : TOOL_NAMED_NONE;
}

ToolNamed tool_types_name(ToolTypes *t, const char *name, size_t len, TtNameInfo *info,
                          TtDiag *why)
{
    g_autofree char *key = g_strndup(name, len);
    GArray *all = g_hash_table_lookup(t->data, key);
    ToolNumber *number = g_hash_table_lookup(t->numbers, key);

    return strstr(key, "::") ? take_scoped(t, name, len, info, why) :
        all ? take_variable(t, name, len, all, info, why) :
        number ? take_enumerator(t, name, len, number, info, why) : TOOL_NAMED_NONE;
}

/* ---- local variables ---- */

typedef struct Local {
    const char *name;
    size_t len;
    TtDiag *why;
    bool is_found;              /* one that lives in a register or on the stack */
    Found found;                /* static ones */
    const void *furthest;       /* of the unit's entries */
} Local;

static void take_local(ToolTypes *t, Dwarf_Die *die, const char *function, Local *l)
{
    bool is_variable = dwarf_tag(die) == DW_TAG_variable;
    const char *name = tool_types_name_of(die);
    uint64_t addr;

    if (!name || strncmp(name, l->name, l->len) || name[l->len]) {
        return;
    }
    if (where_is(die, &addr) == WHERE_ADDRESS) {
        look_at(t, die, &l->found);
    } else if (!l->is_found) {
        tt_fail(l->why, TT_ERR_FORMAT, "'%.*s' is a %s of %.40s(): write the register or "
                "the memory that it is in", (int)MIN(l->len, 40), l->name,
                is_variable ? "local variable" : "parameter", function);
        l->is_found = true;
    }
}

static void look_in_block(ToolTypes *t, Dwarf_Die *of, const char *function, Local *l,
                          unsigned depth)
{
    Dwarf_Die die;

    if (depth == LOCALS_MAX || dwarf_child(of, &die)) {
        return;
    }
    while (tool_types_is_ahead(&die, &l->furthest)) {
        switch (dwarf_tag(&die)) {
        case DW_TAG_variable:
        case DW_TAG_formal_parameter:
            if (function) {
                take_local(t, &die, function, l);
            }
            break;
        case DW_TAG_subprogram:
            look_in_block(t, &die, dwarf_diename(&die) ?: "?", l, depth + 1);
            break;
        case DW_TAG_lexical_block:
        case DW_TAG_inlined_subroutine:
        case DW_TAG_namespace:
            look_in_block(t, &die, function, l, depth + 1);
            break;
        default:
            break;
        }
        if (dwarf_siblingof(&die, &die)) {
            break;
        }
    }
}

static void look_in_unit(ToolTypes *t, Dwarf_Die *unit, void *opaque)
{
    Local *l = opaque;

    l->furthest = unit->addr;
    look_in_block(t, unit, NULL, l, 0);
}

ToolNamed tool_types_local(ToolTypes *t, const char *name, size_t len, TtNameInfo *info,
                           TtDiag *why)
{
    Local l = { name, len, why };

    tool_types_each_unit(t, look_in_unit, &l);
    if (l.found.n) {
        return take_found(t, name, len, &l.found, info, why);
    }
    if (l.found.other.addr && !l.is_found) {
        return fail(why, "'%.*s' was optimized away: it is not in memory",
                    (int)MIN(len, 60), name);
    }
    return l.is_found ? TOOL_NAMED_WRONG : take_scoped(t, name, len, info, why);
}

#else

ToolNamed tool_types_name(ToolTypes *t, const char *name, size_t len, TtNameInfo *info,
                          TtDiag *why)
{
    return TOOL_NAMED_NONE;
}

ToolNamed tool_types_local(ToolTypes *t, const char *name, size_t len, TtNameInfo *info,
                           TtDiag *why)
{
    return TOOL_NAMED_NONE;
}

bool tool_types_per_cpu(ToolTypes *t, TtNameInfo *info)
{
    return false;
}

const char *tool_types_lost(ToolTypes *t)
{
    return NULL;
}

#endif
