/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls: from lines to calls, and to text. */
#include "trace/tt-calls.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CLONE       56
#define FORK        57
#define VFORK       58
#define EXIT_GROUP  231
#define CLONE3      435
#define LARGE       65536       /* from here on, what may be a pointer is one */
#define ERRNO_MAX   4095

typedef struct Waiting {
    uint64_t table, stack;
    uint32_t call;
} Waiting;

typedef struct Forked {
    uint64_t pos, table;
    uint32_t process;
} Forked;

struct TtCalls {
    GArray *calls;              /* of TtCall */
    GArray *processes;          /* of TtCallsProcess */
    GHashTable *current;        /* table -> process + 1 */
    GHashTable *waiting;        /* of Waiting */
    GHashTable *forks;          /* stack -> the last Forked on it */
    GArray *last;               /* uint64_t: the last position of each process */
    GStringChunk *texts;
};

static guint waiting_hash(gconstpointer p)
{
    const Waiting *w = p;

    return (w->table ^ w->stack) * 0x9e3779b97f4a7c15ull >> 32;
}

static gboolean waiting_equal(gconstpointer p, gconstpointer q)
{
    const Waiting *a = p, *b = q;

    return a->table == b->table && a->stack == b->stack;
}

TtCalls *tt_calls_new(void)
{
    TtCalls *c = g_new0(TtCalls, 1);

    c->calls = g_array_new(false, false, sizeof(TtCall));
    c->processes = g_array_new(false, false, sizeof(TtCallsProcess));
    c->current = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    c->waiting = g_hash_table_new_full(waiting_hash, waiting_equal, g_free, NULL);
    c->forks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    c->last = g_array_new(false, false, sizeof(uint64_t));
    c->texts = g_string_chunk_new(65536);
    return c;
}

void tt_calls_free(TtCalls *c)
{
    if (c) {
        g_array_free(c->calls, true);
        g_array_free(c->processes, true);
        g_hash_table_destroy(c->current);
        g_hash_table_destroy(c->waiting);
        g_hash_table_destroy(c->forks);
        g_array_free(c->last, true);
        g_string_chunk_free(c->texts);
        g_free(c);
    }
}

static uint32_t process_of(const TtCalls *c, uint64_t table)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(c->current, &table)) - 1;
}

static TtCallsProcess *process_at(const TtCalls *c, uint32_t i)
{
    return i < c->processes->len ? &g_array_index(c->processes, TtCallsProcess, i) : NULL;
}

/* ---- lines ---- */

static void begin(TtCalls *c, const TtCallsProcess *p)
{
    g_array_append_val(c->processes, *p);
    g_array_append_val(c->last, p->pos);
    g_hash_table_insert(c->current, g_memdup2(&p->table, sizeof(p->table)),
                        GUINT_TO_POINTER(c->processes->len));
}

/* A program that faults at its first instruction comes by twice. */
static bool take_exec(TtCalls *c, uint64_t pos, uint64_t table, uint64_t entry,
                      const char *name)
{
    TtCallsProcess *before = process_at(c, process_of(c, table));
    TtCallsProcess p = { .table = table, .pos = pos, .entry = entry };

    if (!*name) {
        return false;
    }
    if (before && !before->n_calls && !strcmp(before->name, name)) {
        return true;
    }
    p.name = g_string_chunk_insert(c->texts, name);
    begin(c, &p);
    return true;
}

static bool is_fork(const TtCall *call)
{
    return call->number == CLONE || call->number == FORK || call->number == VFORK ||
        call->number == CLONE3;
}

static void note_fork(TtCalls *c, const TtCall *call, uint64_t table, uint64_t stack)
{
    Forked f = { call->pos, table, call->process };

    g_hash_table_insert(c->forks, g_memdup2(&stack, sizeof(stack)),
                        g_memdup2(&f, sizeof(f)));
}

/* Somebody comes back with 0 on the stack on which another one called fork, in tables in
 * which nothing has happened since. */
static void find_child(TtCalls *c, uint64_t pos, uint64_t table, uint64_t stack)
{
    const Forked *f = g_hash_table_lookup(c->forks, &stack);
    uint32_t now = process_of(c, table);
    TtCallsProcess p = { .table = table, .pos = pos, .is_child = true };

    if (!f || f->table == table || pos < f->pos || f->process == TT_CALLS_NO_PROCESS ||
        (process_at(c, now) && g_array_index(c->last, uint64_t, now) > f->pos)) {
        return;
    }
    p.name = process_at(c, f->process)->name;
    begin(c, &p);
}

