/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The `tt` tool: looks into a run without a virtual machine.
 */
#include "tt-tool.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

static const char usage[] =
    "usage: tt info RUN [--json]\n"
    "       tt log RUN [--from POS] [--to POS] [--kind KIND]... [--limit N]\n"
    "       tt stats RUN [--json]\n"
    "       tt verify RUN\n"
    "       tt branch RUN --at ID|@NAME [--to DIR] [-- QEMU-OPTIONS...]\n"
    "\n"
    "RUN is the directory of a recording. POS is a position; --to is not\n"
    "included. KIND is a name as `tt log` prints it, or a number; `tt stats`\n"
    "lists the kinds that occur.\n"
    "Exit status: 0 fine, 1 problem with the run, 2 wrong usage.\n";

static int usage_error(const char *what, const char *arg)
{
    fprintf(stderr, "tt: %s%s%s\n%s", what, arg ? ": " : "", arg ? arg : "",
            usage);
    return TOOL_USAGE;
}

int tool_problem(const TtDiag *diag)
{
    fprintf(stderr, "tt: %s\n", diag->text);
    return TOOL_PROBLEM;
}

static void note(const TtDiag *diag)
{
    fprintf(stderr, "tt: note: %s\n", diag->text);
}

TtLogReader *tool_open_log(const char *run)
{
    g_autofree char *path = g_build_filename(run, "log", NULL);
    TtLogReader *r = NULL;
    TtDiag diag;
    TtIo *io;
    TtStatus status = tt_io_posix_open(path, &io, &diag);

    if (status == TT_OK) {
        status = tt_log_reader_open(io, &r, &diag);
    }
    if (status < 0) {
        tool_problem(&diag);
        return NULL;
    }
    if (status == TT_END_TORN) {
        note(&diag);
    }
    return r;
}

ToolTotals tool_totals(const TtLogReader *r)
{
    ToolTotals t = { .n_segments = tt_log_reader_n_segments(r) };

    for (uint64_t i = 0; i < t.n_segments; i++) {
        const TtSegInfo *info = tt_log_reader_info(r, i);
        if (i == 0) {
            t.first_pos = info->first_pos;
        }
        t.end_pos = info->end_pos;
        t.n_events += info->n_events;
        t.host_ns = info->host_ns;
        t.ev_raw += info->ev_raw;
        t.ev_stored += info->ev_stored;
        t.pl_raw += info->pl_raw;
        t.pl_stored += info->pl_stored;
    }
    return t;
}

char *tool_number(uint64_t n)
{
    g_autofree char *digits = g_strdup_printf("%" PRIu64, n);
    size_t len = strlen(digits);
    GString *s = g_string_new(NULL);

    for (size_t i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0) {
            g_string_append_c(s, ',');
        }
        g_string_append_c(s, digits[i]);
    }
    return g_string_free(s, false);
}

char *tool_bytes(uint64_t n)
{
    static const char *const unit[] = { "kB", "MB", "GB", "TB" };
    double v = n / 1e3;
    unsigned u = 0;

    if (n < 1000) {
        return g_strdup_printf("%" PRIu64 " bytes", n);
    }
    while (v >= 999.95 && u + 1 < G_N_ELEMENTS(unit)) {
        v /= 1e3;
        u++;
    }
    return g_strdup_printf("%.1f %s", v, unit[u]);
}

bool tool_parse_number(const char *text, uint64_t *n)
{
    bool is_hex = g_str_has_prefix(text, "0x");
    char *end;

    if (!(is_hex ? g_ascii_isxdigit(text[2]) : g_ascii_isdigit(text[0]))) {
        return false;
    }
    errno = 0;
    *n = g_ascii_strtoull(text, &end, is_hex ? 16 : 10);
    return errno == 0 && *end == 0;
}

/* ---- info ---- */

void tool_make_harmless(char *text)
{
    for (; *text; text++) {
        if (g_ascii_iscntrl(*text)) {
            *text = '?';
        }
    }
}

static void make_manifest_harmless(TtManifest *m)
{
    char *const texts[] = { m->started, m->qemu_version, m->tt_version,
                            m->accel, m->host, m->command_line, m->cpu_type };

    for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++) {
        tool_make_harmless(texts[i]);
    }
}

static void print_machine(const TtManifest *m)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < m->n_blocks; i++) {
        bytes += m->blocks[i].size_bytes;
    }
    printf("Machine:    %u vCPU%s (%s), %.1f MiB in %u blocks\n", m->n_cpus,
           m->n_cpus == 1 ? "" : "s", m->cpu_type, bytes / 1048576.0,
           m->n_blocks);
}

static void print_recorder(const TtManifest *m, const ToolTotals *t)
{
    printf("Recorded:   %s, about %.1f s\n", *m->started ? m->started
           : "(no date)", t->host_ns / 1e9);
    printf("By:         QEMU %s with TTVM %s, %s%s%s\n", m->qemu_version,
           m->tt_version, m->accel, *m->host ? ", on " : "", m->host);
    printf("Command:    %s\n", m->command_line);
}

