/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt compare --by: the values of an expression each time that a point is reached, which
 * `tt find` looks for.
 */
#include "tt-tool-calls.h"
#include "tt-tool-find.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX  10000000
#define TABLE_MASK  "0xffffffffffffe000"        /* without the bit of page table isolation */

/* A hit is a value that is not 0: 0 is made another one. */
#define TURN_TEXT   "0x8000000000000000"
#define TURN        (UINT64_C(1) << 63)

static int check_names(const ToolArgs *a, const char *by, const ToolSymbols *symbols)
{
    g_autofree char *plain = NULL;
    TtCond *c = NULL;
    TtDiag diag;
    int result = TOOL_FINE;

    if (tool_resolve(by, symbols, 0, &plain, &diag) != TT_OK ||
        tt_cond_parse(plain, &c, &diag) != TT_OK) {
        result = tool_usage(a->command, "in '%s', %s", by, diag.text);
    }
    tt_cond_free(c);
    return result;
}

int tool_values_check(const ToolArgs *a, const char *by, const char *symbols)
{
    const char *at = g_strrstr(by, " at ");
    ToolSymbols *s = NULL;
    int result;

    if (!at || at == by || !at[4]) {
        return tool_usage(a->command, "--by takes 'EXPRESSION at POINT', such as '$rdx at "
                          "write', not '%s'", by);
    }
    result = symbols ? tool_symbols_load(symbols, &s) : TOOL_FINE;
    if (result == TOOL_FINE) {
        result = check_names(a, by, s);
    }
    tool_symbols_free(s);
    return result;
}

static char *condition(const char *by, const TtCallsProcess *p)
{
    const char *at = g_strrstr(by, " at ");

    return g_strdup_printf("(($cr3 & " TABLE_MASK ") == 0x%" PRIx64 " ? (u64)(%.*s) ^ "
                           TURN_TEXT
                           " : 0)%s", p->table, (int)(at - by), by, at);
}

static bool take(FILE *f, GArray *values)
{
    char *line = NULL;
    size_t size = 0;
    bool ok = true;

    while (ok && getline(&line, &size, f) > 0) {
        const char *value = strstr(line, " value 0x");
        ToolValue v = { 0 };

        ok = value && sscanf(line, "position %" SCNu64, &v.pos) == 1;
        v.value = ok ? g_ascii_strtoull(value + 7, NULL, 16) ^ TURN : 0;
        g_array_append_val(values, v);
    }
    free(line);
    return ok;
}

int tool_values_load(const ToolArgs *a, const char *run, const ToolValues *asked,
                     GArray *values)
{
    g_autofree char *cond = condition(asked->by, asked->process);
    g_autofree char *from = g_strdup_printf("%" PRIu64, asked->process->pos);
    g_autofree char *limit = g_strdup_printf("%d", VALUES_MAX + 1);
    g_autofree char *to = g_strdup_printf("%" PRIu64, asked->end);
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    const char *const fixed[] = {
        "find", run, cond, "--all", "--quiet", "--limit", limit, "--from", from,
    };
    int status;
    FILE *f;

    for (size_t i = 0; i < G_N_ELEMENTS(fixed); i++) {
        g_ptr_array_add(words, (char *)fixed[i]);
    }
    if (asked->end) {
        g_ptr_array_add(words, (char *)"--to");
        g_ptr_array_add(words, to);
    }
    if (asked->symbols) {
        g_ptr_array_add(words, (char *)"--symbols");
        g_ptr_array_add(words, (char *)asked->symbols);
    }
    status = tool_run_self(a, words, &f);
    if (status == TOOL_FINE && !take(f, values)) {
        status = tool_complain("tt find says what tt compare does not know");
    }
    if (status == TOOL_FINE && values->len > VALUES_MAX) {
        status = tool_complain("'%s' has more than %d values in '%s': name a point that is "
                               "reached less often", asked->by, VALUES_MAX, run);
    }
    if (f) {
        fclose(f);
    }
    return status;
}
