/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt compare: where a program of one run does something else than a program of another:
 * its old and its new version, or the same one with another input. (URDB section 6.)
 */
#include "tt-tool-calls.h"
#include "trace/tt-align.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DIFFERENCES_MAX 4000    /* elements that only one side has: see tt_align */
#define CONTEXT         2
#define EXIT_GROUP      231
#define BRANCHES        "branches"      /* of --by */

/* What is compared: a call, a value of --by, or a jump. */
typedef struct Item {
    uint64_t pos, value;        /* of a jump: from where */
    union {
        const TtCall *call;
        uint64_t to;
    };
} Item;

typedef enum Kind { CALLS, VALUES, JUMPS } Kind;

typedef struct Side {
    const char *run, *process, *by, *symbols;
    TtCalls *calls;
    uint32_t index;             /* of the process */
    GArray *items;
    GArray *keys;               /* uint32_t: the same number, the same item */
} Side;

typedef struct Compare {
    const ToolArgs *args;
    Side side[2];
    Kind kind;
    ToolJumps *jumps;           /* NULL: of another kind */
    GHashTable *known;          /* key -> its number */
    TtHunk *hunks;
    uint32_t n_hunks;
    uint64_t limit;             /* of hunks that are shown */
    bool is_json;
} Compare;

/* ---- two sides ---- */

static void add(Compare *c, Side *s, const Item *item, const char *key)
{
    gpointer known = g_hash_table_lookup(c->known, key);
    uint32_t number;

    if (!known) {
        known = GUINT_TO_POINTER(g_hash_table_size(c->known) + 1);
        g_hash_table_insert(c->known, g_strdup(key), known);
    }
    number = GPOINTER_TO_UINT(known);
    g_array_append_val(s->items, *item);
    g_array_append_val(s->keys, number);
}

static const TtCallsProcess *process_of(const Side *s)
{
    return tt_calls_process(s->calls, s->index);
}

static void add_calls(Compare *c, Side *s)
{
    for (uint32_t i = 0; i < tt_calls_count(s->calls); i++) {
        const TtCall *call = tt_calls_at(s->calls, i);
        Item item = { .pos = call->pos, .call = call };
        g_autofree char *key = NULL;

        if (call->process == s->index) {
            key = tt_call_key(call);
            add(c, s, &item, key);
        }
    }
}

/* Where another process begins that has its page tables: it was killed before. 0: none. */
static uint64_t next_of_tables(const Side *s)
{
    const TtCallsProcess *me = process_of(s);
    uint64_t next = 0;

    for (uint32_t i = 0; i < tt_calls_n_processes(s->calls); i++) {
        const TtCallsProcess *p = tt_calls_process(s->calls, i);

        if (p->table == me->table && p->pos > me->pos && (!next || p->pos < next)) {
            next = p->pos;
        }
    }
    return next;
}

/* Up to there the process has its page tables for itself. */
static uint64_t end_of(const Side *s)
{
    uint64_t end = next_of_tables(s), last = 0;

    for (uint32_t i = 0; i < tt_calls_count(s->calls); i++) {
        const TtCall *call = tt_calls_at(s->calls, i);

        if (call->process == s->index && call->number == EXIT_GROUP) {
            last = call->pos;           /* those before are of its children by vfork */
        }
    }
    return last && end ? MIN(end, last) : MAX(end, last);
}

static int add_values(Compare *c, Side *s)
{
    ToolValues asked = {
        .by = s->by, .symbols = s->symbols, .process = process_of(s), .end = end_of(s),
    };
    g_autoptr(GArray) values = g_array_new(false, false, sizeof(ToolValue));
    int status = tool_values_load(c->args, s->run, &asked, values);

    for (guint i = 0; status == TOOL_FINE && i < values->len; i++) {
        const ToolValue *v = &g_array_index(values, ToolValue, i);
        Item item = { .pos = v->pos, .value = v->value };
        g_autofree char *key = g_strdup_printf("%" PRIx64, v->value);

        add(c, s, &item, key);
    }
    return status;
}

static unsigned number_of(const Compare *c, const Side *s)
{
    return s - c->side;
}

static int add_jumps(Compare *c, Side *s)
{
    g_autoptr(GArray) all = g_array_new(false, false, sizeof(ToolJump));
    int status = tool_jumps_load(c->jumps, number_of(c, s), c->args, s->run,
                                 process_of(s), end_of(s), all);

    for (guint i = 0; status == TOOL_FINE && i < all->len; i++) {
        const ToolJump *j = &g_array_index(all, ToolJump, i);
        Item item = { .pos = j->pos, .value = j->from, .to = j->to };
        const char *key = tool_jumps_key(c->jumps, number_of(c, s), j->from, j->to);

        if (key) {
            add(c, s, &item, key);
        }
    }
    return status;
}

