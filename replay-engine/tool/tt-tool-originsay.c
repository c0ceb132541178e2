/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt origin: the tree of what was found, for people and for programs. A copy stands
 * under what was made of it without being moved to the right; sources of a computation
 * are.
 */
#include "tt-tool-origin.h"

#include <inttypes.h>
#include <stdio.h>

static const ToolPart *part_of(const ToolOrigin *o)
{
    return o->replays.parts->pdata[0];
}

static const char *get(const ToolFinding *f, const char *key)
{
    return tool_finding_get(f, key) ?: "?";
}

static uint64_t number(const ToolFinding *f, const char *key)
{
    uint64_t n = 0;

    tool_finding_number(f, key, &n);
    return n;
}

static bool is_kind(const ToolFinding *f, const char *kind)
{
    return !strcmp(tool_finding_kind(f), kind);
}

static unsigned count_cut(const ToolOrigin *o)
{
    const GPtrArray *all = part_of(o)->found;
    unsigned n = 0;

    for (unsigned i = 0; i < all->len; i++) {
        n += is_kind(all->pdata[i], "cut");
    }
    return n;
}

/* ---- words ---- */

static const struct {
    const char *how, *words;
} all_words[] = {
    { "copy", "copied" },
    { "fill", "filled with copies" },
    { "computed", "computed" },
    { "constant", "a constant" },
    { "port", "an input: read from port {port}" },
    { "tsc", "an input: the time stamp counter" },
    { "random", "an input: a random number" },
    { "cpuid", "an input: what CPUID says" },
    { "msr", "an input: a model-specific register" },
    { "unknown", "written by an instruction that cannot be followed further" },
    { "cpu", "written by the CPU itself" },
    { "device", "an input: a device wrote {bytes} bytes into memory" },
    { "disk", "an input: read from {disk}, sector {sector}, byte {byte}" },
    { "interrupt", "the delivery of interrupt {vector}" },
    { "exception", "the delivery of an exception" },
    { "event", "an event of the recording: the CPU was changed from outside" },
    { "initial", "there since the beginning of the run" },
    { "far", "not written in the --within positions before" },
    { "mmio", "an input: device memory at physical address {physical}" },
    { "unmapped", "not mapped here: it cannot be followed further" },
};

static char *value_of(const ToolOrigin *o, const ToolFinding *f, const char *key)
{
    uint64_t n;

    if (strcmp(key, "disk") || !tool_finding_number(f, key, &n)) {
        return g_strdup(get(f, key));
    }
    return n < o->n_disks && o->disks ? g_strdup_printf("disk '%s'", o->disks[n]) :
        g_strdup_printf("disk %" PRIu64, n);
}

static char *words_of(const ToolOrigin *o, const ToolFinding *f)
{
    GString *s = g_string_new(NULL);
    const char *words = get(f, "how");

    for (size_t i = 0; i < G_N_ELEMENTS(all_words); i++) {
        if (!strcmp(all_words[i].how, words)) {
            words = all_words[i].words;
            break;
        }
    }
    while (*words) {
        size_t n = strcspn(words, "{");

        g_string_append_len(s, words, n);
        words += n;
        if (*words) {
            g_autofree char *key = g_strndup(words + 1, strcspn(words, "}") - 1);
            g_autofree char *value = value_of(o, f, key);

            g_string_append(s, value);
            words += strcspn(words, "}") + 1;
        }
    }
    if (number(f, "inside")) {
        g_string_append(s, ", asked for by this instruction");
    }
    return g_string_free(s, false);
}

static bool has_instruction(const ToolFinding *f)
{
    static const char *const without[] = { "initial", "far", "interrupt", "event" };

    for (size_t i = 0; i < G_N_ELEMENTS(without); i++) {
        if (!strcmp(get(f, "how"), without[i])) {
            return false;
        }
    }
    return (strcmp(get(f, "how"), "device") && strcmp(get(f, "how"), "disk")) ||
        number(f, "inside");
}

/* ---- text ---- */

