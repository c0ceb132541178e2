/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names with "::" of a program's DWARF: what lies in namespaces, classes and enumerations.
 * Each is looked for when it is asked for, in all units: few are.
 */
#include "tt-tool-dwarf-int.h"

#ifdef TT_HAVE_LIBDW

#define NEST_MAX    32          /* scopes in each other, and their entries */
#define LINKS_MAX   4           /* from what is defined outside of its class, back into it */

typedef struct Outside {        /* one that another entry, in a scope, declares */
    Dwarf_Die die;
    void *declared;             /* its .addr */
} Outside;

typedef struct Walk {
    char **wanted;              /* the names of scopes, from the outermost on */
    unsigned n_wanted;
    const char *last;           /* and what is in them */
    bool is_global;             /* the outermost one is in none */
    const char *scopes[NEST_MAX];
    unsigned n_scopes, depth;
    const void **furthest;      /* of the unit's entries */
    ToolScoped *found;
    GHashTable *declared;       /* .addr of what was found */
    GArray *outside;            /* of Outside */
} Walk;

static bool is_here(const Walk *w)
{
    if (w->n_scopes < w->n_wanted || (w->is_global && w->n_scopes > w->n_wanted)) {
        return false;
    }
    for (unsigned i = 0; i < w->n_wanted; i++) {
        if (strcmp(w->scopes[w->n_scopes - w->n_wanted + i], w->wanted[i])) {
            return false;
        }
    }
    return true;
}

/* ---- what is found ---- */

static void take_number(Walk *w, Dwarf_Die *of, Dwarf_Die *die)
{
    ToolNumber *n = &w->found->number;
    uint64_t a = 0, b = 0;

    if (!n->die.addr) {
        *n = (ToolNumber) { *of, *die };
        return;
    }
    tool_types_number(&n->die, DW_AT_const_value, &a);
    tool_types_number(die, DW_AT_const_value, &b);
    n->is_twice |= a != b;
}

static void take_type(ToolTypes *t, Walk *w, TtTypeTag tag, Dwarf_Die *die)
{
    Dwarf_Die *known = &w->found->types[tag];

    if (!known->addr || (tool_types_is_declared(known) && !tool_types_is_declared(die))) {
        *known = *die;
    } else if (!tool_types_is_declared(die)) {
        w->found->differ[tag] |= !tool_types_is_same(t, known, die);
    }
}

static void take(ToolTypes *t, Walk *w, Dwarf_Die *die)
{
    TtTypeTag tag;

    switch (dwarf_tag(die)) {
    case DW_TAG_member:                     /* a static one, before DWARF 5 */
        if (tool_types_has_flag(die, DW_AT_external)) {
            g_array_append_val(w->found->data, *die);
        }
        break;
    case DW_TAG_variable:
        g_array_append_val(w->found->data, *die);
        break;
    case DW_TAG_subprogram:
        g_array_append_val(w->found->code, *die);
        break;
    case DW_TAG_typedef:
    case DW_TAG_base_type:
        take_type(t, w, TT_TAG_NAMED, die);
        break;
    default:
        if (tool_types_is_tag(die, &tag)) {
            take_type(t, w, tag, die);
        }
    }
}

/* ---- where it is looked for ---- */

/* A class that a unit of types has may stand here without its name. */
static void push(Walk *w, Dwarf_Die *scope)
{
    const char *name = dwarf_diename(scope);
    Dwarf_Attribute attr;
    Dwarf_Die other;

    if (!name && dwarf_attr(scope, DW_AT_signature, &attr) &&
        dwarf_formref_die(&attr, &other)) {
        name = dwarf_diename(&other);
    }
    if (name && w->n_scopes < NEST_MAX) {
        w->scopes[w->n_scopes++] = name;
    }
}

/* What is defined outside of its class or namespace leads to what is declared there. */
static bool leads_back(Dwarf_Die *die, Dwarf_Die *to)
{
    Dwarf_Attribute attr;

    return (dwarf_attr(die, DW_AT_specification, &attr) ||
            dwarf_attr(die, DW_AT_abstract_origin, &attr)) && dwarf_formref_die(&attr, to);
}

static void look_at(ToolTypes *t, Walk *w, Dwarf_Die *die)
{
    const char *name = tool_types_name_of(die);
    Dwarf_Die back = *die;
    unsigned links = 0;

    if (!name || strcmp(name, w->last)) {
        return;
    }
    while (links < LINKS_MAX && leads_back(&back, &back)) {
        links++;
    }
    if (links) {
        g_array_append_val(w->outside, ((Outside) { *die, back.addr }));
    } else if (is_here(w)) {
        g_hash_table_add(w->declared, die->addr);
        take(t, w, die);
    }
}

