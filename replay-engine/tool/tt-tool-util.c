/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the commands of the `tt` tool share: numbers and text for people and for
 * programs, and opening the parts of a run.
 */
#include "tt-tool.h"
#include "run/tt-cpstate.h"
#include "log/tt-logparts.h"
#include "run/tt-runlock.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- saying things ---- */

void tool_say(const char *fmt, va_list ap)
{
    g_autofree char *text = g_strdup_vprintf(fmt, ap);

    tt_replace_controls(text, '?');
    fprintf(stderr, "tt: %s\n", text);
}

void tool_add(GPtrArray *to, const char *fmt, ...)
{
    va_list ap;
    char *text;

    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_ptr_array_add(to, tt_replace_controls(text, '?'));
}

static void say(const char *fmt, ...) G_GNUC_PRINTF(1, 2);

static void say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tool_say(fmt, ap);
    va_end(ap);
}

static const char *subject;
static GString *complaints;             /* all of them; NULL: none yet */

bool tool_is_ignored(int number)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void tool_set_subject(const char *text)
{
    subject = text;
}

void tool_remember(const char *text)
{
    complaints = complaints ? g_string_append(complaints, "; ") : g_string_new(NULL);
    g_string_append_printf(complaints, "%s%s%s", subject ?: "", subject ? ": " : "", text);
}

int tool_complain(const char *fmt, ...)
{
    g_autofree char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    tool_remember(text);
    say("%s%s%s", subject ?: "", subject ? ": " : "", text);
    return TOOL_PROBLEM;
}

int tool_problem(const TtDiag *diag)
{
    return tool_complain("%s", diag->text);
}

void tool_note(const char *text)
{
    say("note: %s%s%s", subject ?: "", subject ? ": " : "", text);
}

static bool has_answered;

void tool_json_begin(void)
{
    has_answered = true;
    putchar('{');
}

void tool_json_error(void)
{
    if (!has_answered) {
        tool_json_begin();
        printf("\"error\": ");
        tool_json_string(complaints ? complaints->str : "");
        printf("}\n");
    }
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

char *tool_count(uint64_t n, const char *what)
{
    g_autofree char *number = tool_number(n);

    return g_strconcat(number, " ", what, n == 1 ? "" : "s", NULL);
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
    uint64_t value;
    char *end;

    if (!(is_hex ? g_ascii_isxdigit(text[2]) : g_ascii_isdigit(text[0]))) {
        return false;
    }
    errno = 0;
    value = g_ascii_strtoull(text, &end, is_hex ? 16 : 10);
    if (errno || *end) {
        return false;
    }
    *n = value;
    return true;
}

int tool_width(const char *name, int columns)
{
    return g_utf8_validate(name, -1, NULL) ?
        columns + (int)(strlen(name) - g_utf8_strlen(name, -1)) : columns;
}

const char *tool_json_bool(bool value)
{
    return value ? "true" : "false";
}

void tool_json_string(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);

    putchar('"');
    for (const char *p = valid; *p; p++) {
        if (*p == '"' || *p == '\\') {
            printf("\\%c", *p);
        } else if (tt_control_bytes(p)) {
            p += tt_control_bytes(p) - 1;
            printf("\\u%04x", (uint8_t)*p);
        } else {
            putchar(*p);
        }
    }
    putchar('"');
}

/* ---- runs ---- */

char *tool_gap(const char *run)
{
    uint32_t oldest, before, behind;
    g_autofree char *a = NULL, *b = NULL, *c = NULL;

    if (!tt_logparts_gap(run, &oldest, &before, &behind)) {
        return NULL;
    }
    a = tt_logparts_path(run, before + 1);
    b = tt_logparts_path(run, behind - 1);
    c = tt_logparts_path(run, oldest);
    return before + 2 == behind ?
        g_strdup_printf("'%s' is missing, so the parts before it, from '%s' on, "
                        "cannot be used", a, c) :
        g_strdup_printf("'%s' to '%s' are missing, so the parts before them, "
                        "from '%s' on, cannot be used", a, b, c);
}

static bool is_growing;

bool tool_is_growing(void)
{
    return is_growing;
}

static unsigned notes_max, n_notes;     /* 0: as many as there are */

void tool_limit_torn(unsigned max)
{
    notes_max = max;
    n_notes = 0;
}

static void note_torn(const char *text)
{
    if (!notes_max || n_notes < notes_max) {
        tool_note(text);
    } else if (n_notes == notes_max) {
        say("note: and more like this");
    }
    n_notes++;
}

static TtLogReader *open_log(const char *run, bool says_damage)
{
    TtLogReader *r = NULL;
    TtStatus status;
    TtDiag diag;
    TtIo *io;

    is_growing = tt_runlock_is_held(run);       /* before we look how far it goes */
    status = tt_logparts_open(run, &io, &diag);

    if (status == TT_OK) {
        status = tt_log_reader_open_part(io, &r, &diag);
    }
    if (status < 0 && (says_damage || !r)) {
        tool_problem(&diag);
    }
    if (status == TT_END_TORN && !(is_growing && notes_max)) {
        note_torn(is_growing ? "the run is being recorded; this shows what has been "
                               "written so far" : diag.text);
    }
    return r;
}

