/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt compare: where a program of one run does something else than a program of another:
 * its old and its new version, or the same one with another input. (URDB section 6.)
 */
#include "tt-tool-calls.h"
#include "trace/tt-align.h"

#include <inttypes.h>
#include <stdio.h>

#define DIFFERENCES_MAX 4000    /* elements that only one side has: see tt_align */
#define CONTEXT         2

typedef struct Side {
    const char *run;
    TtCalls *calls;
    uint32_t process;
    GArray *which;              /* uint32_t: calls of that process */
    GArray *keys;               /* uint32_t: the same number, the same call */
} Side;

typedef struct Compare {
    const ToolArgs *args;
    Side side[2];
    GHashTable *known;          /* key -> its number */
    TtHunk *hunks;
    uint32_t n_hunks;
    uint64_t limit;             /* of hunks that are shown */
    bool is_json;
} Compare;

/* ---- two sides ---- */

static uint32_t number_of(Compare *c, const TtCall *call)
{
    g_autofree char *key = tt_call_key(call);
    gpointer known = g_hash_table_lookup(c->known, key);

    if (!known) {
        known = GUINT_TO_POINTER(g_hash_table_size(c->known) + 1);
        g_hash_table_insert(c->known, g_steal_pointer(&key), known);
    }
    return GPOINTER_TO_UINT(known);
}

static int load(Compare *c, Side *s, const char *run, const char *process)
{
    int status;

    s->run = run;
    s->which = g_array_new(false, false, sizeof(uint32_t));
    s->keys = g_array_new(false, false, sizeof(uint32_t));
    s->calls = tool_calls_load(c->args, run, &status);
    if (!s->calls) {
        return status;
    }
    s->process = tool_calls_find(s->calls, process, run);
    if (s->process == TT_CALLS_NO_PROCESS) {
        return TOOL_PROBLEM;
    }
    for (uint32_t i = 0; i < tt_calls_count(s->calls); i++) {
        const TtCall *call = tt_calls_at(s->calls, i);
        uint32_t key;

        if (call->process == s->process) {
            key = number_of(c, call);
            g_array_append_val(s->which, i);
            g_array_append_val(s->keys, key);
        }
    }
    return TOOL_FINE;
}

static const TtCall *call_at(const Side *s, uint32_t i)
{
    return i < s->which->len ?
        tt_calls_at(s->calls, g_array_index(s->which, uint32_t, i)) : NULL;
}

/* ---- for people ---- */

static void print_call(const Side *s, const char *mark, uint32_t i)
{
    const TtCall *call = call_at(s, i);
    g_autofree char *text = tool_call_text(call), *pos = tool_number(call->pos);

    printf("%s %17s  %s\n", mark, pos, text);
}

/* What both did before it; the positions are the first run's. */
static void print_hunk(const Compare *c, const TtHunk *h)
{
    for (uint32_t i = h->a > CONTEXT ? h->a - CONTEXT : 0; i < h->a; i++) {
        print_call(&c->side[0], " ", i);
    }
    for (uint32_t i = 0; i < h->n_a; i++) {
        print_call(&c->side[0], "-", h->a + i);
    }
    for (uint32_t i = 0; i < h->n_b; i++) {
        print_call(&c->side[1], "+", h->b + i);
    }
}

static void print_side(const Side *s, const char *mark)
{
    const TtCallsProcess *p = tt_calls_process(s->calls, s->process);
    g_autofree char *pos = tool_number(p->pos), *n = tool_count(s->which->len, "call");

    printf("%s %s of '%s', which began at position %s: %s\n", mark, p->name, s->run, pos, n);
}

static void print_text(const Compare *c)
{
    guint n = MIN(c->n_hunks, c->limit);
    g_autofree char *same = NULL;

    if (!c->n_hunks) {
        g_autofree char *all = tool_count(c->side[0].which->len, "system call");

        printf("Both did the same: %s.\n", all);
        return;
    }
    print_side(&c->side[0], "-");
    print_side(&c->side[1], "+");
    same = tool_count(c->hunks[0].a, "call");
    printf("The same at first: %s.\n", same);
    for (guint i = 0; i < n; i++) {
        const TtHunk *h = &c->hunks[i];

        printf("\n");
        print_hunk(c, h);
    }
    if (n < c->n_hunks) {
        printf("\n%u more difference%s: --all shows them\n", c->n_hunks - n,
               c->n_hunks - n > 1 ? "s" : "");
    }
}

/* ---- for programs ---- */

static void json_calls(const Side *s, const char *name, uint32_t from, uint32_t n)
{
    printf(", \"%s\": [", name);
    for (uint32_t i = from; i < from + n; i++) {
        g_autofree char *text = tool_call_text(call_at(s, i));

        printf("%s{\"position\": %" PRIu64 ", \"text\": ", i > from ? ", " : "",
               call_at(s, i)->pos);
        tool_json_string(text);
        printf("}");
    }
    printf("]");
}

static void print_json(const Compare *c)
{
    tool_json_begin();
    printf("\"same\": %s, \"calls\": [%u, %u], \"differences\": [",
           tool_json_bool(!c->n_hunks), c->side[0].which->len, c->side[1].which->len);
    for (guint i = 0; i < MIN(c->n_hunks, c->limit); i++) {
        const TtHunk *h = &c->hunks[i];

        printf("%s\n {\"alike\": [%" PRIu32 ", %" PRIu32 "]", i ? "," : "", h->a, h->b);
        json_calls(&c->side[0], "first", h->a, h->n_a);
        json_calls(&c->side[1], "second", h->b, h->n_b);
        printf("}");
    }
    printf("], \"more\": %u}\n",
           c->n_hunks - (uint32_t)MIN(c->n_hunks, c->limit));
}

/* ---- all of it ---- */

static int compare(Compare *c)
{
    c->n_hunks = tt_align((uint32_t *)c->side[0].keys->data, c->side[0].keys->len,
                          (uint32_t *)c->side[1].keys->data, c->side[1].keys->len,
                          DIFFERENCES_MAX, &c->hunks);
    if (c->is_json) {
        print_json(c);
    } else {
        print_text(c);
    }
    return c->n_hunks ? TOOL_DIVERGED : TOOL_FINE;
}

static void cleanup(Compare *c)
{
    for (unsigned i = 0; i < 2; i++) {
        Side *s = &c->side[i];

        tt_calls_free(s->calls);
        if (s->which) {
            g_array_free(s->which, true);
            g_array_free(s->keys, true);
        }
    }
    g_free(c->hunks);
    g_hash_table_destroy(c->known);
}

int tool_compare(const ToolArgs *a)
{
    const char *first = tool_value(a, "--process");
    const char *second = tool_value(a, "--with") ?: first;
    Compare c = {
        .args = a, .is_json = tool_has(a, "--json"),
        .known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .limit = tool_has(a, "--all") ? UINT64_MAX : 1,
    };
    int status;

    if (!first) {
        g_hash_table_destroy(c.known);
        return tool_usage(a->command, "--process says which program: a path, or the end of "
                          "one");
    }
    status = load(&c, &c.side[0], a->operand[0], first);
    status = status == TOOL_FINE ? load(&c, &c.side[1], a->operand[1], second) : status;
    status = status == TOOL_FINE ? compare(&c) : status;
    cleanup(&c);
    return status;
}
