/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The system calls of a run, for tt syscalls and tt compare.
 */
#ifndef TT_TOOL_CALLS_H
#define TT_TOOL_CALLS_H

#include "tt-tool.h"
#include "trace/tt-calls.h"

/* Has QEMU replay @run with the plugin syscalls, and reads what that says. NULL: said why,
 * and *@status is what the process ends with. Cost: a replay of the run. */
TtCalls *tool_calls_load(const ToolArgs *a, const char *run, int *status);
/* The process that @name means: a path or the end of one, and #N for the Nth of several.
 * TT_CALLS_NO_PROCESS: said that there is none. If it is one of several, that is noted. */
uint32_t tool_calls_find(const TtCalls *c, const char *name, const char *run);
/* As tt_call_text, with the name of the call. g_free. */
char *tool_call_text(const TtCall *call);

#endif
