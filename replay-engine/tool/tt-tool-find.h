/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt find: what it is asked for and what came of it. tt-tool-find.c has it searched
 * for, tt-tool-findsay.c says what was found.
 */
#ifndef TT_TOOL_FIND_H
#define TT_TOOL_FIND_H

#include "tt-tool-verify.h"
#include "debug/tt-cond.h"

typedef enum ToolWhich { FIND_ALL, FIND_FIRST, FIND_LAST } ToolWhich;

typedef struct ToolFind {
    const ToolArgs *args;
    const char *run, *condition;    /* as it was typed */
    char *resolved;                 /* without names */
    TtCond *cond;
    ToolReplays replays;
    ToolSearch search;
    ToolSymbols *symbols;           /* NULL: none */
    uint64_t offset;                /* of the addresses there */
    uint64_t from, to, limit;
    uint64_t end;                   /* where the log ends */
    bool is_torn;                   /* it was cut off there */
    ToolWhich which;
    unsigned how;                   /* some of TT_COND_CHANGES... */
    bool is_json, is_quiet;
    bool shows_progress;
    bool is_cut_short;              /* there are more than @limit */
    bool is_interrupted;
    GPtrArray *hits;                /* of ToolFinding, in order; of the parts' */
} ToolFind;

/* tt_cond_resolve, with the names of @symbols, which may be NULL, @offset higher. */
TtStatus tool_resolve(const char *text, const ToolSymbols *symbols, uint64_t offset,
                      char **out, TtDiag *diag);
/* Likewise, of the memory that @text is the value of. */
TtStatus tool_resolve_place(const char *text, const ToolSymbols *symbols, uint64_t offset,
                            char **out, TtDiag *diag);

/* How far it is, on a terminal; and gone again. */
void tool_find_show_progress(const ToolFind *f);
void tool_find_hide_progress(const ToolFind *f);
/* All, when all parts have ended. Returns an exit status. */
int tool_find_say(const ToolFind *f);

#endif
