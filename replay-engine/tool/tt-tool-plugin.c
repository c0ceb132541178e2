/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tt run-plugin: a plugin of QEMU's TCG over a part of a run. QEMU replays pieces of it,
 * several at a time, each with a plugin of its own (tt-tool-part.c).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE         /* memmem */
#endif
#include "tt-tool-lcov.h"
#include "tt-tool-plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the plugin ---- */

/* In QEMU's way: up to the first comma that is not doubled. *@args begins with it. */
static char *file_of(const char *text, const char **args)
{
    GString *file = g_string_new(NULL);

    while (*text && (*text != ',' || text[1] == ',')) {
        text += *text == ',';
        g_string_append_c(file, *text++);
    }
    *args = text;
    return g_string_free(file, false);
}

static const char *const ours[] = {
    "count", "functions", "stacks", "coverage", "races", "syscalls", "branches", NULL
};

/* A word without a slash and a dot names one of ours. */
static char *path_of(const ToolArgs *a, const char *file)
{
    g_autofree char *name = NULL;

    if (strpbrk(file, "/.")) {
        return tool_whole_path(file);
    }
    if (!g_strv_contains(ours, file)) {
        g_autofree char *all = g_strjoinv(", ", (char **)ours);

        tool_complain("there is no plugin '%s': there are %s; of another one give the file, "
                      "with a / in front", file, all);
        return NULL;
    }
    name = g_strdup_printf("tt-plugins/tt-%s.so", file);
    return tool_find_beside(a->program, name);
}

static bool has_text(const char *bytes, size_t len, const char *text)
{
    return memmem(bytes, len, text, strlen(text));
}

/* QEMU looks when the replay has come to its place, which may be late. */
static bool is_plugin(const char *path)
{
    g_autoptr(GError) err = NULL;
    GMappedFile *f = NULL;
    bool is = false;

    if (!g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
        g_autofree char *all = g_strjoinv(", ", (char **)ours);

        tool_complain("there is no file '%s': give a plugin's, or one of %s", path, all);
        return false;
    }
    f = g_mapped_file_new(path, false, &err);
    if (!f) {
        tool_complain("%s", err->message);
        return false;
    }
    is = g_mapped_file_get_length(f) &&
        has_text(g_mapped_file_get_contents(f), g_mapped_file_get_length(f),
                 "qemu_plugin_install");
    g_mapped_file_unref(f);
    if (!is) {
        tool_complain("'%s' is not a plugin of QEMU: it has no qemu_plugin_install", path);
    }
    return is;
}

/* QEMU would make "x=on" of a word. */
static bool are_pairs(const char *args)
{
    g_auto(GStrv) words = g_strsplit(*args ? args + 1 : "", ",", -1);

    for (char **w = words; *w; w++) {
        if (**w == '=' || !strchr(*w, '=')) {
            tool_complain("an argument of a plugin is NAME=VALUE, not '%s'", *w);
            return false;
        }
    }
    return true;
}

static bool choose_plugin(ToolPlugin *p, const ToolArgs *a)
{
    g_autofree char *file = NULL, *path = NULL, *escaped = NULL;
    const char *args;

    file = file_of(a->operand[1], &args);
    path = path_of(a, file);
    if (!path || !is_plugin(path) || (!strpbrk(file, "/.") && !are_pairs(args))) {
        return false;
    }
    escaped = tool_escaped(path);
    p->load = g_strconcat(escaped, args, NULL);
    p->is_ours = !strpbrk(file, "/.");
    p->is_races = !strcmp(file, "races");
    p->is_one_pass = p->is_races || !strcmp(file, "stacks");
    return true;
}

/* ---- the parts ---- */

static bool make_rooms(ToolPlugin *p)
{
    g_autoptr(GError) err = NULL;
    bool many = p->replays.parts->len > 1;

    p->scratch = p->replays.slurm ? g_strdup(tool_slurm_dir(p->replays.slurm)) :
        g_dir_make_tmp("tt-plugin-XXXXXX", &err);
    if (!p->scratch) {
        if (err) {
            tool_complain("%s", err->message);
        }
        return false;
    }
    for (unsigned i = 0; i < p->replays.parts->len; i++) {
        ToolPart *part = p->replays.parts->pdata[i];

        part->log = g_strdup_printf("%s/said-%u", p->scratch, i);
        /* Files that a plugin writes itself must not clash with those of another. */
        part->dir = many ? g_strdup_printf("%s/%u", p->scratch, i) : NULL;
        if (part->dir && g_mkdir(part->dir, 0700)) {
            tool_complain("cannot make a directory in '%s'", p->scratch);
            return false;
        }
    }
    return true;
}

/* False: the plugin wrote files of its own, and nobody can put them together. */
static bool clean_up(ToolPlugin *p)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->replays.parts->len && p->scratch; i++) {
        ToolPart *part = p->replays.parts->pdata[i];

        n += part->dir ? tool_remove_directory(part->dir) : 0;
    }
    if (p->scratch && !p->is_kept) {
        tool_remove_directory(p->scratch);
    }
    return !n;
}

static void ended(void *opaque, ToolPart *p)
{
}

