/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt run-plugin: what came of the parts, for people and for programs.
 */
#include "tt-tool-plugin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct Sum {
    uint64_t from, to, instructions, digests;
    bool is_whole, is_exact;
} Sum;

static const ToolFinding *find(const ToolPart *p, const char *kind)
{
    for (unsigned i = 0; i < p->found->len; i++) {
        if (!strcmp(tool_finding_kind(p->found->pdata[i]), kind)) {
            return p->found->pdata[i];
        }
    }
    return NULL;
}

static Sum sum_up(const ToolPlugin *p)
{
    Sum s = { .from = UINT64_MAX, .is_whole = true, .is_exact = true };

    for (unsigned i = 0; i < p->replays.parts->len; i++) {
        const ToolPart *part = p->replays.parts->pdata[i];
        const ToolFinding *f = find(part, "span");
        uint64_t from, to, n, digests;

        s.is_whole &= part->is_whole;
        s.is_exact &= part->code != TOOL_DIVERGED;
        if (f && tool_finding_number(f, "from", &from) &&
            tool_finding_number(f, "to", &to) &&
            tool_finding_number(f, "instructions", &n) &&
            tool_finding_number(f, "digests", &digests)) {
            s.from = MIN(s.from, from);
            s.to = MAX(s.to, to);
            s.instructions += n;
            s.digests += digests;
        }
    }
    return s;
}

/* How the process of a part ended in which the plugin was at work; NULL: as it should. */
static char *ending(const ToolPart *p)
{
    if (p->has_ended) {
        return NULL;
    }
    if (!find(p, "begin")) {
        return tool_part_ending(p);
    }
    return p->signal ?
        g_strdup_printf("QEMU was killed by signal %d (%s) while the plugin was at work, "
                        "from position %" PRIu64 " on", p->signal, g_strsignal(p->signal),
                        p->from) :
        g_strdup_printf("the plugin ended QEMU, with status %d, before its part was over, "
                        "which begins at position %" PRIu64, p->status, p->from);
}

/* One of our plugins says itself what it does not take, and QEMU only that it failed. */
static bool is_said(const ToolPlugin *plugin, const ToolPart *p, const char *text)
{
    return plugin->is_ours && *p->other->str &&
        g_str_has_prefix(text, "Could not load plugin");
}

/* Returns whether one of them says why the replay cannot go on. */
static bool add_findings(GPtrArray *all, const ToolPlugin *plugin, const ToolPart *p)
{
    bool is_told = false;

    for (unsigned i = 0; i < p->found->len; i++) {
        const ToolFinding *f = p->found->pdata[i];
        const char *kind = tool_finding_kind(f), *text = tool_finding_get(f, "text");

        if (text && !strcmp(kind, "failed") && is_said(plugin, p, text)) {
            continue;
        } else if (text && !strcmp(kind, "failed")) {
            tool_add(all, "%s", text);
        } else if (text) {
            tool_add(all, "the replay of it ended at position %s (%s): %s",
                     tool_finding_get(f, "position") ?: "?", kind, text);
            is_told = true;
        }
    }
    return is_told;
}

/* Sentences on what went wrong. */
static GPtrArray *troubles(const ToolPlugin *p)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(g_free);

    for (unsigned i = 0; i < p->replays.parts->len; i++) {
        const ToolPart *part = p->replays.parts->pdata[i];
        g_autofree char *how = ending(part);

        if (part->is_whole || part->is_dropped) {
            continue;
        }
        tool_part_lines(part, add_findings(all, p, part), all);
        if (how) {
            tool_add(all, "%s", how);
        }
    }
    if (p->is_interrupted) {
        tool_add(all, "interrupted");
    }
    return all;
}

static void say_json(const ToolPlugin *p, const Sum *s, const GPtrArray *wrong)
{
    tool_json_begin();
    printf("\"run\": ");
    tool_json_string(p->run);
    printf(", \"plugin\": ");
    tool_json_string(p->args->operand[1]);
    if (s->is_whole) {
        printf(", \"from\": %" PRIu64 ", \"to\": %" PRIu64 ", \"instructions\": %" PRIu64
               ", \"events\": %" PRIu64 ", \"digests\": %" PRIu64, s->from, s->to,
               s->instructions, s->to - s->from - s->instructions, s->digests);
    }
    printf(", \"exact\": %s, \"complete\": %s, \"processes\": %u",
           s->is_exact && !s->is_whole ? "null" : tool_json_bool(s->is_exact),
           tool_json_bool(s->is_whole),
           p->replays.parts->len);
    if (p->races) {
        tool_races_json(p, p->races);
    }
    tool_json_list("problems", wrong);
    printf("}\n");
}

static void say_text(const ToolPlugin *p, const Sum *s, const GPtrArray *wrong)
{
    g_autofree char *n = tool_count(s->instructions, "instruction");
    g_autofree char *events = tool_count(s->to - s->from - s->instructions, "event");
    g_autofree char *digests = tool_count(s->digests, "digest");

    for (unsigned i = 0; i < wrong->len; i++) {
        tool_complain("%s", (char *)wrong->pdata[i]);
    }
    if (!s->is_exact) {
        tool_complain("the replay is not exact (see tt verify): some of what the plugin "
                      "saw differs from the recording");
    } else if (s->is_whole && !p->is_quiet) {
        g_autofree char *text = g_strdup_printf(
            "the plugin saw positions %" PRIu64 " to %" PRIu64 ": %s, and between them %s; "
            "%s on the way, as recorded", s->from, s->to, n, events, digests);

        tool_note(text);
    }
}

int tool_plugin_say(ToolPlugin *p)
{
    g_autoptr(GPtrArray) wrong = troubles(p);
    Sum s = sum_up(p);

    /* Half a result looks like a whole one. */
    if (s.is_whole && !tool_plugin_put(p)) {
        return TOOL_PROBLEM;
    }
    fflush(stdout);
    if (p->is_json) {
        say_json(p, &s, wrong);
    } else {
        say_text(p, &s, wrong);
    }
    return !s.is_exact ? TOOL_DIVERGED : s.is_whole && !p->is_interrupted ? TOOL_FINE :
        TOOL_PROBLEM;
}