/* A child of vfork or posix_spawn has its parent's tables, which waits meanwhile. */
static bool is_child_of_vfork(const TtCalls *c, uint64_t table)
{
    GHashTableIter all;
    gpointer w;

    g_hash_table_iter_init(&all, c->waiting);
    while (g_hash_table_iter_next(&all, &w, NULL)) {
        const TtCall *call = &g_array_index(c->calls, TtCall, ((Waiting *)w)->call);

        if (((Waiting *)w)->table == table && is_fork(call) && call->number != FORK) {
            return true;
        }
    }
    return false;
}

static bool take_call(TtCalls *c, TtCall *call, uint64_t table, uint64_t stack)
{
    Waiting *w = g_new(Waiting, 1);
    TtCallsProcess *p;

    call->process = process_of(c, table);
    p = process_at(c, call->process);
    if (p && p->pos > call->pos) {      /* told late, of who had these tables before */
        call->process = TT_CALLS_NO_PROCESS;
        p = NULL;
    }
    if (p) {
        p->n_calls++;
        g_array_index(c->last, uint64_t, call->process) = call->pos;
    }
    if (is_fork(call)) {
        note_fork(c, call, table, stack);
    }
    *w = (Waiting) { table, stack, c->calls->len };
    g_hash_table_replace(c->waiting, w, w);
    g_array_append_val(c->calls, *call);
    if (call->number == EXIT_GROUP && !is_child_of_vfork(c, table)) {
        g_hash_table_remove(c->current, &table);
    }
    return true;
}

static void take_back(TtCalls *c, uint64_t pos, uint64_t table, uint64_t stack,
                      uint64_t value)
{
    Waiting key = { table, stack, 0 }, *w = g_hash_table_lookup(c->waiting, &key);
    TtCall *call = w ? &g_array_index(c->calls, TtCall, w->call) : NULL;

    if (call && is_fork(call) && !value) {
        return;                         /* the child's, on the same stack */
    }
    if (call && pos > call->pos) {
        call->back_pos = pos;
        call->result = value;
        call->has_result = true;
        g_hash_table_remove(c->waiting, w);
    } else if (!call && !value) {
        find_child(c, pos, table, stack);
    }
}

bool tt_calls_line(TtCalls *c, const char *line)
{
    g_autofree char *text = g_strchomp(g_strdup(line));
    uint64_t table, stack, value, entry;
    TtCall call = { 0 };
    int args = -1;
    char result;

    if (sscanf(text, "call %" SCNu64 " %" SCNx64 " %" SCNx64 " %" SCNu32 " %c%n", &call.pos,
               &table, &stack, &call.number, &result, &args) == 5 && args >= 0) {
        call.is_pointer = result != 'v';
        call.args = g_string_chunk_insert(c->texts, text + args);
        return take_call(c, &call, table, stack);
    }
    if (sscanf(text, "back %" SCNu64 " %" SCNx64 " %" SCNx64 " %" SCNx64, &call.pos, &table,
               &stack, &value) == 4) {
        take_back(c, call.pos, table, stack, value);
        return true;
    }
    return sscanf(text, "exec %" SCNu64 " %" SCNx64 " %" SCNx64 " %n", &call.pos, &table,
                  &entry, &args) == 3 &&
        args >= 0 && take_exec(c, call.pos, table, entry, text + args);
}

static gint by_position(gconstpointer p, gconstpointer q)
{
    const TtCall *a = p, *b = q;

    return a->pos < b->pos ? -1 : a->pos > b->pos;
}

void tt_calls_end(TtCalls *c)
{
    g_hash_table_remove_all(c->waiting);
    g_array_sort(c->calls, by_position);
}

/* ---- what there is ---- */

uint32_t tt_calls_count(const TtCalls *c)
{
    return c->calls->len;
}

const TtCall *tt_calls_at(const TtCalls *c, uint32_t i)
{
    return &g_array_index(c->calls, TtCall, i);
}

uint32_t tt_calls_n_processes(const TtCalls *c)
{
    return c->processes->len;
}

const TtCallsProcess *tt_calls_process(const TtCalls *c, uint32_t i)
{
    return process_at(c, i);
}

static bool is_called(const char *path, const char *name)
{
    size_t n = strlen(path), m = strlen(name);

    return n >= m && !strcmp(path + n - m, name) && (n == m || path[n - m - 1] == '/');
}

