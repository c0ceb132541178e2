/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the commands of the `tt` tool.
 */
#ifndef TT_TOOL_H
#define TT_TOOL_H

#include "tt/log.h"
#include "tt/manifest.h"

#include <glib.h>

/* Exit statuses. */
enum { TOOL_FINE = 0, TOOL_PROBLEM = 1, TOOL_USAGE = 2 };

/* Says on stderr what is wrong, as one line. Returns TOOL_PROBLEM. */
int tool_problem(const TtDiag *diag);

/* Opens RUN/log. NULL after having said why. */
TtLogReader *tool_open_log(const char *run);
/* Positions, events and bytes of a whole log. */
typedef struct ToolTotals {
    uint64_t first_pos, end_pos, n_events, n_segments, host_ns;
    uint64_t ev_raw, ev_stored, pl_raw, pl_stored;
} ToolTotals;
ToolTotals tool_totals(const TtLogReader *r);
/* "1,234,567"; the caller frees. */
char *tool_number(uint64_t n);
/* "1.2 MB"; the caller frees. */
char *tool_bytes(uint64_t n);
/* Digits, or 0x and hex digits. */
bool tool_parse_number(const char *text, uint64_t *n);

/* A run may come from anybody: its text must not drive the terminal. */
void tool_make_harmless(char *text);

int tool_stats(const char *run, bool json);
/* tt branch; @tool: how this program was called, @args: behind the command. */
int tool_branch(const char *tool, char **args);
/* Where the run stands among its branches: lines of `tt info`; members of its JSON
 * object, with a comma in front. */
void tool_print_tree(const char *run, const TtManifest *m);
void tool_json_tree(const char *run, const TtManifest *m);
/* In quotes. */
void tool_json_string(const char *text);

#endif
