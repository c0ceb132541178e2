/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt compare --by branches: the jumps that a program took in its own code, from the plugin
 * branches. Two files of a program have their code at other addresses, so a jump is named
 * by functions. In a function that has the same length in both files, each jump counts.
 * In another one its calls and returns do, but not the jumps inside of it.
 */
#include "tt-tool-calls.h"
#include "debug/tt-elfsyms.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JUMPS_MAX   8000000     /* a side; beyond, only these are compared */

typedef struct Pair {
    uint64_t from, to;
} Pair;

typedef struct Program {
    const char *path;
    GMappedFile *file;
    TtElfSyms *syms;
    TtElfImage image;
    GHashTable *same;           /* name of a function -> 1: of the same length, 2: not */
    GHashTable *keys;           /* Pair -> its key, or "" */
} Program;

struct ToolJumps {
    Program program[2];
    bool is_one;                /* both have the same file */
};

/* ---- programs ---- */

static guint pair_hash(gconstpointer p)
{
    const Pair *a = p;

    return (a->from * 31 + a->to) * 0x9e3779b97f4a7c15ull >> 32;
}

static gboolean pair_equal(gconstpointer p, gconstpointer q)
{
    return !memcmp(p, q, sizeof(Pair));
}

/* False: said why not. */
static bool load_program(Program *p, const char *path)
{
    g_autoptr(GError) err = NULL;
    const uint8_t *bytes;
    TtDiag diag;
    size_t len;

    p->path = path;
    p->same = g_hash_table_new(g_str_hash, g_str_equal);
    p->keys = g_hash_table_new_full(pair_hash, pair_equal, g_free, g_free);
    p->file = g_mapped_file_new(path, false, &err);
    if (!p->file) {
        tool_complain("%s", err->message);
        return false;
    }
    bytes = (const uint8_t *)g_mapped_file_get_contents(p->file);
    len = g_mapped_file_get_length(p->file);
    if (tt_elfsyms_load(bytes, len, &p->syms, &diag) != TT_OK) {
        tool_complain("'%s': %s", path, diag.text);
        return false;
    }
    if (!tt_elfsyms_image(bytes, len, &p->image)) {
        tool_complain("'%s' is not a program: it has no code that could be loaded", path);
        return false;
    }
    if (!tt_elfsyms_count(p->syms)) {
        tool_complain("'%s' has no names of functions (it was stripped), so its branches "
                      "cannot be compared with those of another file", path);
        return false;
    }
    return true;
}

static bool is_same_file(const Program *p, const Program *q)
{
    size_t len = g_mapped_file_get_length(p->file);

    return len == g_mapped_file_get_length(q->file) &&
        !memcmp(g_mapped_file_get_contents(p->file), g_mapped_file_get_contents(q->file),
                len);
}

ToolJumps *tool_jumps_new(const char *symbols, const char *with_symbols)
{
    ToolJumps *j = g_new0(ToolJumps, 1);

    if (!load_program(&j->program[0], symbols) ||
        !load_program(&j->program[1], with_symbols)) {
        tool_jumps_free(j);
        return NULL;
    }
    j->is_one = is_same_file(&j->program[0], &j->program[1]);
    return j;
}

void tool_jumps_free(ToolJumps *j)
{
    for (unsigned i = 0; j && i < 2; i++) {
        Program *p = &j->program[i];

        tt_elfsyms_free(p->syms);
        g_clear_pointer(&p->file, g_mapped_file_unref);
        g_clear_pointer(&p->same, g_hash_table_destroy);
        g_clear_pointer(&p->keys, g_hash_table_destroy);
    }
    g_free(j);
}

/* ---- what a jump is ---- */

/* Has the function there the same length in the other file? Then its insides are taken to
 * be the same code. A name that several functions have says nothing. */
static bool is_alike(ToolJumps *j, unsigned side, const char *name, uint64_t addr)
{
    Program *p = &j->program[side];
    const Program *q = &j->program[!side];
    bool is_code, is = j->is_one;
    gpointer known;
    uint64_t there;

    if (is) {
        return true;
    }
    known = g_hash_table_lookup(p->same, name);
    if (!known) {
        uint64_t here;

        is = tt_elfsyms_address(p->syms, name, strlen(name), &here, &is_code) == 1 &&
            tt_elfsyms_address(q->syms, name, strlen(name), &there, &is_code) == 1 &&
            tt_elfsyms_size(p->syms, addr) == tt_elfsyms_size(q->syms, there);
        known = GUINT_TO_POINTER(is ? 1 : 2);
        g_hash_table_insert(p->same, (char *)name, known);
    }
    return GPOINTER_TO_UINT(known) == 1;
}

/* One end of a jump. */
typedef struct End {
    const char *name;           /* of its function; NULL: none */
    uint64_t offset;
    bool is_alike;
} End;

static End end_of(ToolJumps *j, unsigned side, uint64_t addr)
{
    End e = { .name = tt_elfsyms_find(j->program[side].syms, addr, &e.offset) };

    e.is_alike = e.name && is_alike(j, side, e.name, addr);
    return e;
}