/* As the plugin writes it. */
static char *in_its_words(const char *name)
{
    GString *to = g_string_new(NULL);

    for (; *name; name++) {
        if (g_ascii_isgraph(*name) && *name != '\\' && *name != '"') {
            g_string_append_c(to, *name);
        } else {
            g_string_append_printf(to, "\\%03o", (uint8_t)*name);
        }
    }
    return g_string_free(to, false);
}

uint32_t tt_calls_find(const TtCalls *c, const char *name, uint32_t nth, uint32_t *n)
{
    g_autofree char *wanted = in_its_words(name);
    uint32_t found = TT_CALLS_NO_PROCESS;

    *n = 0;
    for (uint32_t i = 0; i < c->processes->len; i++) {
        const TtCallsProcess *p = process_at(c, i);

        if (!p->is_child && is_called(p->name, wanted) && ++*n == nth) {
            found = i;
        }
    }
    return found;
}

/* ---- text ---- */

/* @word without its first letter is a number. */
static uint64_t number_of(const char *word)
{
    return g_ascii_strtoull(word + 1, NULL, 16);
}

static void put_number(GString *to, int64_t v)
{
    if (v > -LARGE && v < LARGE) {
        g_string_append_printf(to, "%" PRId64, v);
    } else {
        g_string_append_printf(to, "0x%" PRIx64, v);
    }
}

/* Of an argument, which may be an int. */
static void put_value(GString *to, uint64_t v)
{
    int64_t s = v >> 32 ? (int64_t)v : (int32_t)v;

    put_number(to, s > -LARGE && s < LARGE ? s : (int64_t)v);
}

/* The plugin writes all that would end a word as \NNN. */
static void put_string(GString *to, const char *text)
{
    static const struct {
        const char *code, *shown;
    } nicer[] = {
        { "\\040", " " }, { "\\011", "\\t" }, { "\\012", "\\n" }, { "\\015", "\\r" },
        { "\\042", "\\\"" }, { "\\134", "\\\\" },
    };

    while (*text) {
        const char *shown = NULL;

        for (size_t i = 0; !shown && i < G_N_ELEMENTS(nicer); i++) {
            shown = strncmp(text, nicer[i].code, 4) ? NULL : nicer[i].shown;
        }
        if (shown) {
            g_string_append(to, shown);
            text += 4;
        } else {
            g_string_append_c(to, *text++);
        }
    }
}

static void put_word(GString *to, const char *word)
{
    switch (*word) {
    case 's': case 'b':
        put_string(to, word[1] == '?' ? "..." : word + 1);
        break;
    case 'v':
        put_value(to, number_of(word));
        break;
    default:
        if (number_of(word) < LARGE) {
            put_value(to, number_of(word));
        } else {
            g_string_append_printf(to, "0x%" PRIx64, number_of(word));
        }
        break;
    }
}

static const char *error_name(uint64_t result)
{
    return -result >= 1 && -result <= ERRNO_MAX ? g_strerror(-(int64_t)result) : NULL;
}

char *tt_call_text(const TtCall *call, const char *name)
{
    GString *to = g_string_new(NULL);
    g_auto(GStrv) words = g_strsplit(call->args, " ", -1);
    const char *error = call->has_result ? error_name(call->result) : NULL;
    bool is_first = true;

    if (name) {
        g_string_append_printf(to, "%s(", name);
    } else {
        g_string_append_printf(to, "syscall_%" PRIu32 "(", call->number);
    }
    for (char **w = words; *w; w++) {
        if (**w) {
            g_string_append(to, is_first ? "" : ", ");
            put_word(to, *w);
            is_first = false;
        }
    }
    g_string_append(to, call->has_result ? ") = " : ")");
    if (error) {
        g_string_append_printf(to, "%" PRId64 " (%s)", (int64_t)call->result, error);
    } else if (call->has_result) {
        put_number(to, call->result);
    }
    return g_string_free(to, false);
}

char *tt_call_key(const TtCall *call)
{
    GString *to = g_string_new(NULL);
    g_auto(GStrv) words = g_strsplit(call->args, " ", -1);

    g_string_append_printf(to, "%" PRIu32, call->number);
    for (char **w = words; *w; w++) {
        bool is_pointer = **w == 'p' || (**w == 'g' && number_of(*w) >= LARGE);

        g_string_append_c(to, ' ');
        g_string_append(to, is_pointer ? "p" : *w);
    }
    if (!call->has_result) {
        g_string_append(to, " -");
    } else if (error_name(call->result)) {
        g_string_append_printf(to, " %" PRId64, (int64_t)call->result);
    } else if (!call->is_pointer) {
        g_string_append_printf(to, " %" PRIu64, call->result);
    }
    return g_string_free(to, false);
}
