/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt page: a run as one file for a browser, which needs no server and no network.
 *
 * A run may come from anybody. What it says is in the page as JSON, in which no markup can
 * be; the page's script puts it in as text; and the page names the scripts that it has by
 * their hashes, so that the browser runs no other.
 */
#include "tt-tool-page.h"
#include "run/tt-marks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the page's parts ---- */

/* Made by scripts/build, beside this program: ours, and the chart library's. */
enum { LIB_CSS, LIB_JS, OUR_CSS, OUR_JS, N_PARTS };

static const char *const part_names[] = {
    [LIB_CSS] = "uPlot.min.css", [LIB_JS] = "uPlot.iife.min.js",
    [OUR_CSS] = "page.css", [OUR_JS] = "page.js",
};

typedef struct Parts {
    char *text[N_PARTS];
} Parts;

static bool load_from(Parts *p, const char *program)
{
    g_autofree char *dir = program ? g_path_get_dirname(program) : NULL;
    bool ok = dir;

    for (unsigned i = 0; ok && i < N_PARTS; i++) {
        g_autofree char *path = g_build_filename(dir, "tt-page", part_names[i], NULL);

        g_clear_pointer(&p->text[i], g_free);
        ok = g_file_get_contents(path, &p->text[i], NULL, NULL);
    }
    return ok;
}

static void cleanup_parts(Parts *p)
{
    for (unsigned i = 0; i < N_PARTS; i++) {
        g_free(p->text[i]);
    }
}

static bool load_parts(Parts *p, const char *program)
{
    g_autofree char *called = g_find_program_in_path(program);
    g_autofree char *real = g_file_read_link("/proc/self/exe", NULL);

    if (load_from(p, called) || load_from(p, real)) {
        return true;
    }
    tool_complain("the chart library uPlot is missing beside this program "
                  "(tt-page/%s): scripts/build fetches it with npm; install npm, and "
                  "run scripts/build again", part_names[LIB_JS]);
    return false;
}

/* ---- JSON that can stand in HTML ---- */

static void put_text(GString *s, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text ? text : "", -1);

    g_string_append_c(s, '"');
    for (const char *p = valid; *p; p++) {
        if (strchr("\"\\<>&'", *p) || (uint8_t)*p < ' ' || *p == 0x7f) {
            g_string_append_printf(s, "\\u%04x", (uint8_t)*p);
        } else {
            g_string_append_c(s, *p);
        }
    }
    g_string_append_c(s, '"');
}

static void put_member(GString *s, const char *name, const char *text)
{
    g_string_append_printf(s, "\"%s\":", name);
    put_text(s, text);
    g_string_append_c(s, ',');
}

/* Positions may be beyond what a number of JavaScript holds. */
static void put_pos(GString *s, uint64_t pos)
{
    g_string_append_printf(s, "\"pos\":\"%" PRIu64 "\"", pos);
}

static void put_bins(GString *s, const PageLog *p, const uint64_t *bin)
{
    g_string_append_c(s, '[');
    for (unsigned i = 0; i < p->n_bins; i++) {
        g_string_append_printf(s, "%s%" PRIu64, i ? "," : "", bin[i]);
    }
    g_string_append_c(s, ']');
}

/* ---- what the page shows ---- */

static void put_series(GString *s, const PageLog *p)
{
    bool has_any = false;

    g_string_append(s, "\"bins\":[");
    for (unsigned i = 0; i < p->n_bins; i++) {
        g_string_append_printf(s, "%s%" PRIu64, i ? "," : "",
                               MIN(p->start + i * p->width + p->width / 2, p->end));
    }
    g_string_append(s, "],\"kinds\":[");
    for (unsigned k = 0; k <= TT_EV_KIND_MAX; k++) {
        if (p->count[k]) {
            g_autofree char *number = g_strdup_printf("kind %u", k);
            const char *name = tt_event_kind_name(k);

            g_string_append(s, has_any ? ",{" : "{");
            put_member(s, "name", name ? name : number);
            g_string_append(s, "\"counts\":");
            put_bins(s, p, p->count[k]);
            g_string_append_c(s, '}');
            has_any = true;
        }
    }
    g_string_append(s, "],\"io\":");
    put_bins(s, p, p->io);
    g_string_append(s, ",\"dma\":");
    put_bins(s, p, p->dma);
    g_string_append(s, ",\"log\":");
    put_bins(s, p, p->log_bytes);
}

