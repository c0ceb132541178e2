/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt verify: has QEMU re-execute a run, the intervals between its checkpoints in
 * several processes at a time, and says what they found.
 *
 * A process gets a part of the run that begins and ends at checkpoints
 * (tt-tool-part.c). If one finds something the first wrong interval is replayed
 * once more (tt-tool-again.c).
 */
#include "tt-tool-verify.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct Verify {
    const char *run;
    ToolReplays replays;
    bool is_quiet, is_json, is_once;
    ToolSymbols *symbols;       /* NULL: none */
    uint64_t end_pos;
    GPtrArray *damage;          /* sentences */
} Verify;

/* ---- one of them ---- */

/* The lines QEMU said besides; of damage in the log they say what was found. */
static char **other_lines(const ToolPart *p)
{
    bool is_found = p->n_damaged && p->has_ended;
    g_autofree char *text = g_strchomp(g_strdup(is_found ? "" : p->other->str));

    return g_strsplit(text, "\n", -1);
}

static uint64_t wrong_to(const Verify *v, const ToolPart *p)
{
    return p->first_wrong_to == UINT64_MAX ? v->end_pos : p->first_wrong_to;
}

static void report_part(void *opaque, ToolPart *p)
{
    g_autofree char *ending = tool_part_ending(p);
    g_auto(GStrv) lines = other_lines(p);
    const Verify *v = opaque;

    if (v->is_json || p->is_dropped || (p->code == 0 && p->is_whole)) {
        return;
    }
    if (p->first_wrong != UINT64_MAX) {
        printf("wrong between %" PRIu64 " and %" PRIu64 ":\n", p->first_wrong,
               wrong_to(v, p));
    } else {
        printf("from %" PRIu64 " on:\n", p->from);
    }
    for (unsigned i = 0; i < p->found->len; i++) {
        g_autofree char *words = tool_finding_words(p->found->pdata[i],
                                                    v->symbols);

        printf("  %s\n", words);
    }
    for (char **l = lines; *l; l++) {
        printf("  | %s\n", *l);
    }
    if (ending) {
        printf("  %s\n", ending);
    }
    fflush(stdout);
}

/* ---- the sum ---- */

typedef struct Sum {
    uint64_t n_intervals, n_wrong;
    const ToolPart *first;      /* with the first wrong interval; NULL: none */
    bool is_incomplete, is_damaged;
    ToolSecond second;
} Sum;

static ToolPart *part_at(const Verify *v, unsigned i)
{
    return v->replays.parts->pdata[i];
}

static Sum sum_up(const Verify *v)
{
    Sum s = { .is_damaged = v->damage->len };

    for (unsigned i = 0; i < v->replays.parts->len; i++) {
        const ToolPart *p = part_at(v, i);

        s.n_intervals += p->n_intervals;
        s.is_damaged |= p->n_damaged > 0;
        s.is_incomplete |= !p->is_whole;
        if (p->first_wrong != UINT64_MAX) {
            s.n_wrong++;
            if (!s.first || p->first_wrong < s.first->first_wrong) {
                s.first = p;
            }
        }
    }
    s.is_incomplete |= s.is_damaged;
    return s;
}

/* ---- for programs ---- */

static void json_words(const Verify *v)
{
    bool any = false;

    printf(", \"found\": [");
    for (unsigned i = 0; i < v->replays.parts->len; i++) {
        const ToolPart *p = part_at(v, i);
        g_autofree char *ending = tool_part_ending(p);
        g_auto(GStrv) lines = other_lines(p);

        for (unsigned k = 0; k < p->found->len; k++) {
            g_autofree char *words = tool_finding_words(p->found->pdata[k],
                                                        v->symbols);

            printf("%s", any ? ", " : "");
            tool_json_string(words);
            any = true;
        }
        for (char **l = lines; p->code && *l; l++) {
            printf("%s", any ? ", " : "");
            tool_json_string(*l);
            any = true;
        }
        if (ending) {
            printf("%s", any ? ", " : "");
            tool_json_string(ending);
            any = true;
        }
    }
    printf("]");
}