/* False: said what it is. */
static bool is_directory(const char *run)
{
    struct stat st;

    if (stat(run, &st) == 0 && S_ISDIR(st.st_mode)) {
        return true;
    }
    if (stat(run, &st) == 0) {
        tool_complain("'%s' is not a run: a run is a directory (tt unpack makes "
                      "one from a .ttrun file)", run);
    } else if (errno == ENOENT) {
        tool_complain("there is no run '%s'", run);
    } else {
        tool_complain("cannot access the run '%s': %s", run, g_strerror(errno));
    }
    return false;
}

bool tool_is_run(const char *run)
{
    g_autofree char *path = g_build_filename(run, "manifest", NULL);
    TtManifest m = { 0 };
    TtDiag diag;
    bool is = is_directory(run) &&
        (tt_manifest_load(path, &m, &diag) == TT_OK || !tool_problem(&diag));

    tt_manifest_cleanup(&m);
    return is;
}

TtLogReader *tool_open_log(const char *run)
{
    g_autofree char *manifest = g_build_filename(run, "manifest", NULL);
    TtDiag diag;

    if (!is_directory(run)) {
        return NULL;
    }
    if (tt_manifest_check_unpacked(manifest, &diag) != TT_OK) {
        tool_problem(&diag);
        return NULL;
    }
    return open_log(run, true);
}

TtLogReader *tool_open_exits(const char *run)
{
    g_autofree char *path = g_build_filename(run, "exits", NULL);
    TtLogReader *r = NULL;
    TtDiag diag;
    TtIo *io;

    if (!is_directory(run)) {
        return NULL;
    }
    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        tool_complain("the run '%s' has no log of exits: only a run that was recorded "
                      "under KVM and then converted has one", run);
        return NULL;
    }
    if (tt_io_posix_open(path, &io, &diag) != TT_OK ||
        tt_log_reader_open(io, &r, &diag) < 0) {
        tool_problem(&diag);
    }
    return r;
}

int tool_log_status(const TtLogReader *r)
{
    return tt_log_reader_damage(r) ? TOOL_PROBLEM : TOOL_FINE;
}

static TtLogReader *open_run(const char *run, TtManifest *m, bool says_damage)
{
    g_autofree char *path = g_build_filename(run, "manifest", NULL);
    TtLogReader *r;
    TtDiag diag;

    if (!is_directory(run)) {
        return NULL;
    }
    if (tt_manifest_load(path, m, &diag) != TT_OK) {
        tool_problem(&diag);
        return NULL;
    }
    r = open_log(run, says_damage);
    if (r && memcmp(m->uuid, tt_log_reader_uuid(r), 16) != 0) {
        tool_complain("the manifest and the log in '%s' belong to different "
                      "runs", run);
        tt_log_reader_free(r);
        r = NULL;
    }
    if (!r) {
        tt_manifest_cleanup(m);
    }
    return r;
}

TtLogReader *tool_open_run(const char *run, TtManifest *m)
{
    return open_run(run, m, true);
}

TtLogReader *tool_open_run_for_check(const char *run, TtManifest *m)
{
    return open_run(run, m, false);
}

ToolTotals tool_totals(const TtLogReader *r)
{
    ToolTotals t = { .n_segments = tt_log_reader_n_segments(r) };

    for (uint64_t i = tt_log_reader_first(r); i < tt_log_reader_end(r); i++) {
        const TtSegInfo *info = tt_log_reader_info(r, i);
        if (i == tt_log_reader_first(r)) {
            t.first_pos = info->first_pos;
            t.began_ns = info->host_ns;
        }
        t.end_pos = info->end_pos;
        t.n_events += info->n_events;
        t.host_ns = info->host_ns - MIN(t.began_ns, info->host_ns);
        t.ev_raw += info->ev_raw;
        t.ev_stored += info->ev_stored;
        t.pl_raw += info->pl_raw;
        t.pl_stored += info->pl_stored;
    }
    return t;
}

bool tool_is_in_log(TtPageStore *ps, const TtCheckpointInfo *info,
                    const TtLogReader *r)
{
    g_autofree void *blob = NULL;
    uint64_t end = tt_log_reader_end(r);
    TtCpState s;
    size_t len;

    return end > tt_log_reader_first(r) &&
        info->pos <= tt_log_reader_info(r, end - 1)->end_pos &&
        tt_pagestore_blob(ps, info->id, &blob, &len, NULL) == TT_OK &&
        tt_cpstate_decode((TtBytes) { blob, len }, &s, NULL) == TT_OK &&
        s.segment >= tt_log_reader_first(r) && s.segment < end;
}

bool tool_start(TtPageStore *ps, const TtLogReader *r, uint64_t *pos)
{
    size_t n = ps ? tt_pagestore_count(ps) : 0;
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);

    *pos = 0;
    if (!tt_log_reader_is_window(r)) {
        return true;
    }
    n = ps ? tt_pagestore_list(ps, infos, n) : 0;
    for (size_t i = 0; i < n; i++) {
        if (tool_is_in_log(ps, &infos[i], r)) {
            *pos = infos[i].pos;
            return true;
        }
    }
    return false;
}
