/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt run-plugin: what it is asked for. tt-tool-plugin.c has QEMU replay the parts,
 * tt-tool-pluginout.c puts together what the plugin said in each, tt-tool-pluginsay.c
 * says what came of it.
 */
#ifndef TT_TOOL_PLUGIN_H
#define TT_TOOL_PLUGIN_H

#include "tt-tool-verify.h"

typedef struct ToolPlugin {
    const ToolArgs *args;
    const char *run;
    char *load;                 /* for -plugin: whole path, and arguments */
    bool is_ours;               /* its parts can be added up */
    ToolReplays replays;
    ToolSymbols *symbols;       /* NULL: none */
    uint64_t offset;            /* of the addresses there */
    const char *lcov;           /* a file to be made, or NULL */
    uint64_t from, to;
    char *scratch;              /* directory of what the processes write; ours */
    bool is_json, is_quiet, is_interrupted;
} ToolPlugin;

/* What the plugin said in all parts: put together if it says how, else one after the
 * other; to stdout or --out, and to --lcov. False: said why not. */
bool tool_plugin_put(ToolPlugin *p);
/* What came of all, when all parts have ended. Returns an exit status. */
int tool_plugin_say(ToolPlugin *p);

#endif