static bool is_root(const ToolFinding *f)
{
    return !number(f, "parent") && !number(f, "rest");
}

/* What was asked for, as it was typed. Of a value on two pages each part is looked for
 * alone: then its address is added. */
static char *name_of(const ToolOrigin *o, const ToolFinding *f)
{
    const GPtrArray *all = part_of(o)->found;
    unsigned n = 0;

    if (!is_root(f)) {
        return g_strdup(get(f, "place"));
    }
    for (unsigned i = 0; i < all->len; i++) {
        n += (is_kind(all->pdata[i], "leaf") || is_kind(all->pdata[i], "node")) &&
            is_root(all->pdata[i]);
    }
    return n > 1 ? g_strdup_printf("%s, %s", o->place, get(f, "place")) : g_strdup(o->place);
}

static void print_node(const ToolOrigin *o, const ToolFinding *f, unsigned indent)
{
    g_autofree char *words = words_of(o, f), *name = NULL, *line = NULL;
    g_autofree char *place = name_of(o, f);
    const char *how = get(f, "how");
    uint64_t pc = number(f, "pc");

    printf("%*s%s = %s%s\n", indent, "", place, get(f, "value"),
           number(f, "rest") ? " (the other bytes)" : "");
    printf("%*s", indent + 2, "");
    if (strcmp(how, "initial") && strcmp(how, "far")) {
        printf("position %s ", get(f, "position"));
    }
    if (has_instruction(f)) {
        name = tool_symbols_find(o->symbols, pc - o->offset);
        line = tool_lines_find(o->lines, pc - o->offset);
        printf("pc %s%s%s%s cpu %s%s%s\n%*s%s\n%*s", get(f, "pc"), name ? " (" : "",
               name ?: "", name ? ")" : "", get(f, "cpu"), line ? " " : "", line ?: "",
               indent + 4, "", get(f, "text"), indent + 4, "");
    }
    printf("%s\n", words);
}

static void print_leaf(const ToolOrigin *o, const ToolFinding *f, unsigned indent)
{
    g_autofree char *words = words_of(o, f), *place = name_of(o, f);

    printf("%*s%s\n%*s%s\n", indent, "", place, indent + 2, "", words);
}

/* Of each node, by its id: what it was made of, in the order in which that was found. */
static GHashTable *all_sources(const ToolOrigin *o)
{
    GHashTable *all = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                            (GDestroyNotify)g_ptr_array_unref);
    const GPtrArray *found = part_of(o)->found;

    for (unsigned i = 0; i < found->len; i++) {
        ToolFinding *f = found->pdata[i];
        uint64_t parent;
        GPtrArray *list;

        if ((!is_kind(f, "leaf") && !is_kind(f, "node")) ||
            !tool_finding_number(f, "parent", &parent)) {
            continue;
        }
        list = g_hash_table_lookup(all, &parent);
        if (!list) {
            list = g_ptr_array_new();
            g_hash_table_insert(all, g_memdup2(&parent, sizeof(parent)), list);
        }
        g_ptr_array_add(list, f);
    }
    return all;
}

/* What @id was made of. */
static void print_sources(const ToolOrigin *o, GHashTable *all, uint64_t id,
                          bool is_computed, unsigned indent)
{
    const GPtrArray *list = g_hash_table_lookup(all, &id);

    for (unsigned i = 0; list && i < list->len; i++) {
        const ToolFinding *f = list->pdata[i];
        unsigned at = indent + (is_computed && !number(f, "rest") ? 4 : 0);

        if (is_kind(f, "leaf")) {
            print_leaf(o, f, at);
        } else {
            print_node(o, f, at);
            print_sources(o, all, number(f, "id"), !strcmp(get(f, "how"), "computed"), at);
        }
    }
}

static void say_text(const ToolOrigin *o)
{
    g_autoptr(GHashTable) all = all_sources(o);

    print_sources(o, all, 0, false, 0);
}

/* ---- JSON ---- */

