/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A table of types by hand, for the tests of typed conditions: it knows the types, members
 * and names that a test gives it, and no others.
 */
#ifndef TT_LOWER_TABLE_H
#define TT_LOWER_TABLE_H

#include "debug/tt-lower.h"

#include <glib.h>

typedef struct Table {
    const TtTypeInfo *infos;    /* by ID */
    size_t n_infos;
    const struct TableMember { TtTypeId of; TtTypeMember m; } *members;
    size_t n_members;
    const struct TableType { TtTypeTag tag; const char *name; TtTypeId id; } *types;
    size_t n_types;
    const struct TableName { const char *name; TtNameInfo info; } *names;
    size_t n_names;
    const char *twice;          /* there are several types of this name; or NULL */
} Table;

typedef struct TableMember TableMember;
typedef struct TableType TableType;
typedef struct TableName TableName;

static inline void table_describe(void *opaque, TtTypeId type, TtTypeInfo *info)
{
    const Table *t = opaque;

    g_assert_cmpuint(type, <, t->n_infos);
    *info = t->infos[type];
}

static inline bool table_member(void *opaque, TtTypeId type, unsigned n, TtTypeMember *m)
{
    const Table *t = opaque;

    for (size_t i = 0; i < t->n_members; i++) {
        if (t->members[i].of == type && !n--) {
            *m = t->members[i].m;
            return true;
        }
    }
    return false;
}

static inline bool table_is(const char *name, size_t len, const char *what)
{
    return what && strlen(what) == len && !memcmp(name, what, len);
}

static inline TtTypeId table_find(void *opaque, TtTypeTag tag, const char *name, size_t len,
                                  TtDiag *why)
{
    const Table *t = opaque;

    for (size_t i = 0; i < t->n_types; i++) {
        if (t->types[i].tag == tag && table_is(name, len, t->types[i].name)) {
            return t->types[i].id;
        }
    }
    if (table_is(name, len, t->twice)) {
        tt_fail(why, TT_ERR_FORMAT, "there are several types '%s'", t->twice);
    }
    return 0;
}

static inline bool table_name(void *opaque, const char *name, size_t len, TtNameInfo *info,
                              TtDiag *why)
{
    const Table *t = opaque;

    for (size_t i = 0; i < t->n_names; i++) {
        if (table_is(name, len, t->names[i].name)) {
            *info = t->names[i].info;
            return true;
        }
    }
    tt_fail(why, TT_ERR_FORMAT, "there is no symbol '%.*s'", (int)len, name);
    return false;
}

/* What tt_lower takes of it. */
static inline TtTypes table_types(const Table *t)
{
    return (TtTypes) {
        .opaque = (void *)t, .describe = table_describe, .member = table_member,
        .find = table_find, .name = table_name,
    };
}

#endif
