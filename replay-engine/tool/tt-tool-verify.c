/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt verify: has QEMU re-execute a run, the intervals between its checkpoints in
 * several processes at a time, and says what they found.
 *
 * A process gets a part of the run that begins and ends at checkpoints
 * (-tt replay,verify=FROM-TO) and prints lines that begin with "tt-verify ".
 * What else it prints is shown when something is wrong.
 */
#include "tt-tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFIX      "tt-verify "
#define JOBS_MAX    256
#define PARTS_EACH  4           /* so that none has to wait long for the last */

typedef struct Part {
    uint64_t from, to;          /* UINT64_MAX: the end of the run */
    pid_t pid;
    int fd;                     /* -1: not running */
    GString *line;              /* not whole yet */
    GPtrArray *found;           /* its lines about what is wrong */
    GString *other;             /* what else it printed */
    uint64_t n_intervals;       /* equal */
    uint64_t first_wrong, first_wrong_to;       /* UINT64_MAX: none */
    bool has_ended;
    int code;
} Part;

typedef struct Verify {
    const ToolArgs *args;
    const char *run;
    char *qemu;
    uint64_t jobs;
    bool is_quiet, is_json;
    GArray *parts;
    ToolSymbols *symbols;       /* NULL: none */
    uint64_t end_pos;
} Verify;

/* ---- parts ---- */

static Part *part_at(Verify *v, unsigned i)
{
    return &g_array_index(v->parts, Part, i);
}

static void add_part(Verify *v, uint64_t from, uint64_t to)
{
    Part p = {
        .from = from, .to = to, .fd = -1, .line = g_string_new(NULL),
        .found = g_ptr_array_new_with_free_func(g_free),
        .other = g_string_new(NULL), .first_wrong = UINT64_MAX,
    };

    g_array_append_val(v->parts, p);
}

static void part_clear(void *opaque)
{
    Part *p = opaque;

    g_string_free(p->line, true);
    g_ptr_array_free(p->found, true);
    g_string_free(p->other, true);
}

/* Cuts the run at checkpoints, into parts of like length. */
static void make_parts(Verify *v, const TtManifest *m, const ToolTotals *t,
                       const TtLogReader *r)
{
    uint64_t n_parts = v->jobs > 1 ? v->jobs * PARTS_EACH : 1;
    uint64_t step, from = 0;
    g_autofree TtCheckpointInfo *infos = NULL;
    TtPageStore *ps = NULL;
    TtDiag diag;
    size_t n = 0;

    if (n_parts > 1 &&
        tt_runstore_open(v->run, m, 0, &ps, &diag) == TT_OK) {
        n = tt_pagestore_count(ps);
        infos = g_new0(TtCheckpointInfo, n + 1);
        n = tt_pagestore_list(ps, infos, n);
        tool_start(ps, r, &from);
    }
    step = (t->end_pos - MIN(from, t->end_pos)) / n_parts + 1;
    for (size_t i = 0; i < n; i++) {
        if (infos[i].pos - from >= step && infos[i].pos > from &&
            infos[i].pos < t->end_pos && tool_is_in_log(ps, &infos[i], r)) {
            add_part(v, from, infos[i].pos);
            from = infos[i].pos;
        }
    }
    add_part(v, from, UINT64_MAX);
    tt_pagestore_free(ps);
}

/* ---- processes ---- */

/* A comma in a value of QEMU's options is doubled. */
static char *tt_value(const Verify *v, const Part *p)
{
    g_autofree char *run = g_canonicalize_filename(v->run, NULL);
    g_auto(GStrv) pieces = g_strsplit(run, ",", -1);
    g_autofree char *dir = g_strjoinv(",,", pieces);

    return p->to == UINT64_MAX ?
        g_strdup_printf("replay,dir=%s,verify=%" PRIu64 "-", dir, p->from) :
        g_strdup_printf("replay,dir=%s,verify=%" PRIu64 "-%" PRIu64, dir,
                        p->from, p->to);
}

static void child(const Verify *v, const char *value, int out)
{
    const char *const argv[] = {
        v->qemu, "-tt", value, "-nodefaults", "-display", "none", "-serial",
        "none", "-monitor", "none", NULL,
    };
    int null = open("/dev/null", O_RDONLY);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    execv(v->qemu, (char **)argv);
    fprintf(stderr, "cannot run '%s': %s\n", v->qemu, g_strerror(errno));
    _exit(127);
}

static bool start(Verify *v, Part *p)
{
    g_autofree char *value = tt_value(v, p);
    int ends[2];

    if (pipe(ends)) {
        tool_complain("cannot make a pipe: %s", g_strerror(errno));
        return false;
    }
    fflush(stdout);
    p->pid = fork();
    if (p->pid == 0) {
        close(ends[0]);
        child(v, value, ends[1]);
    }
    close(ends[1]);
    if (p->pid < 0) {
        close(ends[0]);
        tool_complain("cannot start a process: %s", g_strerror(errno));
        return false;
    }
    p->fd = ends[0];
    return true;
}

/* ---- what they say ---- */

