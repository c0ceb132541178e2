/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt trace: has QEMU replay a part of a run and write down where control went.
 * tt branches: shows such a trace. tt compare-traces: the first difference of two.
 */
#include "tt-tool-verify.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- making one ---- */

/* What QEMU says may have names in it. */
static void tell(void *opaque, ToolPart *p)
{
    fputs(p->other->str, stderr);
    if (p->signal) {
        tool_complain("QEMU was killed by signal %d (%s): the trace is incomplete",
                      p->signal, g_strsignal(p->signal));
    }
}

static int make_trace(const char *run, const char *qemu, const char *file,
                      uint64_t from, uint64_t to)
{
    ToolReplays r = {
        .run = run, .qemu = qemu, .jobs = 1,
        .parts = g_ptr_array_new_with_free_func((GDestroyNotify)tool_part_free),
    };
    ToolPart *p = tool_part_new(from, to);
    int result;

    p->trace = file;
    g_ptr_array_add(r.parts, p);
    result = tool_parts_run(&r, tell, NULL) ? p->code : TOOL_PROBLEM;
    g_ptr_array_free(r.parts, true);
    return result == TOOL_FINE || result == TOOL_DIVERGED ? result : TOOL_PROBLEM;
}

int tool_trace(const ToolArgs *a)
{
    g_autofree char *qemu = NULL, *file = NULL;
    uint64_t from, to;
    int result;

    result = tool_take_part(a, &from, &to);
    if (result != TOOL_FINE) {
        return result;
    }
    qemu = tool_find_qemu(a);
    file = qemu ? tool_whole_path(a->operand[1]) : NULL;
    return file && tool_is_fit(file) ?
        make_trace(a->operand[0], qemu, file, from, to) : TOOL_PROBLEM;
}

/* ---- showing ---- */

static TtTraceReader *open_trace(const char *path)
{
    TtTraceReader *r = NULL;
    TtDiag diag;
    TtIo *io;

    if (tt_io_posix_open(path, &io, &diag) != TT_OK) {
        tool_problem(&diag);
    } else if (tt_trace_open(io, &r, &diag) != TT_OK) {
        tool_complain("'%s': %s", path, diag.text);
    } else if (tt_trace_info(r)->is_torn) {
        tool_complain("'%s' is incomplete because its writer was cut off: it "
                      "ends at position %" PRIu64, path, tt_trace_info(r)->to);
    }
    return r;
}

/* The exit status when nothing else is wrong. */
static int trace_status(const TtTraceReader *r)
{
    return tt_trace_info(r)->is_torn ? TOOL_PROBLEM : TOOL_FINE;
}

static void print_branch(const char *before, const TtBranch *b,
                         const ToolSymbols *symbols)
{
    g_autofree char *plain = g_strdup_printf("%12" PRIu64 " cpu %u pc 0x%"
                                             PRIx64, b->pos, b->cpu, b->pc);
    g_autofree char *line = tool_symbols_add(symbols, plain);

    printf("%s%s\n", before, line);
}

static int print_branches(const ToolArgs *a, TtTraceReader *r,
                          const ToolSymbols *symbols)
{
    uint64_t from, to, limit, n = 0;
    TtDiag diag;
    TtBranch b;
    TtStatus s = TT_OK;

    if (!tool_number_option(a, "--from", 0, &from) ||
        !tool_number_option(a, "--to", UINT64_MAX, &to) ||
        !tool_number_option(a, "--limit", UINT64_MAX, &limit)) {
        return TOOL_USAGE;
    }
    if (from >= to) {
        return tool_usage(a->command, "--to must be above --from");
    }
    if (!limit) {
        return tool_usage(a->command, "--limit takes a number from 1");
    }
    while (n < limit && (s = tt_trace_next(r, &b, &diag)) == TT_OK && b.pos < to) {
        if (b.pos >= from) {
            print_branch("", &b, symbols);
            n++;
        }
    }
    return s < 0 ? tool_problem(&diag) : trace_status(r);
}