static void put_times(GString *s, const PageLog *p)
{
    const PageTime *all = (const PageTime *)p->times->data;

    g_string_append(s, ",\"time\":{\"pos\":[");
    for (unsigned i = 0; i < p->times->len; i++) {
        g_string_append_printf(s, "%s%" PRIu64, i ? "," : "", all[i].pos);
    }
    g_string_append(s, "],\"s\":[");
    for (unsigned i = 0; i < p->times->len; i++) {
        g_string_append_printf(s, "%s%" PRIu64 ".%03" PRIu64, i ? "," : "",
                               all[i].ns / 1000000000, all[i].ns / 1000000 % 1000);
    }
    g_string_append(s, "]}");
}

static void put_console(GString *s, const PageLog *p)
{
    g_string_append(s, ",\"console\":[");
    for (unsigned i = 0; i < p->lines->len; i++) {
        const PageLine *l = p->lines->pdata[i];

        g_string_append(s, i ? ",{" : "{");
        put_member(s, "text", l->text);
        put_pos(s, l->pos);
        g_string_append_c(s, '}');
        if (i + 1 == PAGE_LINES_FIRST && p->n_lines_left_out) {
            g_string_append_printf(s, ",{\"text\":\"(%" PRIu64 " lines are left out)\",",
                                   p->n_lines_left_out);
            put_pos(s, l->pos);
            g_string_append_c(s, '}');
        }
    }
    g_string_append_c(s, ']');
}

/* @infos: the newest of them if there are too many, and the first. */
static void put_checkpoints(GString *s, const char *run, const TtManifest *m)
{
    TtPageStore *store = NULL;
    bool is_open = tt_runstore_open(run, m, 0, &store, NULL) == TT_OK;
    size_t n = is_open ? tt_pagestore_count(store) : 0;
    g_autofree TtCheckpointInfo *infos = g_new0(TtCheckpointInfo, n + 1);
    bool has_any = false;

    n = is_open ? tt_pagestore_list(store, infos, n) : 0;
    g_string_append(s, ",\"checkpoints\":[");
    for (size_t i = 0; i < n; i++) {
        const TtCheckpointInfo *c = &infos[i];

        if (i && i + PAGE_LIST < n) {
            continue;
        }
        g_string_append_printf(s, "%s{\"id\":%" PRIu32 ",\"ns\":%" PRIu64 ",\"full\":%s,"
                               "\"pinned\":%s,", has_any ? "," : "", c->id, c->host_ns,
                               tool_json_bool(c->flags & TT_CHECKPOINT_FULL),
                               tool_json_bool(c->flags & TT_CHECKPOINT_PINNED));
        put_pos(s, c->pos);
        g_string_append_c(s, '}');
        has_any = true;
    }
    g_string_append_c(s, ']');
    tt_pagestore_free(store);
}

typedef struct List {
    GString *s;
    unsigned n;
} List;

static void put_mark(void *opaque, const char *name, uint64_t pos)
{
    List *l = opaque;

    if (l->n < PAGE_LIST) {
        g_string_append(l->s, l->n++ ? ",{" : "{");
        put_member(l->s, "name", name);
        put_pos(l->s, pos);
        g_string_append_c(l->s, '}');
    }
}

static void put_branch(void *opaque, const char *kind, const char *path,
                       uint32_t checkpoint, uint64_t pos)
{
    List *l = opaque;

    if (l->n < PAGE_LIST) {
        g_string_append(l->s, l->n++ ? ",{" : "{");
        put_member(l->s, "kind", kind);
        put_member(l->s, "path", path);
        g_string_append_printf(l->s, "\"checkpoint\":%" PRIu32 ",", checkpoint);
        put_pos(l->s, pos);
        g_string_append_c(l->s, '}');
    }
}

/* An earlier picture is named by its number. */
static void put_shots(GString *s, const PageShots *shots)
{
    g_string_append_c(s, ',');
    put_member(s, "shotsNote", shots->note);
    g_string_append(s, "\"shots\":[");
    for (unsigned i = 0; i < shots->all->len; i++) {
        const PageShot *shot = &g_array_index(shots->all, PageShot, i);

        g_string_append_printf(s, "%s{\"as\":%u,\"width\":%u,\"height\":%u,",
                               i ? "," : "", shot->same_as, shot->width, shot->height);
        put_member(s, "png", shot->png);
        put_pos(s, shot->pos);
        g_string_append_c(s, '}');
    }
    g_string_append_c(s, ']');
}

