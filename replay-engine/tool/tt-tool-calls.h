/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The system calls of a run, for tt syscalls and tt compare.
 */
#ifndef TT_TOOL_CALLS_H
#define TT_TOOL_CALLS_H

#include "tt-tool.h"
#include "trace/tt-calls.h"

#include <stdio.h>

/* Has QEMU replay @run with the plugin syscalls, and reads what that says; by -j, or
 * @in_one process. NULL: said why, and *@status is what the process ends with. Cost: a
 * replay of the run. */
TtCalls *tool_calls_load(const ToolArgs *a, const char *run, bool in_one, int *status);
/* Can the value of @option, if it is given, name a process? False: said that it cannot. */
bool tool_calls_check_name(const ToolArgs *a, const char *option);
/* The process that @name, which was checked, means: a path or the end of one, and #N for the
 * Nth of several. TT_CALLS_NO_PROCESS: said that there is none. If it is one of several,
 * that is noted. */
uint32_t tool_calls_find(const TtCalls *c, const char *name, const char *run);
/* Runs this program with @words, and -j and --qemu as they were given. What it writes to
 * stdout is in *@out, for the caller to fclose, or NULL. Returns its exit status. */
int tool_run_self(const ToolArgs *a, const GPtrArray *words, FILE **out);
/* The same without -j. Both end with this process. */
int tool_run_one(const ToolArgs *a, const GPtrArray *words, FILE **out);

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

/* Is @by of that form, and are its names known? An exit status, having said what is
 * wrong. */
int tool_values_check(const ToolArgs *a, const char *by, const char *symbols);
/* Each value, as ToolValue, in *@values. Returns an exit status, having said what is
 * wrong. Cost: a replay of that part. */
int tool_values_load(const ToolArgs *a, const char *run, const ToolValues *asked,
                     GArray *values);

/* ---- branches: tt compare --by branches ---- */

typedef struct ToolJump {
    uint64_t pos, from, to;     /* addresses as in the program's file */
} ToolJump;

/* Names of functions in the files of both sides, and what they have in common. */
typedef struct ToolJumps ToolJumps;

/* NULL: said why not. */
ToolJumps *tool_jumps_new(const char *symbols, const char *with_symbols);
void tool_jumps_free(ToolJumps *j);             /* NULL is fine */
/* Each jump of @process, as ToolJump, in *@out, up to position @end; 0: to the run's end.
 * Returns an exit status, having said what is wrong. Cost: a replay of that part. */
int tool_jumps_load(const ToolJumps *j, unsigned side, const ToolArgs *a, const char *run,
                    const TtCallsProcess *process, uint64_t end, GArray *out);
/* What a jump of one side has in common with one of the other that does the same; @j's.
 * NULL: it is not compared. Cost: O(1), of a new jump O(log of the functions). */
const char *tool_jumps_key(ToolJumps *j, unsigned side, uint64_t from, uint64_t to);
/* "main+0x20 -> write". g_free. */
char *tool_jumps_text(const ToolJumps *j, unsigned side, uint64_t from, uint64_t to);

/* As tt_call_text, with the name of the call. g_free. */
char *tool_call_text(const TtCall *call);

#endif