int tool_branches(const ToolArgs *a)
{
    const char *names = tool_value(a, "--symbols");
    ToolSymbols *symbols = NULL;
    int result = names ? tool_symbols_load(names, &symbols) : TOOL_FINE;
    TtTraceReader *r = result == TOOL_FINE ? open_trace(a->operand[0]) : NULL;

    if (result == TOOL_FINE) {
        result = r ? print_branches(a, r, symbols) : TOOL_PROBLEM;
    }
    tt_trace_reader_free(r);
    tool_symbols_free(symbols);
    return result;
}

/* ---- comparing ---- */

static void json_branches(const char *name, const TtBranch *b, unsigned n)
{
    printf(", \"%s\": [", name);
    for (unsigned i = 0; i < n; i++) {
        printf("%s{\"position\": %" PRIu64 ", \"pc\": \"0x%" PRIx64
               "\", \"cpu\": %u}", i ? ", " : "", b[i].pos, b[i].pc, b[i].cpu);
    }
    printf("]");
}

static void print_json(const TtTraceDiff *d, bool is_same, bool is_torn)
{
    tool_json_begin();
    printf("\"same\": %s, \"torn\": %s, \"from\": %" PRIu64 ", \"to\": %" PRIu64
           ", \"branches_alike\": %" PRIu64, tool_json_bool(is_same),
           tool_json_bool(is_torn), d->from, d->to, d->n_same);
    if (!is_same) {
        json_branches("before", d->before, d->n_before);
        json_branches("first", d->a, d->n_a);
        json_branches("second", d->b, d->n_b);
    }
    printf("}\n");
}

static void print_side(const char *mark, const char *name, const TtBranch *b,
                       unsigned n, const ToolSymbols *symbols)
{
    g_autofree char *shown = g_strdup(name);

    tt_replace_controls(shown, '?');
    if (!n) {
        printf("%s nothing more before the end of '%s'\n", mark, shown);
    }
    for (unsigned i = 0; i < n; i++) {
        print_branch(mark, &b[i], symbols);
    }
}

static void print_text(const ToolArgs *a, const TtTraceDiff *d, bool is_same,
                       const ToolSymbols *symbols)
{
    g_autofree char *from = tool_number(d->from), *to = tool_number(d->to);
    g_autofree char *n = tool_number(d->n_same);

    if (is_same) {
        printf("The control flow is the same from position %s to %s: %s "
               "branches.\n", from, to, n);
        return;
    }
    printf("The traces differ after %s branches from position %s:\n", n,
           from);
    for (unsigned i = 0; i < d->n_before; i++) {
        print_branch("  ", &d->before[i], symbols);
    }
    print_side("- ", a->operand[0], d->a, d->n_a, symbols);
    print_side("+ ", a->operand[1], d->b, d->n_b, symbols);
}

static int compare(const ToolArgs *a, TtTraceReader *ra, TtTraceReader *rb,
                   const ToolSymbols *symbols)
{
    TtTraceDiff d;
    TtDiag diag;
    TtStatus s = tt_trace_compare(ra, rb, &d, &diag);
    int whole = MAX(trace_status(ra), trace_status(rb));

    if (s != TT_OK && s != TT_ERR_MISMATCH) {
        return tool_problem(&diag);
    }
    if (tool_has(a, "--json")) {
        print_json(&d, s == TT_OK, whole != TOOL_FINE);
    } else {
        print_text(a, &d, s == TT_OK, symbols);
    }
    return s == TT_OK ? whole : TOOL_DIVERGED;
}

int tool_compare_traces(const ToolArgs *a)
{
    const char *names = tool_value(a, "--symbols");
    ToolSymbols *symbols = NULL;
    TtTraceReader *ra = NULL, *rb = NULL;
    int result = names ? tool_symbols_load(names, &symbols) : TOOL_FINE;

    if (result == TOOL_FINE) {
        ra = open_trace(a->operand[0]);
        rb = open_trace(a->operand[1]);
        result = ra && rb ? compare(a, ra, rb, symbols) : TOOL_PROBLEM;
    }
    tt_trace_reader_free(ra);
    tt_trace_reader_free(rb);
    tool_symbols_free(symbols);
    return result;
}