static void json_details(const Verify *v)
{
    bool any = false;

    printf(", \"details\": [");
    for (unsigned i = 0; i < v->replays.parts->len; i++) {
        const ToolPart *p = part_at(v, i);

        for (unsigned k = 0; k < p->found->len; k++) {
            printf("%s", any ? ", " : "");
            tool_finding_json(p->found->pdata[k], v->symbols);
            any = true;
        }
    }
    printf("]");
}

static void json_branch(const char *name, const TtBranch *b)
{
    printf(", \"%s\": {\"position\": %" PRIu64 ", \"pc\": \"0x%" PRIx64
           "\", \"cpu\": %u}", name, b->pos, b->pc, b->cpu);
}

static void json_second(const ToolSecond *s)
{
    static const char *const names[] = {
        [AGAIN_NOT_TRIED] = "not tried", [AGAIN_ALIKE] = "alike",
        [AGAIN_ELSEWHERE] = "different", [AGAIN_PARTED] = "different",
        [AGAIN_FAILED] = "failed",
    };

    printf(", \"second\": {\"replay\": \"%s\"", names[s->how]);
    if (s->first_words) {
        printf(", \"first_found\": ");
        tool_json_string(s->first_words);
        printf(", \"second_found\": ");
        tool_json_string(s->second_words);
    }
    if (s->n_last) {
        json_branch("last_alike", &s->last);
    }
    for (unsigned i = 0; i < 2; i++) {
        if (s->n_first[i]) {
            json_branch(i ? "second_went" : "first_went", &s->first[i]);
        }
    }
    printf("}");
}

static void print_json(const Verify *v, const Sum *s)
{
    tool_json_begin();
    printf("\"run\": ");
    tool_json_string(v->run);
    printf(", \"exact\": %s, \"complete\": %s, \"intervals\": %" PRIu64
           ", \"processes\": %u, \"end\": %" PRIu64,
           s->n_wrong || !s->n_intervals ? "false" : "true",
           s->is_incomplete ? "false" : "true", s->n_intervals,
           v->replays.parts->len, v->end_pos);
    tool_json_list("damaged", v->damage);
    if (s->first) {
        printf(", \"first_wrong\": [%" PRIu64 ", %" PRIu64 "]",
               s->first->first_wrong, wrong_to(v, s->first));
        json_second(&s->second);
    }
    json_words(v);
    json_details(v);
    printf("}\n");
}

/* ---- for people ---- */

static void print_branch(const Verify *v, const char *what, const TtBranch *b)
{
    g_autofree char *plain = g_strdup_printf("position %" PRIu64 ", vCPU %u, pc "
                                             "0x%" PRIx64, b->pos, b->cpu,
                                             b->pc);
    g_autofree char *line = tool_symbols_add(v->symbols, plain);

    printf("  %s %s\n", what, line);
}

static void print_second(const Verify *v, const ToolSecond *s)
{
    if (s->how == AGAIN_ALIKE) {
        printf("A second replay of it, with one instruction per translation block, finds "
               "the same: the replays agree with each other, but not with the recording; "
               "most often an input is missing from it.\n");
    } else if (s->how == AGAIN_FAILED) {
        printf("A second replay of it ended without a result.\n");
    } else if (s->how != AGAIN_NOT_TRIED) {
        printf("The replay itself is not deterministic: a second replay of the interval, "
               "with one instruction per translation block, finds something else.\n  "
               "first: %s\n  second: %s\n", s->first_words,
               s->second_words);
    }
    if (s->how == AGAIN_ELSEWHERE) {
        printf("  The control flow is the same in both.\n");
    }
    if (s->n_last) {
        print_branch(v, "the last branch that both took:", &s->last);
    }
    for (unsigned i = 0; i < 2; i++) {
        if (s->n_first[i]) {
            print_branch(v, i ? "then the second:" : "then the first:",
                         &s->first[i]);
        }
    }
}

static void print_damage(const Verify *v)
{
    g_autofree char *name = g_strdup(v->run);

    tt_replace_controls(name, '?');
    printf("The run is damaged, or a part of it is missing (see also tt check "
           "%s):\n", name);
    for (unsigned i = 0; i < v->damage->len; i++) {
        printf("  %s\n", (char *)v->damage->pdata[i]);
    }
}