static void put_end(GString *s, const End *e)
{
    if (!e->name) {
        g_string_append_c(s, '?');
    } else if (e->is_alike || !e->offset) {
        g_string_append_printf(s, "%s+%" PRIx64, e->name, e->offset);
    } else {
        g_string_append(s, e->name);
    }
}

static char *make_key(ToolJumps *j, unsigned side, uint64_t from, uint64_t to)
{
    End a = end_of(j, side, from), b = end_of(j, side, to);
    GString *s;

    if (a.name && b.name && !strcmp(a.name, b.name) && !a.is_alike && b.offset) {
        return g_strdup("");
    }
    if (!a.name && !b.name) {       /* in the table of calls to libraries, or between them */
        return g_strdup("");
    }
    s = g_string_new(NULL);
    put_end(s, &a);
    g_string_append_c(s, '>');
    put_end(s, &b);
    return g_string_free(s, false);
}

const char *tool_jumps_key(ToolJumps *j, unsigned side, uint64_t from, uint64_t to)
{
    Pair pair = { from, to };
    GHashTable *keys = j->program[side].keys;
    char *key = g_hash_table_lookup(keys, &pair);

    if (!key) {
        key = make_key(j, side, from, to);
        g_hash_table_insert(keys, g_memdup2(&pair, sizeof(pair)), key);
    }
    return *key ? key : NULL;
}

static void put_place(GString *s, const Program *p, uint64_t addr)
{
    uint64_t offset;
    const char *name = tt_elfsyms_find(p->syms, addr, &offset);
    g_autofree char *clean = g_strdup(name);

    if (!name) {
        g_string_append_printf(s, "0x%" PRIx64, addr);
        return;
    }
    tt_replace_controls(clean, '?');
    g_string_append(s, clean);
    if (offset) {
        g_string_append_printf(s, "+0x%" PRIx64, offset);
    }
}

char *tool_jumps_text(const ToolJumps *j, unsigned side, uint64_t from, uint64_t to)
{
    GString *s = g_string_new(NULL);

    put_place(s, &j->program[side], from);
    g_string_append(s, " -> ");
    put_place(s, &j->program[side], to);
    return g_string_free(s, false);
}

/* ---- from the plugin ---- */

static bool take_line(const char *line, uint64_t bias, GArray *out, bool *more)
{
    ToolJump jump;

    if (!strcmp(line, "more\n")) {
        *more = true;
        return true;
    }
    if (sscanf(line, "jump %" SCNu64 " %" SCNx64 " %" SCNx64, &jump.pos, &jump.from,
               &jump.to) != 3) {
        return false;
    }
    jump.from -= bias;
    jump.to -= bias;
    g_array_append_val(out, jump);
    return true;
}

static int take(FILE *f, uint64_t bias, const char *process, GArray *out)
{
    bool ok = true, more = false;
    char *line = NULL;
    size_t size = 0;

    while (ok && getline(&line, &size, f) > 0) {
        ok = take_line(line, bias, out, &more);
    }
    free(line);
    if (!ok) {
        return tool_complain("the plugin 'branches' says what this tt does not know: build "
                             "both together");
    }
    if (!out->len) {
        return tool_complain("'%s' took no branch in that code: is --symbols the file of "
                             "this program?", process);
    }
    if (more) {
        g_autofree char *text = g_strdup_printf("only the first %d jumps of '%s' are "
                                                "compared", JUMPS_MAX, process);

        tool_note(text);
    }
    return TOOL_FINE;
}

int tool_jumps_load(const ToolJumps *j, unsigned side, const ToolArgs *a, const char *run,
                    const TtCallsProcess *process, uint64_t end, GArray *out)
{
    const Program *p = &j->program[side];
    uint64_t bias = process->entry - p->image.entry;
    g_autofree char *plugin = NULL, *from = NULL, *to = NULL;
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    int status;
    FILE *f;

    if (!process->entry || bias % 4096) {
        return tool_complain("'%s' of '%s' did not begin where '%s' does: --symbols is the "
                             "file of this program", process->name, run, p->path);
    }
    plugin = g_strdup_printf("branches,table=%" PRIx64 ",low=%" PRIx64 ",high=%" PRIx64
                             ",max=%d", process->table, p->image.low + bias,
                             p->image.high + bias, JUMPS_MAX);
    from = g_strdup_printf("%" PRIu64, process->pos);
    to = g_strdup_printf("%" PRIu64, end);
    g_ptr_array_add(words, (char *)"run-plugin");
    g_ptr_array_add(words, (char *)run);
    g_ptr_array_add(words, plugin);
    g_ptr_array_add(words, (char *)"--quiet");
    g_ptr_array_add(words, (char *)"--from");
    g_ptr_array_add(words, from);
    if (end) {
        g_ptr_array_add(words, (char *)"--to");
        g_ptr_array_add(words, to);
    }
    status = tool_run_one(a, words, &f);
    status = status == TOOL_FINE ? take(f, bias, process->name, out) : status;
    if (f) {
        fclose(f);
    }
    return status;
}