static void json_one(const ToolOrigin *o, const ToolFinding *f)
{
    static const char *const numbers[] = {
        "id", "parent", "position", "cpu", "vector", "sector", "byte", "bytes", "disk",
    };
    static const char *const texts[] = { "how", "place", "value", "port", "physical" };

    printf("{\"rest\": %s", tool_json_bool(number(f, "rest")));
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        uint64_t n;

        if (tool_finding_number(f, numbers[i], &n)) {
            printf(", \"%s\": %" PRIu64, numbers[i], n);
        }
    }
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        if (tool_finding_get(f, texts[i])) {
            printf(", \"%s\": ", texts[i]);
            tool_json_string(get(f, texts[i]));
        }
    }
    if (is_kind(f, "node") && has_instruction(f)) {
        uint64_t pc = number(f, "pc");
        g_autofree char *name = tool_symbols_find(o->symbols, pc - o->offset);
        g_autofree char *line = tool_lines_find(o->lines, pc - o->offset);

        printf(", \"pc\": ");
        tool_json_string(get(f, "pc"));
        printf(", \"instruction\": ");
        tool_json_string(get(f, "text"));
        if (name) {
            printf(", \"symbol\": ");
            tool_json_string(name);
        }
        if (line) {
            printf(", \"line\": ");
            tool_json_string(line);
        }
    }
    printf("}");
}

static void say_json(const ToolOrigin *o, const GPtrArray *wrong)
{
    const GPtrArray *all = part_of(o)->found;
    bool is_first = true;

    tool_json_begin();
    printf("\"run\": ");
    tool_json_string(o->run);
    printf(", \"place\": ");
    tool_json_string(o->place);
    printf(", \"position\": %" PRIu64 ", \"complete\": %s, \"cut\": %u, \"nodes\": [",
           o->pos, tool_json_bool(part_of(o)->is_whole), count_cut(o));
    for (unsigned i = 0; i < all->len; i++) {
        if (is_kind(all->pdata[i], "node") || is_kind(all->pdata[i], "leaf")) {
            printf("%s", is_first ? "" : ", ");
            json_one(o, all->pdata[i]);
            is_first = false;
        }
    }
    printf("]");
    tool_json_list("problems", wrong);
    printf("}\n");
}

/* ---- all ---- */

/* QEMU quotes the place without names. */
static void quote_as_typed(const ToolOrigin *o, GPtrArray *all)
{
    g_autofree char *asked = g_strdup_printf("'%s'", strchr(o->asked, ' ') + 1);
    g_autofree char *typed = g_strdup_printf("'%s'", o->place);

    for (unsigned i = 0; i < all->len; i++) {
        GString *s = g_string_new(all->pdata[i]);

        g_string_replace(s, asked, typed, 0);
        g_free(all->pdata[i]);
        all->pdata[i] = g_string_free(s, false);
    }
}

/* Sentences on what went wrong; g_free each. */
static GPtrArray *troubles(const ToolOrigin *o)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(g_free);

    tool_part_troubles(part_of(o), all);
    quote_as_typed(o, all);
    if (o->is_interrupted) {
        tool_add(all, "interrupted");
    }
    return all;
}

int tool_origin_say(const ToolOrigin *o)
{
    g_autoptr(GPtrArray) wrong = troubles(o);
    const ToolPart *p = part_of(o);
    unsigned cut = count_cut(o);

    if (o->is_json) {
        say_json(o, wrong);
    } else {
        say_text(o);
        fflush(stdout);
        for (unsigned i = 0; i < wrong->len; i++) {
            tool_complain("%s", (char *)wrong->pdata[i]);
        }
        if (cut) {
            g_autofree char *n = tool_count(cut, "source");
            g_autofree char *text = g_strdup_printf(
                "%s not followed further: raise --depth or --nodes", n);

            tool_note(text);
        }
    }
    return p->is_whole ? TOOL_FINE : p->code == TOOL_DIVERGED ? TOOL_DIVERGED :
        TOOL_PROBLEM;
}