static void print_text(const Verify *v, const Sum *s)
{
    g_autofree char *n = tool_count(s->n_intervals, "interval");
    g_autofree char *end = tool_number(v->end_pos);

    if (s->is_damaged) {
        print_damage(v);
    }
    if (s->first) {
        g_autofree char *from = tool_number(s->first->first_wrong);
        g_autofree char *to = tool_number(wrong_to(v, s->first));

        printf("The run does not replay exactly: the first wrong interval is "
               "%s to %s. (Only the first one of each part that was verified "
               "is reported.)\n", from, to);
        print_second(v, &s->second);
        if (s->is_incomplete) {
            printf("Not all of the run could be verified.\n");
        }
    } else if (s->is_incomplete) {
        if (s->n_intervals) {
            printf("Not all of the run could be verified; what could be is "
                   "exact: %s.\n", n);
        } else {
            printf("Nothing of the run could be verified.\n");
        }
    } else if (!v->is_quiet) {
        printf("The run replays exactly: %s, up to position %s.\n",
               n, end);
    }
}

static int verify(Verify *v, const TtManifest *m, TtLogReader *r)
{
    ToolTotals t = tool_totals(r);
    Sum s;
    int result;

    if (m->features & TT_FEATURE_SCRUBBED) {
        return tool_complain("the run '%s' was scrubbed when it was packed and cannot be "
                             "replayed: ask for the original",
                             v->run);
    }
    if (!t.n_segments) {
        return tool_complain("the run '%s' is empty: its recorder ended before it had "
                             "written anything", v->run);
    }
    v->end_pos = t.end_pos;
    v->damage = tool_damage(v->run, m, r, TOOL_LOOK_REPLAY);
    /* What a recording under KVM has for positions changes when it is converted. */
    tool_cut_for(v->replays.parts, v->run, m, r, 0, UINT64_MAX,
                 m->features & TT_FEATURE_EXITS ? 1 : v->replays.jobs);
    v->replays.is_over = tool_catch_signals();
    if (!tool_parts_run(&v->replays, report_part, v)) {
        return TOOL_PROBLEM;
    }
    if (*v->replays.is_over) {
        return tool_complain("interrupted: the run was not verified to its end");
    }
    s = sum_up(v);
    if (s.is_damaged && !v->damage->len) {
        g_ptr_array_add(v->damage, g_strdup("QEMU could not read all of it"));
    }
    if (s.first && !v->is_once) {
        tool_verify_again(&v->replays, s.first, v->symbols, &s.second);
    }
    if (v->is_json) {
        print_json(v, &s);
    } else {
        print_text(v, &s);
    }
    result = s.n_wrong ? TOOL_DIVERGED : s.is_incomplete ? TOOL_PROBLEM :
        TOOL_FINE;
    tool_second_cleanup(&s.second);
    return result;
}

static int prepare(Verify *v, const ToolArgs *a)
{
    const char *symbols = tool_value(a, "--symbols");
    int result = tool_take_jobs(a, &v->replays);

    if (result != TOOL_FINE) {
        return result;
    }
    v->replays.qemu = tool_find_qemu(a);
    if (!v->replays.qemu) {
        return TOOL_PROBLEM;
    }
    return symbols ? tool_symbols_load(symbols, &v->symbols) : TOOL_FINE;
}

int tool_verify(const ToolArgs *a)
{
    Verify v = {
        .run = a->operand[0],
        .replays = {
            .run = a->operand[0],
            .parts = g_ptr_array_new_with_free_func(
                (GDestroyNotify)tool_part_free),
        },
        .is_quiet = tool_has(a, "--quiet"), .is_json = tool_has(a, "--json"),
        .is_once = tool_has(a, "--once"),
    };
    int result = prepare(&v, a);
    TtManifest m;
    TtLogReader *r;

    if (result == TOOL_FINE) {
        r = tool_open_run(v.run, &m);
        result = TOOL_PROBLEM;
        if (r) {
            result = verify(&v, &m, r);
            tt_manifest_cleanup(&m);
            tt_log_reader_free(r);
        }
    }
    tool_symbols_free(v.symbols);
    if (v.damage) {
        g_ptr_array_free(v.damage, true);
    }
    tool_replays_cleanup(&v.replays);
    return result;
}