static bool is_interval(Part *p, const char *text)
{
    uint64_t from, to;
    char how[16];

    if (sscanf(text, "interval %" SCNu64 " %" SCNu64 " %15s", &from, &to,
               how) != 3) {
        return false;
    }
    if (!strcmp(how, "equal")) {
        p->n_intervals++;
    } else if (p->first_wrong == UINT64_MAX) {
        p->first_wrong = from;
        p->first_wrong_to = to;
    }
    return true;
}

static char *in_words(const char *text)
{
    uint64_t page, pos, after;
    char pc[24];
    int rest = 0;

    if (sscanf(text, "diverged %" SCNu64 " pc %23s after %" SCNu64 " %n", &pos,
               pc, &after, &rest) == 3 && rest) {
        return g_strdup_printf("the replay is as recorded at position %" PRIu64
                               " and no longer at %" PRIu64 ", pc %s: %s",
                               after, pos, pc, text + rest);
    }

    if (sscanf(text, "nowrite page %" SCNu64, &page) == 1) {
        return g_strdup_printf("page %" PRIu64 ": no instruction of this "
                               "interval wrote what it has in the replay: an "
                               "input is missing from the log", page);
    }
    if (sscanf(text, "write page %" SCNu64 " position %" SCNu64 " %n", &page,
               &pos, &rest) == 2 && rest) {
        return g_strdup_printf("page %" PRIu64 ": what it has in the replay was "
                               "written at position %" PRIu64 ", %s", page, pos,
                               text + rest);
    }
    return g_strdup(text);
}

static void take_line(Verify *v, Part *p)
{
    g_autofree char *line = g_strdup(p->line->str);

    tool_make_harmless(line);
    if (!g_str_has_prefix(line, PREFIX)) {
        g_string_append_printf(p->other, "%s\n", line);
    } else if (g_str_has_prefix(line + strlen(PREFIX), "end ")) {
        p->has_ended = true;
        p->code = atoi(line + strlen(PREFIX) + 4);
    } else if (!is_interval(p, line + strlen(PREFIX))) {
        g_autofree char *words = in_words(line + strlen(PREFIX));

        g_ptr_array_add(p->found, tool_symbols_add(v->symbols, words));
    }
}

static void take_bytes(Verify *v, Part *p, const char *buf, ssize_t n)
{
    for (ssize_t i = 0; i < n; i++) {
        if (buf[i] == '\n') {
            take_line(v, p);
            g_string_truncate(p->line, 0);
        } else if (p->line->len < 4096) {
            g_string_append_c(p->line, buf[i]);
        }
    }
}

static void finish(Part *p)
{
    int status = 0;

    close(p->fd);
    p->fd = -1;
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!p->has_ended) {
        p->code = TOOL_PROBLEM;
    }
}

/* ---- all of them ---- */

static void report_part(const Verify *v, const Part *p)
{
    if (v->is_json || (p->code == 0 && p->has_ended)) {
        return;
    }
    if (p->first_wrong != UINT64_MAX) {
        printf("wrong between %" PRIu64 " and %" PRIu64 ":\n", p->first_wrong,
               p->first_wrong_to);
    } else {
        printf("from %" PRIu64 " on:\n", p->from);
    }
    for (unsigned i = 0; i < p->found->len; i++) {
        printf("  %s\n", (char *)p->found->pdata[i]);
    }
    if (*p->other->str) {
        g_auto(GStrv) lines = g_strsplit(p->other->str, "\n", -1);

        for (char **l = lines; *l && (**l || l[1]); l++) {
            printf("  | %s\n", *l);
        }
    }
    if (!p->has_ended) {
        printf("  QEMU ended without a result\n");
    }
    fflush(stdout);
}

/* Waits until one says something. False: an error. */
static bool serve(Verify *v)
{
    struct pollfd fds[JOBS_MAX];
    Part *who[JOBS_MAX];
    unsigned n = 0;
    char buf[4096];

    for (unsigned i = 0; i < v->parts->len && n < JOBS_MAX; i++) {
        if (part_at(v, i)->fd >= 0) {
            fds[n] = (struct pollfd) { part_at(v, i)->fd, POLLIN, 0 };
            who[n++] = part_at(v, i);
        }
    }
    if (poll(fds, n, -1) < 0) {
        return errno == EINTR;
    }
    for (unsigned i = 0; i < n; i++) {
        ssize_t got = fds[i].revents ? read(fds[i].fd, buf, sizeof(buf)) : -1;

        if (got > 0) {
            take_bytes(v, who[i], buf, got);
        } else if (fds[i].revents && (got == 0 || errno != EINTR)) {
            finish(who[i]);
            report_part(v, who[i]);
        }
    }
    return true;
}

static bool run_all(Verify *v)
{
    unsigned next = 0, running;

    do {
        running = 0;
        for (unsigned i = 0; i < next; i++) {
            running += part_at(v, i)->fd >= 0;
        }
        while (running < v->jobs && next < v->parts->len) {
            if (!start(v, part_at(v, next++))) {
                return false;
            }
            running++;
        }
        if (running && !serve(v)) {
            return false;
        }
    } while (running);
    return true;
}