static void put_lists(GString *s, const char *run, const TtManifest *m)
{
    List marks = { .s = s }, branches = { .s = s };
    TtDiag unused;

    put_checkpoints(s, run, m);
    g_string_append(s, ",\"marks\":[");
    tt_marks_of_run(run, put_mark, &marks, &unused);
    g_string_append(s, "],\"branches\":[");
    tool_each_branch(run, m, put_branch, &branches);
    g_string_append_c(s, ']');
}

static GString *make_json(const char *run, const TtManifest *m, const TtLogReader *r,
                          const PageLog *p, const PageShots *shots)
{
    ToolTotals t = tool_totals(r);
    GString *s = g_string_new("{");

    put_member(s, "run", run);
    put_member(s, "started", *m->started ? m->started : "(no date)");
    put_member(s, "command", m->command_line);
    put_member(s, "damage", p->damage.status == TT_OK ? "" : p->damage.text);
    g_string_append_printf(s, "\"start\":\"%" PRIu64 "\",\"end\":\"%" PRIu64 "\",\"events\":"
                           "%" PRIu64 ",\"ns\":%" PRIu64 ",\"bytes\":%" PRIu64 ",",
                           p->start, p->end, t.n_events, t.host_ns,
                           tt_log_reader_bytes(r));
    put_series(s, p);
    put_times(s, p);
    put_console(s, p);
    put_lists(s, run, m);
    put_shots(s, shots);
    g_string_append_c(s, '}');
    return s;
}

/* ---- the file ---- */

/* As a browser compares it. */
static char *hash_of(const char *script)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    uint8_t digest[32];
    gsize len = sizeof(digest);

    g_checksum_update(sum, (const guchar *)script, strlen(script));
    g_checksum_get_digest(sum, digest, &len);
    return g_base64_encode(digest, len);
}

static GString *make_page(const Parts *parts, const char *run, const GString *json)
{
    g_autofree char *lib = hash_of(parts->text[LIB_JS]);
    g_autofree char *ours = hash_of(parts->text[OUR_JS]);
    g_autofree char *valid = g_utf8_make_valid(run, -1);
    g_autofree char *title = g_markup_escape_text(valid, -1);
    GString *s = g_string_sized_new(json->len + (256u << 10));

    g_string_append_printf(s, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset="
        "\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
        "'none'; script-src 'sha256-%s' 'sha256-%s'; style-src 'unsafe-inline'; img-src "
        "data:; base-uri 'none'; form-action 'none'\">\n<title>%s</title>\n<style>%s</style>\n"
        "<style>%s</style></head><body>\n", lib, ours, title, parts->text[LIB_CSS],
        parts->text[OUR_CSS]);
    g_string_append(s,
        "<h1 id=\"run\"></h1><div id=\"facts\"></div><div id=\"damage\"></div>\n"
        "<div id=\"command\"><span class=\"hint\">Click into a chart, or on a line: here "
        "is the command that goes there. Drag to zoom, double-click for all.</span></div>\n"
        "<h2>Time</h2><div id=\"time\"></div>\n"
        "<h2>Events by kind</h2><div id=\"events\"></div>\n"
        "<h2>I/O and log</h2><div id=\"rates\"></div>\n"
        "<h2>Screen</h2><div id=\"shots\"></div>\n"
        "<h2>Checkpoints</h2><div class=\"rows\" id=\"checkpoints\"></div>\n"
        "<h2>Marks</h2><div class=\"rows\" id=\"marks\"></div>\n"
        "<h2>Branches</h2><div class=\"rows\" id=\"branches\"></div>\n"
        "<h2>Console</h2><div class=\"rows\" id=\"console\"></div>\n"
        "<script type=\"application/json\" id=\"data\">");
    g_string_append_len(s, json->str, json->len);
    g_string_append_printf(s, "</script>\n<script>%s</script>\n<script>%s</script>\n"
                           "</body></html>\n", parts->text[LIB_JS], parts->text[OUR_JS]);
    return s;
}

