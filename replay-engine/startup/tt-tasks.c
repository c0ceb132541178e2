/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tasks of a replay that no user moves: options of -tt, of which there is one at most.
 */
#include "qemu/osdep.h"
#include "find/tt-find.h"
#include "origin/tt-origin.h"
#include "plugin/tt-plugin.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "startup/tt-startup.h"
#include "travel/tt-retrace.h"
#include "tt/hooks.h"
#include "verify/tt-verify.h"
#include "tt-tasks-int.h"
#include "qapi/error.h"
#include "qemu/option.h"

bool tt_tasks_is_one(void)
{
    return tt_verify_is_on() || tt_find_is_on() || tt_plugin_is_on() ||
        tt_origin_is_on() || tt_retrace_is_on();
}

static void parse_verify(QemuOpts *opts)
{
    const char *part = qemu_opt_get(opts, "verify");

    if (part && !tt_verify_option(part)) {
        tt_refuse("-tt: verify takes 'all' or two positions, FROM-TO, not '%s'", part);
    }
}

static bool is_new_file(const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);

    return *path && !g_file_test(path, G_FILE_TEST_EXISTS) &&
        g_file_test(dir, G_FILE_TEST_IS_DIR) && !access(dir, W_OK);
}

static void parse_trace(QemuOpts *opts)
{
    const char *path = qemu_opt_get(opts, "trace");
    const char *part = qemu_opt_get(opts, "trace-part");
    Error *err = NULL;

    if (part && !path) {
        tt_refuse("-tt: trace-part is valid with trace=FILE only");
    }
    if (path && tt_verify_is_on()) {
        tt_refuse("-tt: verify and trace exclude each other: leave one out");
    }
    if (path && !is_new_file(path)) {
        tt_refuse("-tt: trace takes a file that does not exist yet, in a writable "
                  "directory, not '%s'", path);
    }
    if (path && !tt_path_is_outside(path, &err)) {
        tt_refuse("-tt: trace=%s", error_get_pretty(err));
    }
    if (path && !tt_trace_option(path, part)) {
        tt_refuse("-tt: trace-part takes 'all' or two positions, FROM-TO, not "
                  "'%s'", part);
    }
}

static void parse_find(QemuOpts *opts)
{
    const char *part = qemu_opt_get(opts, "find");
    Error *err = NULL;

    if (!part && (qemu_opt_get(opts, "find-condition") ||
                  qemu_opt_get(opts, "find-how"))) {
        tt_refuse("-tt: find-condition and find-how need find=all or find=FROM-TO");
    }
    if (part && (tt_verify_is_on() || qemu_opt_get(opts, "trace"))) {
        tt_refuse("-tt: find, verify and trace exclude each other: give only one");
    }
    if (part && !tt_find_option(part, qemu_opt_get(opts, "find-condition"),
                                qemu_opt_get(opts, "find-how"), &err)) {
        tt_refuse("-tt: %s", error_get_pretty(err));
    }
}

static void parse_plugin(QemuOpts *opts)
{
    const char *part = qemu_opt_get(opts, "plugin");
    const char *load = qemu_opt_get(opts, "plugin-load");
    Error *err = NULL;

    if (!part && load) {
        tt_refuse("-tt: plugin-load needs plugin=all or plugin=FROM-TO");
    }
    if (part && (tt_verify_is_on() || tt_find_is_on() || qemu_opt_get(opts, "trace"))) {
        tt_refuse("-tt: plugin excludes verify, find and trace: give only one");
    }
    if (part && !tt_plugin_option(part, load, &err)) {
        tt_refuse("-tt: %s", error_get_pretty(err));
    }
}

static void parse_origin(QemuOpts *opts)
{
    const char *asked = qemu_opt_get(opts, "origin");
    const char *how = qemu_opt_get(opts, "origin-how");
    Error *err = NULL;

    if (!asked && how) {
        tt_refuse("-tt: origin-how needs origin='POS EXPRESSION'");
    }
    if (asked && (tt_verify_is_on() || tt_find_is_on() || tt_plugin_is_on() ||
                  qemu_opt_get(opts, "trace"))) {
        tt_refuse("-tt: origin excludes verify, find, plugin and trace: give only one");
    }
    if (asked && !tt_origin_option(asked, how, &err)) {
        tt_refuse("-tt: %s", error_get_pretty(err));
    }
}

void tt_tasks_parse(QemuOpts *opts)
{
    parse_verify(opts);
    parse_find(opts);
    parse_trace(opts);
    parse_plugin(opts);
    parse_origin(opts);
}
