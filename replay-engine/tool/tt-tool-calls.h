/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The system calls of a run, for tt syscalls and tt compare.
 */
#ifndef TT_TOOL_CALLS_H
#define TT_TOOL_CALLS_H

#include "tt-tool.h"
#include "trace/tt-calls.h"

#include <stdio.h>

/* Has QEMU replay @run with the plugin syscalls, and reads what that says. NULL: said why,
 * and *@status is what the process ends with. Cost: a replay of the run. */
TtCalls *tool_calls_load(const ToolArgs *a, const char *run, int *status);
/* The process that @name means: a path or the end of one, and #N for the Nth of several.
 * TT_CALLS_NO_PROCESS: said that there is none. If it is one of several, that is noted. */
uint32_t tool_calls_find(const TtCalls *c, const char *name, const char *run);
/* Runs this program with @words, and -j and --qemu as they were given. What it writes to
 * stdout is in *@out, for the caller to fclose, or NULL. Returns its exit status. */
int tool_run_self(const ToolArgs *a, const GPtrArray *words, FILE **out);

/* What tt compare --by asks for. */
typedef struct ToolValue {
    uint64_t pos, value;
} ToolValue;

typedef struct ToolValues {
    const char *by;             /* "EXPRESSION at POINT": tool_values_check */
    const char *symbols;        /* file, or NULL */
    const TtCallsProcess *process;
    uint64_t end;               /* up to this position; 0: to the end */
} ToolValues;

/* False: said that it is not of that form. */
bool tool_values_check(const char *by);
/* Each value, as ToolValue, in *@values. Returns an exit status, having said what is
 * wrong. Cost: a replay of that part. */
int tool_values_load(const ToolArgs *a, const char *run, const ToolValues *asked,
                     GArray *values);

/* As tt_call_text, with the name of the call. g_free. */
char *tool_call_text(const TtCall *call);

#endif