/* Another file of that name stays as it is. Asked before a replay that may take long, too. */
static bool can_write(const char *path, bool is_forced)
{
    g_autofree char *dir = g_path_get_dirname(path);
    struct stat st;
    bool exists = lstat(path, &st) == 0;

    if (exists && !is_forced) {
        tool_complain("'%s' exists: give another name, or --force", path);
    } else if (exists && !S_ISREG(st.st_mode)) {
        tool_complain("'%s' is not a regular file: give another name", path);
    } else if (!g_file_test(dir, G_FILE_TEST_IS_DIR)) {
        tool_complain("cannot write '%s': there is no directory '%s'", path, dir);
    } else if (access(dir, W_OK)) {
        tool_complain("cannot write '%s': %s", path, g_strerror(errno));
    } else {
        return true;
    }
    return false;
}

static bool is_stdout(const char *path)
{
    return !strcmp(path, "-");
}

static int write_page(const char *path, const GString *page, bool is_forced)
{
    GError *err = NULL;
    int result = TOOL_FINE;

    if (is_stdout(path)) {
        fwrite(page->str, 1, page->len, stdout);    /* errors: tt says at its end */
        return TOOL_FINE;
    }
    if (!can_write(path, is_forced)) {
        return TOOL_PROBLEM;
    }
    if (!g_file_set_contents(path, page->str, page->len, &err)) {
        const char *why = strrchr(err->message, ':');   /* before it, a name of glib's */

        result = tool_complain("cannot write '%s'%s", path, why ?: "");
        g_error_free(err);
    }
    return result;
}

/* ---- the command ---- */

/* Nothing that went wrong may be taken for all of it. */
static int result_of(const TtLogReader *r, const PageLog *p, const PageShots *shots)
{
    int result = TOOL_FINE;

    if (p->damage.status != TT_OK) {
        result = tool_log_status(r) == TOOL_FINE ? tool_problem(&p->damage) : TOOL_PROBLEM;
    }
    if (shots->note && shots->result == TOOL_FINE) {
        tool_note(shots->note);
    } else if (shots->note && (shots->result == TOOL_DIVERGED || result == TOOL_FINE)) {
        tool_complain("%s", shots->note);
        result = shots->result;
    }
    return result;
}

static int make(const ToolArgs *a, const char *run, const char *out, const Parts *parts,
                unsigned n_shots)
{
    PageLog p = { 0 };
    PageShots shots;
    TtManifest m;
    TtLogReader *r = tool_open_run(run, &m);
    int result = TOOL_PROBLEM;

    if (!r) {
        return TOOL_PROBLEM;
    }
    page_shots_init(&shots);
    page_log_read(&p, r, tool_first(run, &m, r), tool_totals(r).end_pos);
    if (!n_shots || (tool_is_replayable(run, &m, r) &&
                     page_shots_take(&shots, a, run, &m, &p, n_shots))) {
        GString *json = make_json(run, &m, r, &p, &shots);
        GString *page = make_page(parts, run, json);

        result = write_page(out, page, tool_has(a, "--force"));
        g_string_free(json, true);
        g_string_free(page, true);
    }
    if (result == TOOL_FINE) {
        result = result_of(r, &p, &shots);
    }
    page_shots_cleanup(&shots);
    page_log_cleanup(&p);
    tt_manifest_cleanup(&m);
    tt_log_reader_free(r);
    return result;
}

int tool_page(const ToolArgs *a)
{
    const char *run = a->operand[0], *out = tool_value(a, "-o");
    Parts parts = { 0 };
    uint64_t n_shots;
    int result;

    if (!out || !*out) {
        return tool_usage(a->command, "-o is missing: give the file to write");
    }
    if (!tool_number_option(a, "--screenshots", 0, &n_shots)) {
        return TOOL_USAGE;
    }
    if (n_shots > PAGE_SHOTS) {
        return tool_usage(a->command, "--screenshots makes %u pictures at most", PAGE_SHOTS);
    }
    if (is_stdout(out) && fcntl(STDOUT_FILENO, F_GETFD) < 0) {
        return tool_complain("standard output is closed: -o FILE writes to a file");
    }
    if (!is_stdout(out) && (!tool_is_fit(out) || !can_write(out, tool_has(a, "--force")))) {
        return TOOL_PROBLEM;
    }
    result = load_parts(&parts, a->program) ? make(a, run, out, &parts, n_shots) :
        TOOL_PROBLEM;
    cleanup_parts(&parts);
    return result;
}
