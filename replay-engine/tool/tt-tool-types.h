/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types, variables and constants of a program, from its DWARF (elfutils' libdw):
 * tt-tool-dwarf.c collects them, tt-tool-dwarfvars.c finds variables and constants,
 * tt-tool-dwarfscopes.c those in namespaces and classes,
 * tt-tool-types.c and tt-tool-dwarfmembers.c say what a type is, tt-tool-dwarfsame.c
 * compares those of one name, and tt-tool-names.c gives all of it to the translation of a
 * condition.
 */
#ifndef TT_TOOL_TYPES_H
#define TT_TOOL_TYPES_H

#include "tt-tool.h"
#include "debug/tt-lower.h"

typedef struct ToolTypes ToolTypes;

/* NULL: it has no debug information, nor is there a file beside it that has. Cost: looks
 * at all types and variables of it once. */
ToolTypes *tool_types_open(const char *path);
void tool_types_free(ToolTypes *t);             /* NULL is fine */
/* Does it? *@separate: g_free; another file that has what was stripped off @path, by build
 * ID or .gnu_debuglink, or NULL. */
bool tool_types_are_there(const char *path, char **separate);

/* See TtTypes. */
void tool_types_describe(ToolTypes *t, TtTypeId type, TtTypeInfo *info);
bool tool_types_member(ToolTypes *t, TtTypeId type, unsigned n, TtTypeMember *member);
TtTypeId tool_types_find(ToolTypes *t, TtTypeTag tag, const char *name, size_t len,
                         TtDiag *why);

/* What debug information says of @name; a function is none of it, but C++'s, by a name with
 * "::". */
typedef enum ToolNamed {
    TOOL_NAMED_NONE,
    TOOL_NAMED_HERE,            /* *@info: with an address of the file, or a number */
    TOOL_NAMED_TYPE,            /* *@info: only the type; another file has the variable */
    TOOL_NAMED_WRONG,           /* @why: it has no address, or several */
} ToolNamed;
ToolNamed tool_types_name(ToolTypes *t, const char *name, size_t len, TtNameInfo *info,
                          TtDiag *why);
/* Likewise of local variables: static ones have an address; and of what lies in classes and
 * namespaces of C++. Cost: looks at all. */
ToolNamed tool_types_local(ToolTypes *t, const char *name, size_t len, TtNameInfo *info,
                           TtDiag *why);
/* Is *@info's address one of Linux's per-CPU variables? Then it says so. Returns whether it
 * counts from 0, and so stays if the kernel moves. */
bool tool_types_per_cpu(ToolTypes *t, TtNameInfo *info);
/* A file with debug information of a part of the program, which is missing; or NULL. */
const char *tool_types_lost(ToolTypes *t);

#endif