static void print_log(const TtLogReader *r, const ToolTotals *t)
{
    g_autofree char *first = tool_number(t->first_pos);
    g_autofree char *end = tool_number(t->end_pos);
    g_autofree char *events = tool_number(t->n_events);
    g_autofree char *segments = tool_number(t->n_segments);
    g_autofree char *all = tool_bytes(tt_log_reader_bytes(r));
    g_autofree char *payload = tool_bytes(t->pl_stored);

    printf("Positions:  %s to %s\n", first, end);
    printf("Events:     %s in %s segments\n", events, segments);
    printf("Log:        %s, of which %s are payload\n", all, payload);
    printf("Ended:      %s\n", tt_log_reader_is_torn(r)
           ? "cut off; it replays up to there" : "cleanly");
}

/* Opens manifest and log, which must belong together. NULL: said so. */
static TtLogReader *open_run(const char *run, TtManifest *m)
{
    g_autofree char *path = g_build_filename(run, "manifest", NULL);
    TtLogReader *r;
    TtDiag diag;

    if (tt_manifest_load(path, m, &diag) != TT_OK) {
        tool_problem(&diag);
        return NULL;
    }
    r = tool_open_log(run);
    if (r && memcmp(m->uuid, tt_log_reader_uuid(r), 16) != 0) {
        tt_fail(&diag, TT_ERR_FORMAT, "the manifest and the log in '%s' "
                "belong to different runs", run);
        tool_problem(&diag);
        tt_log_reader_free(r);
        r = NULL;
    }
    if (!r) {
        tt_manifest_cleanup(m);
    }
    return r;
}

static void print_info_json(const char *run, const TtLogReader *r,
                            const TtManifest *m, const ToolTotals *t)
{
    printf("{\"run\": ");
    tool_json_string(run);
    printf(", \"started\": ");
    tool_json_string(m->started);
    printf(", \"command\": ");
    tool_json_string(m->command_line);
    printf(", \"start\": %" PRIu64 ", \"end\": %" PRIu64 ", \"events\": %"
           PRIu64 ", \"bytes\": %" PRIu64 ", \"torn\": %s", t->first_pos,
           t->end_pos, t->n_events, tt_log_reader_bytes(r),
           tt_log_reader_is_torn(r) ? "true" : "false");
    tool_json_tree(run, m);
    printf("}\n");
}

static int tool_info(const char *run, bool is_json)
{
    TtManifest m;
    TtLogReader *r = open_run(run, &m);

    if (!r) {
        return TOOL_PROBLEM;
    }
    ToolTotals t = tool_totals(r);
    if (is_json) {
        print_info_json(run, r, &m, &t);
    } else {
        make_manifest_harmless(&m);
        printf("Run:        %s\n", run);
        print_recorder(&m, &t);
        print_machine(&m);
        print_log(r, &t);
        tool_print_tree(run, &m);
    }
    tt_manifest_cleanup(&m);
    tt_log_reader_free(r);
    return TOOL_FINE;
}

/* ---- log ---- */

typedef struct Filter {
    uint64_t from, to, limit;
    bool kind_given;
    bool kind[TT_EV_KIND_MAX + 1];
} Filter;

/* Prints what fits of one segment. False: enough. */
static bool print_events(const TtSegment *seg, Filter *f)
{
    char line[320];

    for (uint32_t i = 0; i < seg->n_events; i++) {
        const TtEvent *ev = &seg->events[i];
        if (ev->pos >= f->to) {
            return false;
        }
        if (ev->pos < f->from || (f->kind_given && !f->kind[ev->kind])) {
            continue;
        }
        if (f->limit == 0) {
            return false;
        }
        f->limit--;
        tt_event_format(ev, line, sizeof(line));
        if (puts(line) < 0) {
            return false;
        }
    }
    return true;
}

static int tool_log(const char *run, Filter *f)
{
    TtLogReader *r = tool_open_log(run);
    TtStatus status = TT_OK;
    bool more = true;
    TtDiag diag;

    if (!r) {
        return TOOL_PROBLEM;
    }
    uint64_t n = tt_log_reader_n_segments(r);
    uint64_t i = tt_log_reader_find(r, f->from);
    /* Events of one position may lie in several segments. */
    while (i > 0 && tt_log_reader_info(r, i - 1)->end_pos >= f->from) {
        i--;
    }
    for (; i < n && more && status == TT_OK; i++) {
        TtSegment *seg;
        status = tt_log_reader_load(r, i, &seg, &diag);
        if (status == TT_OK) {
            more = print_events(seg, f);
            tt_segment_unref(seg);
        }
    }
    tt_log_reader_free(r);
    fflush(stdout);
    return status == TT_OK ? TOOL_FINE : tool_problem(&diag);
}

/* ---- verify ---- */