/* A string that came into memory behind the end of a part is not known: two parts differ
 * in it by chance. */
static bool has_unknown(const TtCalls *calls, uint32_t process)
{
    for (uint32_t i = 0; i < tt_calls_count(calls); i++) {
        const TtCall *call = tt_calls_at(calls, i);

        if (call->process == process &&
            (strstr(call->args, " s?") || strstr(call->args, " b?"))) {
            return true;
        }
    }
    return false;
}

static void free_calls(const Compare *c, Side *s)
{
    if (s == c->side || s->calls != c->side->calls) {   /* else both have them */
        tt_calls_free(s->calls);
    }
    s->calls = NULL;
}

static int load(Compare *c, Side *s)
{
    bool is_known = s != c->side && !strcmp(s->run, c->side->run);
    int status = TOOL_FINE;

    s->items = g_array_new(false, false, sizeof(Item));
    s->keys = g_array_new(false, false, sizeof(uint32_t));
    s->calls = is_known ? c->side->calls : tool_calls_load(c->args, s->run, false, &status);
    if (!s->calls) {
        return status;
    }
    s->index = tool_calls_find(s->calls, s->process, s->run);
    if (s->index == TT_CALLS_NO_PROCESS) {
        return TOOL_PROBLEM;
    }
    if (c->kind == CALLS && tool_has(c->args, "-j") && has_unknown(s->calls, s->index)) {
        free_calls(c, s);
        s->calls = tool_calls_load(c->args, s->run, true, &status);
        if (!s->calls) {
            return status;
        }
    }
    switch (c->kind) {
    case VALUES:
        return add_values(c, s);
    case JUMPS:
        return add_jumps(c, s);
    default:
        add_calls(c, s);
        return TOOL_FINE;
    }
}

static const Item *item_at(const Side *s, uint32_t i)
{
    return &g_array_index(s->items, Item, i);
}

static char *item_text(const Compare *c, const Side *s, const Item *item)
{
    switch (c->kind) {
    case CALLS:
        return tool_call_text(item->call);
    case JUMPS:
        return tool_jumps_text(c->jumps, number_of(c, s), item->value, item->to);
    default:
        return g_strdup_printf("0x%" PRIx64 " (%" PRId64 ")", item->value,
                               (int64_t)item->value);
    }
}

static const char *what(const Compare *c)
{
    static const char *const names[] = { "system call", "value", "jump" };

    return names[c->kind];
}

/* ---- for people ---- */

static void print_item(const Compare *c, const Side *s, const char *mark, uint32_t i)
{
    const Item *item = item_at(s, i);
    g_autofree char *text = item_text(c, s, item), *pos = tool_number(item->pos);

    printf("%s %17s  %s\n", mark, pos, text);
}

/* What both did before it; the positions are the first run's. */
static void print_hunk(const Compare *c, const TtHunk *h)
{
    for (uint32_t i = h->a > CONTEXT ? h->a - CONTEXT : 0; i < h->a; i++) {
        print_item(c, &c->side[0], " ", i);
    }
    for (uint32_t i = 0; i < h->n_a; i++) {
        print_item(c, &c->side[0], "-", h->a + i);
    }
    for (uint32_t i = 0; i < h->n_b; i++) {
        print_item(c, &c->side[1], "+", h->b + i);
    }
}

static void print_side(const Compare *c, const Side *s, const char *mark)
{
    const TtCallsProcess *p = process_of(s);
    g_autofree char *pos = tool_number(p->pos), *n = tool_count(s->items->len, what(c));

    printf("%s %s of '%s', which began at position %s: %s\n", mark, p->name, s->run, pos, n);
}

static void print_text(const Compare *c)
{
    uint32_t n = MIN(c->n_hunks, c->limit);
    g_autofree char *same = tool_count(c->n_hunks ? c->hunks[0].a : c->side[0].items->len,
                                       what(c));

    if (!c->n_hunks) {
        printf("Both are the same: %s.\n", same);
        return;
    }
    print_side(c, &c->side[0], "-");
    print_side(c, &c->side[1], "+");
    printf("The same at first: %s.\n", same);
    for (uint32_t i = 0; i < n; i++) {
        printf("\n");
        print_hunk(c, &c->hunks[i]);
    }
    if (n < c->n_hunks) {
        printf("\n%u more difference%s: --all shows them\n", c->n_hunks - n,
               c->n_hunks - n > 1 ? "s" : "");
    }
}

