/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a verifying replay says it found: a word, then KEY=VALUE, the last value up
 * to the end of the line; in words for people, and as an object of JSON.
 */
#include "tt-tool-verify.h"

#include <inttypes.h>
#include <stdio.h>

struct ToolFinding {
    char *kind;
    GPtrArray *keys;            /* key, value, key, value ... */
};

/* {KEY} becomes its value. */
static const struct {
    const char *kind, *words;
} all_words[] = {
    { "diverged", "the replay is as recorded at position {after}, but not at {position}, "
                  "pc {pc}: {text}" },
    { "damaged", "the replay cannot go on from position {position}: {text}" },
    { "release", "the run was recorded with QEMU {text}, and this is {replayed}: "
                 "releases fix instructions, so replay it with the same release" },
    { "further", "a consequence of it, at position {position}, pc {pc}: {text}" },
    { "state", "registers of the replay at position {position}, vCPU {cpu}: "
      "{text}" },
    { "before", "the last event before it: {text}" },
    { "next", "the next event: {text}" },
    { "vcpu", "at the end of the interval, vCPUs differ from the recorded ones" },
    { "register", "vCPU {cpu}, register {name}: recorded {recorded}, replayed "
      "{replayed}" },
    { "hidden", "what differs is not in a register that is shown (an MSR, or a pending "
                "event)" },
    { "outputs", "what the guest wrote to its devices differs from what was recorded" },
    { "events", "{recorded} events were recorded up to there, {replayed} "
      "replayed" },
    { "map", "the memory map differs from the recorded one" },
    { "page", "page {page} block {block} offset {offset} recorded {recorded} "
      "replayed {replayed}, physical address {physical}, bytes of the page that "
      "differ: {bytes}" },
    { "pages", "pages that differ: {count}" },
    { "again", "at position {position}, all is as recorded again" },
    { "nowrite", "page {page}: no instruction of this interval wrote its contents in the "
                 "replay: an input is missing from the log" },
    { "write", "page {page}: its contents in the replay were written at position "
               "{position}, pc {pc}" },
    { "kept", "vCPU {cpu}, register {name}: it does not change in the replay from "
              "position {from} to {to}: an input is missing from the log" },
    { "wrote", "vCPU {cpu}, register {name}: its value in the replay was written at "
               "position {position}, pc {pc}" },
    { "search", "the search for the writer ended at position {position}: {text}" },
    { "unusable", "checkpoint {id}, position {position}, cannot be used" },
    { "missed", "the replay ended at position {end}, before checkpoint {id}, "
      "position {position}" },
    { "interrupted", "interrupted at position {position}" },
    { "failed", "{text}" },
};

/* Keys whose value is the rest of the line, and may be anything. */
static bool takes_rest(const char *key)
{
    return !strcmp(key, "text") || !strcmp(key, "block");
}

static void add(ToolFinding *f, const char *key, char *value)
{
    g_ptr_array_add(f->keys, g_strdup(key));
    g_ptr_array_add(f->keys, value);
}

/* Words of a register stand after one another with a '_'. */
static char *value_of(const char *key, const char *value)
{
    char *copy = g_strdup(value);

    return !strcmp(key, "recorded") || !strcmp(key, "replayed") ?
        g_strdelimit(copy, "_", ' ') : copy;
}

ToolFinding *tool_finding_parse(const char *line)
{
    ToolFinding *f = g_new0(ToolFinding, 1);
    g_auto(GStrv) words = g_strsplit(line, " ", -1);

    f->kind = g_strdup(words[0] ? words[0] : "");
    f->keys = g_ptr_array_new_with_free_func(g_free);
    for (char **w = words; *w; w++) {
        char *value = strchr(*w, '=');

        if (w == words || !value) {
            continue;
        }
        *value++ = 0;
        if (takes_rest(*w)) {
            g_autofree char *rest = g_strjoinv(" ", w + 1);

            add(f, *w, g_strconcat(value, w[1] ? " " : "", rest, NULL));
            break;
        }
        add(f, *w, value_of(*w, value));
    }
    return f;
}

void tool_finding_free(ToolFinding *f)
{
    if (f) {
        g_free(f->kind);
        g_ptr_array_free(f->keys, true);
        g_free(f);
    }
}

const char *tool_finding_kind(const ToolFinding *f)
{
    return f->kind;
}

const char *tool_finding_get(const ToolFinding *f, const char *key)
{
    for (unsigned i = 0; i < f->keys->len; i += 2) {
        if (!strcmp(f->keys->pdata[i], key)) {
            return f->keys->pdata[i + 1];
        }
    }
    return NULL;
}

bool tool_finding_number(const ToolFinding *f, const char *key, uint64_t *n)
{
    const char *text = tool_finding_get(f, key);

    return text && tool_parse_number(text, n);
}

bool tool_finding_agrees(const ToolFinding *a, const ToolFinding *b,
                         const char *but)
{
    bool agree = !strcmp(a->kind, b->kind) && a->keys->len == b->keys->len;

    for (unsigned i = 0; agree && i < a->keys->len; i += 2) {
        const char *key = a->keys->pdata[i];

        agree = !strcmp(key, but) ||
            !g_strcmp0(a->keys->pdata[i + 1], tool_finding_get(b, key));
    }
    return agree;
}

/* ---- for people ---- */

static char *fill_in(const ToolFinding *f, const char *words)
{
    GString *s = g_string_new(NULL);

    for (const char *p = words; *p; p++) {
        const char *end = *p == '{' ? strchr(p, '}') : NULL;

        if (end) {
            g_autofree char *key = g_strndup(p + 1, end - p - 1);
            const char *value = tool_finding_get(f, key);

            g_string_append(s, value ? value : "?");
            p = end;
        } else {
            g_string_append_c(s, *p);
        }
    }
    return g_string_free(s, false);
}

char *tool_finding_words(const ToolFinding *f, const ToolSymbols *symbols)
{
    g_autofree char *text = NULL;

    for (unsigned i = 0; i < G_N_ELEMENTS(all_words) && !text; i++) {
        if (!strcmp(f->kind, all_words[i].kind)) {
            text = fill_in(f, all_words[i].words);
        }
    }
    return tool_symbols_add(symbols, text ? text : f->kind);
}

/* ---- for programs ---- */

static bool is_count(const char *key)
{
    static const char *const names[] = {
        "position", "after", "cpu", "page", "bytes", "count", "from", "to", "id",
        "end",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        if (!strcmp(key, names[i])) {
            return true;
        }
    }
    return false;
}

static void json_symbol(const ToolFinding *f, const ToolSymbols *symbols)
{
    const char *pc = tool_finding_get(f, "pc");
    uint64_t addr;

    if (pc && tool_parse_number(pc, &addr)) {
        g_autofree char *name = tool_symbols_find(symbols, addr);

        if (name) {
            printf(", \"symbol\": ");
            tool_json_string(name);
        }
    }
}

void tool_finding_json(const ToolFinding *f, const ToolSymbols *symbols)
{
    printf("{\"what\": ");
    tool_json_string(f->kind);
    for (unsigned i = 0; i < f->keys->len; i += 2) {
        const char *key = f->keys->pdata[i], *value = f->keys->pdata[i + 1];
        uint64_t n;

        printf(", ");
        tool_json_string(key);
        printf(": ");
        if (is_count(key) && tool_parse_number(value, &n)) {
            printf("%" PRIu64, n);
        } else {
            tool_json_string(value);
        }
    }
    json_symbol(f, symbols);
    printf("}");
}