/* Its constants can be named with the enumeration's name, too; those of an enum class must. */
static void look_at_constants(Walk *w, Dwarf_Die *of)
{
    bool is_class = tool_types_has_flag(of, DW_AT_enum_class) && w->n_wanted;
    bool is = !is_class && is_here(w);
    Dwarf_Die die;

    push(w, of);
    if ((!is && !is_here(w)) || dwarf_child(of, &die)) {
        return;
    }
    do {
        const char *name = dwarf_diename(&die);

        if (dwarf_tag(&die) == DW_TAG_enumerator && name && !strcmp(name, w->last)) {
            take_number(w, of, &die);
        }
    } while (!dwarf_siblingof(&die, &die));
}

static void look_within(ToolTypes *t, Walk *w, Dwarf_Die *of);

/* Those between the unit and the type, which is declared there and defined elsewhere. What
 * has it is the last entry of each level that begins before it. */
static void take_scopes(ToolTypes *t, Walk *w, Dwarf_Die *declared)
{
    Dwarf_Die at, next;

    w->n_scopes = 0;
    if (!dwarf_diecu(declared, &at, NULL, NULL)) {
        return;
    }
    for (unsigned depth = 0; depth < NEST_MAX && !dwarf_child(&at, &at); depth++) {
        while (!dwarf_siblingof(&at, &next) && next.addr > at.addr &&
               next.addr <= declared->addr) {
            if (!tool_types_step(t)) {
                w->found->is_cut = true;
                return;
            }
            at = next;
        }
        if (at.addr >= declared->addr) {
            break;
        }
        push(w, &at);
    }
}

static void look_into(ToolTypes *t, Walk *w, Dwarf_Die *of)
{
    int tag = dwarf_tag(of);
    TtTypeTag ignored;
    Dwarf_Die back;
    Walk in = *w;

    if (tag != DW_TAG_namespace && !tool_types_is_tag(of, &ignored)) {
        return;
    }
    if (leads_back(of, &back)) {
        take_scopes(t, &in, &back);
    }
    if (tag == DW_TAG_enumeration_type) {
        look_at_constants(&in, of);
    } else {
        push(&in, of);
        look_within(t, &in, of);
    }
}

static void look_within(ToolTypes *t, Walk *w, Dwarf_Die *of)
{
    Dwarf_Die die;

    if (w->depth++ == NEST_MAX || dwarf_child(of, &die)) {
        return;
    }
    while (tool_types_is_ahead(&die, w->furthest)) {
        look_at(t, w, &die);
        look_into(t, w, &die);
        if (dwarf_siblingof(&die, &die)) {
            break;
        }
    }
}

static void look_in_unit(ToolTypes *t, Dwarf_Die *unit, void *opaque)
{
    const void *furthest = unit->addr;
    Walk w = *(Walk *)opaque;

    w.furthest = &furthest;
    if (w.n_wanted || w.is_global || tool_types_is_cplus(unit)) {
        look_within(t, &w, unit);
    }
}

/* ---- a name ---- */

static void look(ToolTypes *t, Walk *w)
{
    tool_types_each_unit(t, look_in_unit, w);
    for (unsigned i = 0; i < w->outside->len; i++) {
        Outside *o = &g_array_index(w->outside, Outside, i);

        if (g_hash_table_contains(w->declared, o->declared)) {
            take(t, w, &o->die);
        }
    }
}

ToolScoped *tool_types_scoped(ToolTypes *t, const char *name)
{
    ToolScoped *s = g_hash_table_lookup(t->scoped, name);
    g_auto(GStrv) parts = g_strsplit(name, "::", -1);
    unsigned n = g_strv_length(parts);
    bool is_global = n > 1 && !parts[0][0];
    Walk w = {
        .wanted = parts + is_global, .n_wanted = n - 1 - is_global, .last = parts[n - 1],
        .is_global = is_global,
    };

    if (!s) {
        s = w.found = g_new0(ToolScoped, 1);
        s->data = g_array_new(false, false, sizeof(Dwarf_Die));
        s->code = g_array_new(false, false, sizeof(Dwarf_Die));
        w.declared = g_hash_table_new(NULL, NULL);
        w.outside = g_array_new(false, false, sizeof(Outside));
        look(t, &w);
        g_hash_table_destroy(w.declared);
        g_array_free(w.outside, true);
        g_hash_table_insert(t->scoped, g_strdup(name), s);
    }
    return s;
}

void tool_types_scoped_free(void *scoped)
{
    ToolScoped *s = scoped;

    g_array_free(s->data, true);
    g_array_free(s->code, true);
    g_free(s);
}

#endif