static int replay(ToolPlugin *p)
{
    int result = TOOL_PROBLEM;

    p->replays.plugin = p->load;
    p->replays.is_over = tool_catch_signals();
    if (make_rooms(p) && tool_parts_run(&p->replays, ended, p)) {
        p->is_interrupted = *p->replays.is_over;
        result = tool_plugin_say(p);
    }
    if (!clean_up(p) && result == TOOL_FINE) {
        result = tool_complain("the plugin wrote files of its own, in each of %u "
                               "processes: leave -j out, and there is one set of them",
                               p->replays.parts->len);
    }
    return result;
}

/* ---- the command line ---- */

static int take_options(ToolPlugin *p, const ToolArgs *a)
{
    int result = tool_take_part(a, &p->from, &p->to);

    if (result != TOOL_FINE) {
        return result;
    }
    if (!tool_number_option(a, "--offset", 0, &p->offset)) {
        return TOOL_USAGE;
    }
    if (tool_has(a, "--offset") && !tool_has(a, "--symbols")) {
        return tool_usage(a->command, "--offset is added to the addresses of --symbols");
    }
    return tool_take_jobs(a, &p->replays);
}

/* Before the replay, which may take long. It is made anew at the end. */
static bool can_make(const char *file)
{
    int fd;

    if (file && g_file_test(file, G_FILE_TEST_EXISTS)) {
        tool_complain("'%s' exists already", file);
        return false;
    }
    if (!file) {
        return true;
    }
    if (!tool_is_fit(file)) {
        return false;
    }
    fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        tool_complain("cannot make '%s': %s", file, g_strerror(errno));
        return false;
    }
    close(fd);
    unlink(file);
    return true;
}

static int check_lcov(const ToolPlugin *p, const ToolArgs *a)
{
    const char *symbols = tool_value(a, "--symbols");

    if (strcmp(a->operand[1], "coverage") || !symbols) {
        return tool_usage(a->command, "--lcov needs the plugin 'coverage', and --symbols "
                          "with a program that was compiled with -g");
    }
    if (!g_strcmp0(p->lcov, tool_value(a, "--out"))) {
        return tool_usage(a->command, "--lcov and --out name one file");
    }
    if (!tool_lcov_is_built()) {
        return tool_complain("--lcov is not available: this tt was built without libdw");
    }
    return tool_lcov_check(symbols) ? TOOL_FINE : TOOL_PROBLEM;
}

static int prepare(ToolPlugin *p, const ToolArgs *a)
{
    const char *symbols = tool_value(a, "--symbols");
    int result = take_options(p, a);

    p->lcov = tool_value(a, "--lcov");
    if (result == TOOL_FINE && p->lcov) {
        result = check_lcov(p, a);
    }
    if (result != TOOL_FINE) {
        return result;
    }
    if (!can_make(tool_value(a, "--out")) || !can_make(p->lcov)) {
        return TOOL_PROBLEM;
    }
    p->replays.qemu = tool_find_qemu(a);
    if (!p->replays.qemu || !choose_plugin(p, a)) {
        return TOOL_PROBLEM;
    }
    if (p->is_one_pass && (p->replays.jobs > 1 || p->replays.slurm)) {
        return tool_usage(a->command, "%s looks at the part from its beginning to its "
                          "end, in one process: leave out %s",
                          p->is_races ? "races" : "stacks",
                          p->replays.slurm ? "--on" : "-j");
    }
    result = symbols && !p->lcov ? tool_symbols_load(symbols, &p->symbols) : TOOL_FINE;
    return result == TOOL_FINE && p->is_races && !tool_races_load(p) ? TOOL_PROBLEM : result;
}

static int run_in(ToolPlugin *p, const TtManifest *m, const TtLogReader *r)
{
    ToolTotals t = tool_totals(r);
    int result;

    if (!tool_is_replayable(p->run, m, r)) {
        return TOOL_PROBLEM;
    }
    t.first_pos = tool_first(p->run, m, r);
    result = tool_fit_part(&t, p->from, &p->to);
    if (result != TOOL_FINE) {
        return result;
    }
    tool_cut_for(p->replays.parts, p->run, m, r, p->from, p->to, p->replays.jobs);
    return replay(p);
}

int tool_run_plugin(const ToolArgs *a)
{
    ToolPlugin p = {
        .args = a, .run = a->operand[0],
        .replays = {
            .run = a->operand[0],
            .parts = g_ptr_array_new_with_free_func((GDestroyNotify)tool_part_free),
        },
        .is_json = tool_has(a, "--json"), .is_quiet = tool_has(a, "--quiet"),
    };
    int result = prepare(&p, a);
    TtManifest m;
    TtLogReader *r;

    if (result == TOOL_FINE) {
        r = tool_open_run(p.run, &m);
        result = TOOL_PROBLEM;
        if (r) {
            result = run_in(&p, &m, r);
            tt_manifest_cleanup(&m);
            tt_log_reader_free(r);
        }
    }
    tool_replays_cleanup(&p.replays);
    tool_symbols_free(p.symbols);
    tool_races_free(p.races);
    g_free(p.scratch);
    g_free(p.load);
    return result;
}