/* ---- for programs ---- */

static void json_items(const Compare *c, const Side *s, const char *name, uint32_t from,
                       uint32_t n)
{
    printf(", \"%s\": [", name);
    for (uint32_t i = from; i < from + n; i++) {
        const Item *item = item_at(s, i);
        g_autofree char *text = item_text(c, s, item);

        printf("%s{\"position\": %" PRIu64 ", \"text\": ", i > from ? ", " : "", item->pos);
        tool_json_string(text);
        printf("}");
    }
    printf("]");
}

static void print_json(const Compare *c)
{
    uint32_t n = MIN(c->n_hunks, c->limit);

    tool_json_begin();
    printf("\"same\": %s, \"compared\": [%u, %u], \"differences\": [",
           tool_json_bool(!c->n_hunks), c->side[0].items->len, c->side[1].items->len);
    for (uint32_t i = 0; i < n; i++) {
        const TtHunk *h = &c->hunks[i];

        printf("%s\n {\"alike\": [%" PRIu32 ", %" PRIu32 "]", i ? "," : "", h->a, h->b);
        json_items(c, &c->side[0], "first", h->a, h->n_a);
        json_items(c, &c->side[1], "second", h->b, h->n_b);
        printf("}");
    }
    printf("], \"more\": %u}\n", c->n_hunks - n);
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
    for (unsigned i = 2; i-- > 0;) {
        Side *s = &c->side[i];

        free_calls(c, s);
        if (s->items) {
            g_array_free(s->items, true);
            g_array_free(s->keys, true);
        }
    }
    tool_jumps_free(c->jumps);
    g_free(c->hunks);
    g_clear_pointer(&c->known, g_hash_table_destroy);
}

/* Whether the options go together. An exit status, having said what is wrong. */
static int check(Compare *c)
{
    const ToolArgs *a = c->args;
    const char *by = c->side[0].by, *with_by = c->side[1].by;
    int status;

    if (!c->side[0].process) {
        return tool_usage(a->command, "--process says which program: a path, or the end of "
                          "one");
    }
    if (!tool_calls_check_name(a, "--process") || !tool_calls_check_name(a, "--with")) {
        return TOOL_USAGE;
    }
    if (!by && (c->side[1].symbols || tool_has(a, "--with-by"))) {
        return tool_usage(a->command, "--symbols, --with-by and --with-symbols go with "
                          "--by");
    }
    if (!by) {
        return TOOL_FINE;
    }
    if (!strcmp(by, BRANCHES) || !strcmp(with_by, BRANCHES)) {
        c->kind = JUMPS;
        if (strcmp(by, with_by)) {
            return tool_usage(a->command, "--with-by is of another kind than --by");
        }
        if (!c->side[0].symbols) {
            return tool_usage(a->command, "--by branches needs --symbols, the file of the "
                              "program");
        }
        return TOOL_FINE;
    }
    c->kind = VALUES;
    status = tool_values_check(a, by, c->side[0].symbols);
    return status != TOOL_FINE ? status :
        tool_values_check(a, with_by, c->side[1].symbols);
}

/* Before the first is replayed, which lasts. */
static bool are_runs(const Compare *c)
{
    return tool_is_run(c->side[0].run) && tool_is_run(c->side[1].run);
}

static int run(Compare *c)
{
    int status;

    if (c->kind == JUMPS) {
        c->jumps = tool_jumps_new(c->side[0].symbols, c->side[1].symbols);
        if (!c->jumps) {
            return TOOL_PROBLEM;
        }
    }
    c->known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    status = load(c, &c->side[0]);
    status = status == TOOL_FINE ? load(c, &c->side[1]) : status;
    return status == TOOL_FINE ? compare(c) : status;
}

int tool_compare(const ToolArgs *a)
{
    const char *process = tool_value(a, "--process"), *by = tool_value(a, "--by");
    const char *symbols = tool_value(a, "--symbols");
    Compare c = {
        .args = a, .is_json = tool_has(a, "--json"),
        .limit = tool_has(a, "--all") ? UINT64_MAX : 1,
        .side = {
            { a->operand[0], process, by, symbols },
            { a->operand[1], tool_value(a, "--with") ?: process,
              tool_value(a, "--with-by") ?: by,
              tool_value(a, "--with-symbols") ?: symbols },
        },
    };
    int status = check(&c);

    status = status != TOOL_FINE ? status : are_runs(&c) ? run(&c) : TOOL_PROBLEM;
    cleanup(&c);
    return status;
}
