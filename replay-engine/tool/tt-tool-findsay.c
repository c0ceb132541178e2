/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt find: what was found, for people and for programs, and how far it is.
 */
#include "tt-tool-find.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- on the way ---- */

void tool_find_show_progress(const ToolFind *f)
{
    unsigned n = f->replays.parts->len, ended = 0, hits = 0;
    uint64_t at = 0;

    if (!f->shows_progress) {
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        const ToolPart *p = f->replays.parts->pdata[i];

        ended += p->at == UINT64_MAX || p->is_dropped;
        at = p->at == UINT64_MAX ? at : MAX(at, p->at);
        for (unsigned k = 0; k < p->found->len; k++) {
            hits += !strcmp(tool_finding_kind(p->found->pdata[k]), "hit");
        }
    }
    fprintf(stderr, "\r%u of %u parts, at position %" PRIu64 ", %u found   ", ended, n,
            at, hits);
    fflush(stderr);
}

void tool_find_hide_progress(const ToolFind *f)
{
    if (f->shows_progress) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
    }
}

/* ---- whether it is all ---- */

static bool is_needed(const ToolFind *f, const ToolPart *p)
{
    return !p->is_dropped || f->is_interrupted;
}

static bool is_complete(const ToolFind *f)
{
    for (unsigned i = 0; i < f->replays.parts->len; i++) {
        const ToolPart *p = f->replays.parts->pdata[i];

        if (is_needed(f, p) && !p->is_whole) {
            return false;
        }
    }
    return true;
}

static int status(const ToolFind *f)
{
    int result = f->is_interrupted ? TOOL_PROBLEM : TOOL_FINE;

    for (unsigned i = 0; i < f->replays.parts->len; i++) {
        const ToolPart *p = f->replays.parts->pdata[i];

        if (is_needed(f, p) && !p->is_whole && result != TOOL_DIVERGED) {
            result = p->code == TOOL_DIVERGED ? TOOL_DIVERGED : TOOL_PROBLEM;
        }
    }
    return result;
}

/* Sentences on what went wrong; g_free each. */
static GPtrArray *troubles(const ToolFind *f)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(g_free);

    for (unsigned i = 0; i < f->replays.parts->len; i++) {
        const ToolPart *p = f->replays.parts->pdata[i];

        if (!p->is_dropped && !p->is_whole) {
            tool_part_troubles(p, all);
        }
    }
    if (f->is_interrupted) {
        tool_add(all, "interrupted");
    }
    return all;
}

/* ---- hits ---- */

static char *name_of(const ToolFind *f, const ToolFinding *hit)
{
    uint64_t pc;

    return tool_finding_number(hit, "pc", &pc) ?
        tool_symbols_find(f->symbols, pc - f->offset) : NULL;
}

static const char *get(const ToolFinding *hit, const char *key)
{
    return tool_finding_get(hit, key) ?: "?";
}

static void print_hit(const ToolFind *f, const ToolFinding *hit)
{
    g_autofree char *name = name_of(f, hit);

    printf("position %s pc %s%s%s%s cpu %s", get(hit, "position"), get(hit, "pc"),
           name ? " (" : "", name ?: "", name ? ")" : "", get(hit, "cpu"));
    if (f->how & (TT_COND_CHANGES | TT_COND_WRITTEN) || tt_cond_has_at(f->cond)) {
        printf(" value %s", get(hit, "value"));
    }
    printf("\n");
}

static void json_hit(const ToolFind *f, const ToolFinding *hit)
{
    g_autofree char *name = name_of(f, hit);
    uint64_t pos = 0, cpu = 0;

    tool_finding_number(hit, "position", &pos);
    tool_finding_number(hit, "cpu", &cpu);
    printf("{\"position\": %" PRIu64 ", \"pc\": ", pos);
    tool_json_string(get(hit, "pc"));
    printf(", \"cpu\": %" PRIu64 ", \"value\": ", cpu);
    tool_json_string(get(hit, "value"));
    if (name) {
        printf(", \"symbol\": ");
        tool_json_string(name);
    }
    printf("}");
}

/* ---- all ---- */

static uint64_t left_out(const ToolFind *f)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < f->replays.parts->len; i++) {
        n += ((const ToolPart *)f->replays.parts->pdata[i])->left_out;
    }
    return n;
}

static void say_json(const ToolFind *f, const GPtrArray *wrong)
{
    static const char *const kinds[] = {
        [TT_COND_AT_PLACES] = "places", [TT_COND_OF_MEMORY] = "memory",
        [TT_COND_OF_REGISTERS] = "registers",
    };

    tool_json_begin();
    printf("\"run\": ");
    tool_json_string(f->run);
    printf(", \"condition\": ");
    tool_json_string(f->condition);
    printf(", \"kind\": \"%s\", \"complete\": %s, \"more\": %s, \"processes\": %u, "
           "\"left_out\": %" PRIu64 ", \"from\": %" PRIu64 ", \"to\": %" PRIu64 ", "
           "\"torn\": %s, \"found\": [",
           kinds[tt_cond_kind(f->cond)], tool_json_bool(is_complete(f)),
           tool_json_bool(f->is_cut_short), f->replays.parts->len, left_out(f), f->from,
           MIN(f->to, f->end), tool_json_bool(f->is_torn));
    for (unsigned i = 0; i < f->hits->len; i++) {
        printf("%s", i ? ", " : "");
        json_hit(f, f->hits->pdata[i]);
    }
    printf("]");
    tool_json_list("problems", wrong);
    printf("}\n");
}

/* It wanted to go on, and found all up to there. */
static void note_end(const ToolFind *f)
{
    bool is_one = f->which == FIND_FIRST || f->how & TT_COND_MONOTONE;

    if (f->is_torn && f->to > f->end && !(is_one && f->hits->len)) {
        g_autofree char *text = g_strdup_printf(
            "the search ended at position %" PRIu64 ", %s", f->end, tool_is_growing() ?
            "up to which the recording had been written" :
            "where the recording was cut off");

        tool_note(text);
    }
}

static void say_text(const ToolFind *f, const GPtrArray *wrong)
{
    for (unsigned i = 0; i < f->hits->len; i++) {
        print_hit(f, f->hits->pdata[i]);
    }
    fflush(stdout);
    if (f->is_cut_short) {
        tool_note("there are more: raise --limit to see them");
    }
    for (unsigned i = 0; i < wrong->len; i++) {
        tool_complain("%s", (char *)wrong->pdata[i]);
    }
    if (!f->hits->len && !f->is_quiet) {
        printf("%s\n", is_complete(f) ? "Nothing was found." :
               "Nothing was found in what could be searched.");
    } else if (!is_complete(f)) {
        tool_note("not all of the run could be searched: there may be more");
    }
    if (is_complete(f)) {
        note_end(f);
    }
}

int tool_find_say(const ToolFind *f)
{
    g_autoptr(GPtrArray) wrong = troubles(f);

    if (f->is_json) {
        say_json(f, wrong);
    } else {
        say_text(f, wrong);
    }
    return status(f);
}