/* ---- the sum ---- */

typedef struct Sum {
    uint64_t n_intervals, n_wrong;
    uint64_t first, first_to;
    bool is_incomplete;
} Sum;

static Sum sum_up(Verify *v)
{
    Sum s = { .first = UINT64_MAX };

    for (unsigned i = 0; i < v->parts->len; i++) {
        const Part *p = part_at(v, i);

        s.n_intervals += p->n_intervals;
        s.is_incomplete |= p->code == TOOL_PROBLEM;
        if (p->first_wrong != UINT64_MAX) {
            s.n_wrong++;
            if (p->first_wrong < s.first) {
                s.first = p->first_wrong;
                s.first_to = p->first_wrong_to;
            }
        }
    }
    return s;
}

static void print_json(Verify *v, const Sum *s)
{
    bool any = false;

    printf("{\"run\": ");
    tool_json_string(v->run);
    printf(", \"exact\": %s, \"complete\": %s, \"intervals\": %" PRIu64
           ", \"processes\": %u, \"end\": %" PRIu64, s->n_wrong ? "false" :
           "true", s->is_incomplete ? "false" : "true", s->n_intervals,
           v->parts->len, v->end_pos);
    if (s->n_wrong) {
        printf(", \"first_wrong\": [%" PRIu64 ", %" PRIu64 "]", s->first,
               s->first_to);
    }
    printf(", \"found\": [");
    for (unsigned i = 0; i < v->parts->len; i++) {
        const Part *p = part_at(v, i);

        for (unsigned k = 0; k < p->found->len; k++) {
            printf("%s", any ? ", " : "");
            tool_json_string(p->found->pdata[k]);
            any = true;
        }
        if (p->code && *p->other->str) {
            printf("%s", any ? ", " : "");
            tool_json_string(p->other->str);
            any = true;
        }
    }
    printf("]}\n");
}

static void print_text(Verify *v, const Sum *s)
{
    g_autofree char *n = tool_number(s->n_intervals);
    g_autofree char *end = tool_number(v->end_pos);

    if (s->n_wrong) {
        g_autofree char *from = tool_number(s->first);
        g_autofree char *to = tool_number(s->first_to);

        printf("The run does not replay exactly: the first wrong interval is "
               "%s to %s. (Of each part of the run that was verified the first "
               "is named.)\n", from, to);
    } else if (s->is_incomplete) {
        printf("Not all of the run could be verified; what could be is "
               "exact.\n");
    } else if (!v->is_quiet) {
        printf("The run replays exactly: %s intervals, up to position %s.\n",
               n, end);
    }
}

static int verify(Verify *v, const TtManifest *m, TtLogReader *r)
{
    ToolTotals t = tool_totals(r);
    Sum s;

    if (m->features & TT_FEATURE_SCRUBBED) {
        return tool_complain("the run '%s' was scrubbed when it was packed and "
                             "cannot be replayed: ask for the whole one",
                             v->run);
    }
    if (!t.n_segments) {
        return tool_complain("the run '%s' is empty: its recorder ended before "
                             "anything was sealed", v->run);
    }
    v->end_pos = t.end_pos;
    make_parts(v, m, &t, r);
    if (!run_all(v)) {
        return TOOL_PROBLEM;
    }
    s = sum_up(v);
    if (v->is_json) {
        print_json(v, &s);
    } else {
        print_text(v, &s);
    }
    return s.n_wrong ? TOOL_DIVERGED : s.is_incomplete ? TOOL_PROBLEM :
        TOOL_FINE;
}

static int prepare(Verify *v, const ToolArgs *a)
{
    const char *symbols = tool_value(a, "--symbols");

    if (!tool_number_option(a, "-j", 1, &v->jobs)) {
        return TOOL_USAGE;
    }
    if (v->jobs < 1 || v->jobs > JOBS_MAX) {
        return tool_usage(a->command, "-j takes a number from 1 to %u",
                          JOBS_MAX);
    }
    v->qemu = tool_value(a, "--qemu") ?
        g_canonicalize_filename(tool_value(a, "--qemu"), NULL) :
        tool_find_qemu(a->program);
    if (!v->qemu) {
        return tool_complain("there is no qemu-system-x86_64 beside this "
                             "program: say where it is with --qemu");
    }
    if (!g_file_test(v->qemu, G_FILE_TEST_IS_EXECUTABLE)) {
        return tool_complain("'%s' is no program that can be run", v->qemu);
    }
    return symbols ? tool_symbols_load(symbols, &v->symbols) : TOOL_FINE;
}

int tool_verify(const ToolArgs *a)
{
    Verify v = {
        .args = a, .run = a->operand[0],
        .is_quiet = tool_has(a, "--quiet"), .is_json = tool_has(a, "--json"),
        .parts = g_array_new(false, true, sizeof(Part)),
    };
    int result = prepare(&v, a);
    TtManifest m;
    TtLogReader *r;

    g_array_set_clear_func(v.parts, part_clear);
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
    g_array_free(v.parts, true);
    g_free(v.qemu);
    return result;
}