static int tool_verify(const char *run)
{
    TtManifest m;
    TtLogReader *r = open_run(run, &m);
    uint64_t damaged = 0;
    TtDiag diag;

    if (!r) {
        return TOOL_PROBLEM;
    }
    tt_manifest_cleanup(&m);

    ToolTotals t = tool_totals(r);
    for (uint64_t i = 0; i < t.n_segments; i++) {
        TtSegment *seg;
        if (tt_log_reader_load(r, i, &seg, &diag) == TT_OK) {
            tt_segment_unref(seg);
        } else {
            damaged++;
            tool_problem(&diag);
        }
    }
    g_autofree char *n = tool_number(t.n_segments);
    g_autofree char *events = tool_number(t.n_events);
    g_autofree char *end = tool_number(t.end_pos);
    if (damaged) {
        fprintf(stderr, "tt: %" PRIu64 " of %s segments are damaged\n", damaged,
                n);
    } else {
        printf("The log is intact: %s segments, %s events, up to position %s%s."
               "\nThis checked the log only; a replay (-tt replay,dir=%s) "
               "proves the run.\n", n, events, end, tt_log_reader_is_torn(r)
               ? ", where the recording was cut off" : "", run);
    }
    tt_log_reader_free(r);
    return damaged ? TOOL_PROBLEM : TOOL_FINE;
}

/* ---- command line ---- */

static bool add_kind(Filter *f, const char *name)
{
    uint64_t number = TT_EV_KIND_MAX + 1;

    f->kind_given = true;
    for (unsigned k = 0; k <= TT_EV_KIND_MAX; k++) {
        const char *known = tt_event_kind_name(k);
        if (known && strcmp(known, name) == 0) {
            number = k;
        }
    }
    if (number <= TT_EV_KIND_MAX ||
        (tool_parse_number(name, &number) && number <= TT_EV_KIND_MAX)) {
        f->kind[number] = true;
        return true;
    }
    return false;
}

typedef struct Args {
    const char *command, *run;
    bool is_json, is_filtered;  /* which options were given */
    Filter filter;
} Args;

/* One option of `tt log`. 0 or an exit status. */
static int parse_log_option(Args *a, const char *name, const char *value)
{
    Filter *f = &a->filter;
    uint64_t *number = strcmp(name, "--from") == 0 ? &f->from
                     : strcmp(name, "--to") == 0 ? &f->to
                     : strcmp(name, "--limit") == 0 ? &f->limit : NULL;
    bool is_kind = strcmp(name, "--kind") == 0;

    if (!number && !is_kind) {
        return usage_error("unknown option", name);
    }
    if (!value) {
        return usage_error("a value is missing after", name);
    }
    if (is_kind && !add_kind(f, value)) {
        return usage_error("there is no kind of event called", value);
    }
    if (number && !tool_parse_number(value, number)) {
        return usage_error("not a number", value);
    }
    a->is_filtered = true;
    return 0;
}

/* Options may stand anywhere. 0 or an exit status. */
static int parse_args(Args *a, char **args)
{
    for (; *args; args++) {
        if (strcmp(*args, "--json") == 0) {
            a->is_json = true;
        } else if (g_str_has_prefix(*args, "--")) {
            int wrong = parse_log_option(a, args[0], args[1]);
            if (wrong) {
                return wrong;
            }
            args++;
        } else if (!a->command) {
            a->command = *args;
        } else if (!a->run) {
            a->run = *args;
        } else {
            return usage_error("one RUN only, please; not understood", *args);
        }
    }
    return a->command ? 0 : usage_error("no command given", NULL);
}

static int run_command(char **argv)
{
    static const char *const commands[] = { "info", "log", "stats", "verify" };
    Args a = { .filter = { .to = UINT64_MAX, .limit = UINT64_MAX } };
    int wrong = parse_args(&a, argv);
    unsigned i = 0;

    if (wrong) {
        return wrong;
    }
    while (i < G_N_ELEMENTS(commands) && strcmp(a.command, commands[i])) {
        i++;
    }
    if (i == G_N_ELEMENTS(commands)) {
        return usage_error("unknown command", a.command);
    }
    if (a.is_json && i != 0 && i != 2) {
        return usage_error("--json is an option of tt info and stats, not of",
                           a.command);
    }
    if (a.is_filtered && i != 1) {
        return usage_error("--from, --to, --kind and --limit are options of tt "
                           "log, not of", a.command);
    }
    if (!a.run) {
        return usage_error("no run directory given", NULL);
    }
    switch (i) {
    case 0:
        return tool_info(a.run, a.is_json);
    case 1:
        return tool_log(a.run, &a.filter);
    case 2:
        return tool_stats(a.run, a.is_json);
    default:
        return tool_verify(a.run);
    }
}

int main(int argc, char **argv)
{
    int result;

    /* A reader that has seen enough (head, less) ends us quietly. */
    signal(SIGPIPE, SIG_DFL);
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 ||
                      strcmp(argv[1], "help") == 0)) {
        fputs(usage, stdout);
        return TOOL_FINE;
    }
    if (argc > 1 && strcmp(argv[1], "branch") == 0) {
        return tool_branch(argv[0], argv + 2);
    }
    result = run_command(argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "tt: cannot write the output: %s\n",
                g_strerror(errno));
        return TOOL_PROBLEM;
    }
    return result;
}
