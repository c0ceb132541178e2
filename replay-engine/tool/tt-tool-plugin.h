/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt run-plugin: what it is asked for. tt-tool-plugin.c has QEMU replay the parts,
 * tt-tool-pluginout.c puts together what the plugin said in each, tt-tool-pluginsay.c
 * says what came of it. tt-tool-races.c is about the plugin races.
 */
#ifndef TT_TOOL_PLUGIN_H
#define TT_TOOL_PLUGIN_H

#include "tt-tool-verify.h"

#include <stdio.h>

typedef struct ToolRaces ToolRaces;

typedef struct ToolPlugin {
    const ToolArgs *args;
    const char *run;
    char *load;                 /* for -plugin: whole path, and arguments */
    bool is_ours;               /* its parts can be added up */
    bool is_races;              /* what it says is put into words */
    bool is_one_pass;           /* what was before a piece matters in it: no -j */
    ToolRaces *races;           /* NULL until then */
    ToolReplays replays;
    ToolSymbols *symbols;       /* NULL: none */
    uint64_t offset;            /* of the addresses there */
    const char *lcov;           /* a file to be made, or NULL */
    uint64_t from, to;
    char *scratch;              /* directory of what the processes write; ours */
    bool is_kept;               /* it has what could not be written elsewhere */
    bool is_json, is_quiet, is_interrupted;
} ToolPlugin;

/* What the plugin said in all parts: put together if it says how, else one after the
 * other; to stdout or --out, and to --lcov. False: said why not. */
bool tool_plugin_put(ToolPlugin *p);
/* What came of all, when all parts have ended. Returns an exit status. */
int tool_plugin_say(ToolPlugin *p);

/* ---- races ---- */

/* Functions that take and give locks, from the symbols or named by the user, into
 * p->load. False: said what is wrong. */
bool tool_races_load(ToolPlugin *p);
/* What it said in the file @log. NULL: not all of it is there. */
ToolRaces *tool_races_read(const char *log);
void tool_races_free(ToolRaces *all);           /* NULL is fine */
void tool_races_put(const ToolPlugin *p, const ToolRaces *all, FILE *to);
/* Members of a JSON object, with a comma in front. */
void tool_races_json(const ToolPlugin *p, const ToolRaces *all);

#endif
