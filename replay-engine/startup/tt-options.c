/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The -tt option. What it says goes to the rooms that it is for.
 */
#include "qemu/osdep.h"
#include "startup/tt-options.h"
#include "accel-tt/tcg/tt-fetch.h"
#include "accel-tt/tt-schedule.h"
#include "accel-tt/tt-token.h"
#include "branch/tt-branch.h"
#include "control/tt-values.h"
#include "convert/tt-convert.h"
#include "flight/tt-crash.h"
#include "hw-tt/memory/tt-guard.h"
#include "log/tt-log.h"
#include "monitor-cmds/tt-mux-keys.h"
#include "record/tt-record-options.h"
#include "replay/tt-stop.h"
#include "run/tt-runstore.h"
#include "session/tt-session.h"
#include "startup/tt-startup.h"
#include "travel/tt-cprestore.h"
#include "tt/hooks.h"
#include "undo/tt-undo.h"
#include "tt-options-data-int.h"
#include "tt-tasks-int.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/option.h"
#include "qemu/config-file.h"
#include "qemu/cutils.h"
#include "qemu/help_option.h"

static bool at_end_given, is_branch;

static const struct {
    const char *name;
    unsigned bit;
} remedies[] = {
    { "exception-count", TT_OMIT_EXCEPTION_COUNT },
    { "unwind-count", TT_OMIT_UNWIND_COUNT },
    { "fixed-tlb", TT_OMIT_FIXED_TLB },
    { "bt-flags", TT_OMIT_BT_FLAGS },
    { "rdmsr-io", TT_OMIT_RDMSR_IO },
    { "unhalt", TT_OMIT_UNHALT },
    { "cpu-reset", TT_OMIT_CPU_RESET },
    { "dma-invalidate", TT_OMIT_DMA_INVALIDATE },
    { "a20", TT_OMIT_A20 },
    { "ignne", TT_OMIT_IGNNE },
    { "device-regs", TT_OMIT_DEVICE_REGS },
    { "bounce", TT_OMIT_BOUNCE },
    { "fetch", TT_OMIT_FETCH },
    { "resume-flag", TT_OMIT_RESUME_FLAG },
    { "into", TT_OMIT_INTO },
    { "second-fetch", TT_OMIT_SECOND_FETCH },
    { "victims", TT_OMIT_VICTIMS },
    { "watch-tlb", TT_OMIT_WATCH_TLB },
    { "unkept", TT_OMIT_UNKEPT },
    { "near-tlb", TT_OMIT_NEAR_TLB },
    { "search-skip", TT_OMIT_SEARCH_SKIP },
    { "near", TT_OMIT_NEAR },
    { "map-commit", TT_OMIT_MAP_COMMIT },
    { "branch-counts", TT_OMIT_BRANCH_COUNTS },
};

static void parse_omit(const char *list)
{
    g_auto(GStrv) names = g_strsplit(list, ":", -1);

    for (char **n = names; *n; n++) {
        size_t i;

        for (i = 0; i < ARRAY_SIZE(remedies); i++) {
            if (!strcmp(*n, remedies[i].name)) {
                tt_omit |= remedies[i].bit;
                break;
            }
        }
        if (i == ARRAY_SIZE(remedies)) {
            error_report("-tt: x-omit knows no remedy '%s'", *n);
            exit(1);
        }
    }
}

static QemuOptsList tt_opts = {
    .name = "tt",
    .implied_opt_name = "mode",
    .head = QTAILQ_HEAD_INITIALIZER(tt_opts.head),
    .desc = {
        { .name = "mode", .type = QEMU_OPT_STRING,
          .help = "record, replay, branch or ready" },
        { .name = "dir", .type = QEMU_OPT_STRING,
          .help = "the run's directory; branch: of the run to branch from" },
        { .name = "at", .type = QEMU_OPT_STRING,
          .help = "branch: the full checkpoint to start from: its number, or @NAME" },
        { .name = "to", .type = QEMU_OPT_STRING,
          .help = "branch: directory of the new run" },
        { .name = "force", .type = QEMU_OPT_BOOL,
          .help = "branch: start even if disk images have changed" },
        { .name = "max-size", .type = QEMU_OPT_SIZE,
          .help = "record, branch: end the recording at this size; with last, keep "
                  "less" },
        { .name = "last", .type = QEMU_OPT_STRING,
          .help = "record, branch: keep only the last 30s, 10min, 2h, 1d or the like" },
        { .name = "save-on-panic", .type = QEMU_OPT_BOOL,
          .help = "record, branch: with last, save the window when the guest panics "
                  "(default: on)" },
        { .name = "panic-pattern", .type = QEMU_OPT_STRING,
          .help = "record, branch: regular expression; a matching line on the first "
                  "serial port means a panic (default: what Linux prints; empty: none)" },
        { .name = "at-end", .type = QEMU_OPT_STRING,
          .help = "replay: at the end of the run, 'stop' or 'exit'" },
        { .name = "checkpoint-memory", .type = QEMU_OPT_SIZE,
          .help = "replay: memory for checkpoints (default: 1G)" },
        { .name = "step-memory", .type = QEMU_OPT_SIZE,
          .help = "replay: memory for the undo log of single steps (default: 4M; 0: none)" },
        { .name = "checkpoint-interval", .type = QEMU_OPT_STRING,
          .help = "record, branch: seconds between checkpoints (default: 25; 0: none)" },
        { .name = "convert-jobs", .type = QEMU_OPT_NUMBER,
          .help = "replay: processes that convert a run recorded under KVM at the same "
                  "time (default: one for each processor, if memory "
                  "has room)" },
        { .name = "part", .type = QEMU_OPT_STRING,
          .help = "internal, for -tt replay: the part of a run that is converted" },
        { .name = "on-error", .type = QEMU_OPT_STRING,
          .help = "record, branch: when the log cannot be written, 'stop' the VM "
                  "(default) or 'continue' unrecorded" },
        { .name = "chaos", .type = QEMU_OPT_BOOL,
          .help = "record, branch: which vCPU runs, and for how long, is random" },
        { .name = "disk", .type = QEMU_OPT_STRING,
          .help = "record: where the guest's disk writes go: 'private': to the run "
                  "(default); 'commit': to the run, and to the images at the end; "
                  "'image': to the images" },
        { .name = "disk-reads", .type = QEMU_OPT_STRING,
          .help = "record, branch: of what the guest reads from its disks, log the data "
                  "('log', default) or only where it is stored ('store')" },
        { .name = "frames", .type = QEMU_OPT_STRING,
          .help = "record, branch: directory of the group's frame stores, on this host: "
                  "what other recorded VMs send is named in the log" },
        { .name = "payload", .type = QEMU_OPT_STRING,
          .help = "record, branch: with frames, 'reference' (default), or 'both': the log "
                  "has all bytes, too" },
        { .name = "full", .type = QEMU_OPT_BOOL,
          .help = "record, branch: make each checkpoint a full one, from which a branch "
                  "can start (default: off)" },
        { .name = "undo", .type = QEMU_OPT_STRING,
          .help = "record, branch: 'console': let 'tt undo' take back what is typed" },
        { .name = "undo-pause", .type = QEMU_OPT_STRING,
          .help = "record, branch: with undo, seconds without typing after which a new "
                  "input begins (default: 1)" },
        { .name = "sync", .type = QEMU_OPT_STRING,
          .help = "record, branch: seconds between flushes of the log to disk (default: "
                  "0, only at the end)" },
        { .name = "check-interval", .type = QEMU_OPT_NUMBER,
          .help = "record, branch: positions between digests of the vCPUs (default 8388608)" },
        { .name = "guard", .type = QEMU_OPT_BOOL,
          .help = "record, branch: find writes to RAM that are not logged, and report "
                  "who made them (slow)" },
        { .name = "verify", .type = QEMU_OPT_STRING,
          .help = "replay: compare the run with its checkpoints, then exit: 'all' or "
                  "FROM-TO" },
        { .name = "find", .type = QEMU_OPT_STRING,
          .help = "replay: search, then exit: 'all' or FROM-TO (for 'tt find')" },
        { .name = "find-condition", .type = QEMU_OPT_STRING,
          .help = "replay: the condition that find searches for" },
        { .name = "find-how", .type = QEMU_OPT_STRING,
          .help = "replay: changes, monotone, written, later-part or limit=N, joined by ':'" },
        { .name = "plugin", .type = QEMU_OPT_STRING,
          .help = "replay: run a TCG plugin over 'all' or FROM-TO, then exit (for 'tt "
                  "run-plugin')" },
        { .name = "plugin-load", .type = QEMU_OPT_STRING,
          .help = "replay: the plugin and its arguments, as for -plugin" },
        { .name = "origin", .type = QEMU_OPT_STRING,
          .help = "replay: find where values came from, 'POS EXPRESSION;...', then exit "
                  "(for 'tt origin')" },
        { .name = "origin-how", .type = QEMU_OPT_STRING,
          .help = "replay: depth=N, nodes=N or within=N, joined by ':'" },
        { .name = "trace", .type = QEMU_OPT_STRING,
          .help = "record, replay: file for a branch trace; a replay then exits" },
        { .name = "trace-part", .type = QEMU_OPT_STRING,
          .help = "record, replay: part to trace: 'all' (default) or FROM-TO" },
        { .name = "x-omit", .type = QEMU_OPT_STRING,
          .help = "for tests: leave out these remedies" },
        { .name = "x-short-memory", .type = QEMU_OPT_STRING,
          .help = "for tests: fail the Nth allocation of a restore (N+: and later)" },
        { .name = "x-unlogged", .type = QEMU_OPT_NUMBER,
          .help = "for tests: leave this device write to RAM out of the log" },
        { }
    },
};

static int refuse_with_ready(void *opaque, const char *name, const char *value,
                             Error **errp)
{
    if (strcmp(name, "mode")) {
        tt_refuse("-tt ready takes no '%s': leave it out; what to record, and where, is "
                  "for 'tt record start' (in QMP tt-record-start)", name);
    }
    return 0;
}

static void parse_mode(QemuOpts *opts)
{
    const char *mode = qemu_opt_get(opts, "mode");

    if (mode && !strcmp(mode, "record")) {
        tt_set_mode(TT_RECORD);
        tt_is_ready = true;
    } else if (mode && !strcmp(mode, "ready")) {
        qemu_opt_foreach(opts, refuse_with_ready, NULL, NULL);
        tt_is_ready = tt_iothreads_fold = true;
    } else if (mode && !strcmp(mode, "replay")) {
        tt_set_mode(TT_REPLAY);
    } else if (mode && !strcmp(mode, "convert")) {
        tt_set_mode(TT_REPLAY);
        tt_convert_set_on();
    } else if (mode && !strcmp(mode, "branch")) {
        tt_set_mode(TT_RECORD);
        is_branch = true;
    } else if (mode) {
        tt_refuse("-tt takes 'record', 'replay', 'branch' or 'ready' first, not "
                  "'%s'", mode);
    } else {
        tt_refuse("-tt takes 'record', 'replay', 'branch' or 'ready' first");
    }
}

static void parse_interval(const char *seconds)
{
    double s = TT_CHECKPOINT_INTERVAL_MS / 1000;

    if ((seconds && qemu_strtod_finite(seconds, NULL, &s)) ||
        !tt_interval_parse(s, &tt_record_options.checkpoint_interval_ms)) {
        tt_refuse("-tt: %s, not '%s'", tt_interval_help, seconds);
    }
}

static void parse_convert(QemuOpts *opts)
{
    const char *part = qemu_opt_get(opts, "part");

    tt_convert_jobs = qemu_opt_get_number(opts, "convert-jobs", 0);
    if (tt_convert_jobs < 0 || tt_convert_jobs > 64) {
        tt_refuse("-tt: convert-jobs takes a number from 0 (one for each processor, if "
                  "memory has room) to 64");
    }
    if (part && tt_convert_is_on()) {
        tt_convert_part_option(part);
    } else if (part) {
        tt_refuse("-tt: part is internal: -tt replay converts a run by itself");
    }
}

static void parse_window(QemuOpts *opts)
{
    const char *last = qemu_opt_get(opts, "last");
    const char *pattern = qemu_opt_get(opts, "panic-pattern");
    TtRecordOptions *o = &tt_record_options;
    Error *err = NULL;

    if ((last && !tt_window_parse(last, &o->window_ns, &err)) ||
        !tt_window_fits(o->window_ns, o->checkpoint_interval_ms, &err) ||
        !tt_crash_set_pattern(pattern ?: tt_panic_pattern_default, &err)) {
        tt_refuse("-tt: %s", error_get_pretty(err));
    }
    if (!last && qemu_opt_get(opts, "save-on-panic")) {
        tt_refuse("-tt: %s", tt_save_on_panic_help);
    }
    o->save_on_panic = qemu_opt_get_bool(opts, "save-on-panic", true);
}

static void parse_on_error(const char *what)
{
    if (what && strcmp(what, "stop") && strcmp(what, "continue")) {
        tt_refuse("-tt: on-error takes 'stop' or 'continue', not '%s'", what);
    }
    tt_record_options.stop_on_error = !what || !strcmp(what, "stop");
}

static void only_in(int mode, QemuOpts *opts, const char *name)
{
    if (qemu_opt_get(opts, name) && tt_mode != mode && !tt_convert_is_on()) {
        tt_refuse("-tt: %s is valid with %s only", name,
                  mode == TT_RECORD ? "record and branch" : "replay");
    }
}

static void check_modes(QemuOpts *opts)
{
    static const char *const of_record[] = {
        "max-size", "checkpoint-interval", "last", "save-on-panic", "panic-pattern",
        "chaos", "on-error", "guard", "check-interval", "sync", "disk", "disk-reads",
        "frames", "payload", "full", "undo", "undo-pause", "x-unlogged",
    };
    static const char *const of_replay[] = { "at-end", "checkpoint-memory", "step-memory",
                                             "convert-jobs", "verify", "find", "plugin",
                                             "origin" };

    for (size_t i = 0; i < ARRAY_SIZE(of_record); i++) {
        only_in(TT_RECORD, opts, of_record[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(of_replay); i++) {
        only_in(TT_REPLAY, opts, of_replay[i]);
    }
}

static void only_in_branch(QemuOpts *opts, const char *name)
{
    if (qemu_opt_get(opts, name) && !is_branch) {
        tt_refuse("-tt: %s is valid with branch only", name);
    }
}

static void parse_sync(const char *seconds)
{
    double s = 0;

    if (seconds && (qemu_strtod_finite(seconds, NULL, &s) || s < 0 || s > 86400)) {
        tt_refuse("-tt: sync takes seconds, from 0 (no flushes) to 86400, not '%s'", seconds);
    }
    tt_record_options.sync_ms = s > 0 ? MAX(s * 1000, 1) : 0;
}

#define UNDO_PAUSE_MAX 3600
#define UNDO_NAME_MAX 240           /* of 255; bytes */

/* Each undo makes a branch, which names its parent, and adds -undo-N to its name. */
static void check_name_for_undo(void)
{
    g_autofree char *name = g_path_get_basename(tt_session.dir ?: ".");
    TtDiag diag;

    if (strlen(name) > UNDO_NAME_MAX) {
        tt_refuse("-tt: the name of the run is too long for -undo-N behind it: with "
                  "undo=console it has at most %d bytes", UNDO_NAME_MAX);
    }
    if (tt_runstore_check_name(name, &diag) != TT_OK) {
        tt_refuse("-tt: %s", diag.text);
    }
}

/* When all else is known. */
static void parse_undo(QemuOpts *opts)
{
    const char *what = qemu_opt_get(opts, "undo");
    const char *pause = qemu_opt_get(opts, "undo-pause");
    const TtRecordOptions *opt = &tt_record_options;
    double s = 1;

    if (pause && (qemu_strtod_finite(pause, NULL, &s) || s < 0.001 || s > UNDO_PAUSE_MAX)) {
        tt_refuse("-tt: undo-pause takes seconds, from 0.001 to %d, not '%s'",
                  UNDO_PAUSE_MAX, pause);
    }
    if (pause && !what) {
        tt_refuse("-tt: undo-pause is valid with undo=console only");
    }
    if (!what) {
        return;
    }
    if (strcmp(what, "console")) {
        tt_refuse("-tt: undo takes 'console', not '%s'", what);
    }
    if (opt->window_ns || opt->disks != TT_DISKS_PRIVATE ||
        qemu_opt_get_bool(opts, "guard", false)) {
        tt_refuse("-tt: undo=console cannot be combined with %s",
                  opt->window_ns ? "last=: it needs checkpoints that last= deletes" :
                  opt->disks == TT_DISKS_PRIVATE ?
                  "guard=on: that works only once in a process" :
                  opt->disks == TT_DISKS_COMMIT ?
                  "disk=commit: only one history can be written into the images" :
                  "disk=image: the images would have to be rolled back");
    }
    check_name_for_undo();
    tt_record_options.undo = true;
    tt_undo_option(s * 1000);
    tt_mux_keys_init();
}

static void parse_check_interval(QemuOpts *opts)
{
    tt_record_options.check_interval = qemu_opt_get_number(opts, "check-interval",
                                                           TT_CHECK_INTERVAL);
    if (tt_record_options.check_interval < TT_CHECK_INTERVAL_MIN ||
        tt_record_options.check_interval > TT_LOG_POS_MAX) {
        tt_refuse("-tt: check-interval takes a number of positions from %d to %" PRIu64,
                  TT_CHECK_INTERVAL_MIN, TT_LOG_POS_MAX);
    }
}

static void parse_short_memory(const char *text)
{
    const char *rest;
    uint64_t nth;

    if (!text) {
        return;
    }
    if (qemu_strtou64(text, &rest, 10, &nth) || (*rest && strcmp(rest, "+"))) {
        tt_refuse("-tt: x-short-memory takes N or N+, not '%s'", text);
    }
    tt_checkpoints_set_short_memory(nth, !*rest);
}

static void parse_dirs(QemuOpts *opts)
{
    const char *dir = qemu_opt_get(opts, "dir");
    const char *at = qemu_opt_get(opts, "at");

    only_in_branch(opts, "at");
    only_in_branch(opts, "to");
    only_in_branch(opts, "force");
    if ((dir && !*dir) || !g_strcmp0(qemu_opt_get(opts, "to"), "")) {
        tt_refuse("-tt: %s= names no directory: give a path, or leave it out for one with "
                  "the date as its name", dir && !*dir ? "dir" : "to");
    }
    tt_set_dir(is_branch ? qemu_opt_get(opts, "to") : dir);
    if (!is_branch) {
        return;
    }
    if (!dir || !*dir || !at || !*at) {
        tt_refuse("-tt branch needs a run and one of its full checkpoints: -tt "
                  "branch,dir=RUN,at=ID");
    }
    tt_record_options.dir_option = " (to=)";
    tt_branch_option(dir, at, qemu_opt_get_bool(opts, "force", false));
}

void tt_option_parse(const char *optarg)
{
    static bool seen;
    QemuOpts *opts;
    const char *omit, *at_end;

    if (is_help_option(optarg)) {
        qemu_opts_print_help(&tt_opts, true);
        exit(0);
    }
    if (seen) {
        tt_refuse("-tt can be given only once: a process records or replays one run");
    }
    seen = true;
    signal(SIGXFSZ, SIG_IGN);           /* it is an error like a full disk */
    opts = qemu_opts_parse_noisily(&tt_opts, optarg, true);
    if (!opts) {
        exit(1);
    }
    parse_mode(opts);
    if (!tt_on()) {
        return;                         /* ready */
    }
    check_modes(opts);
    tt_options_parse_data(opts);
    tt_record_options.full = qemu_opt_get_bool(opts, "full", false);
    parse_sync(qemu_opt_get(opts, "sync"));
    parse_check_interval(opts);
    tt_guard_option(qemu_opt_get_bool(opts, "guard", false));
    parse_on_error(qemu_opt_get(opts, "on-error"));
    tt_schedule_chaos = qemu_opt_get_bool(opts, "chaos", false);
    tt_tasks_parse(opts);
    parse_interval(qemu_opt_get(opts, "checkpoint-interval"));
    tt_convert_interval_ms = tt_record_options.checkpoint_interval_ms;
    parse_convert(opts);
    parse_window(opts);
    parse_dirs(opts);
    tt_options_parse_frames(opts);
    tt_record_options.max_size_bytes = qemu_opt_get_size(opts, "max-size", 0);
    tt_options_parse_memory(opts);
    at_end = qemu_opt_get(opts, "at-end");
    if (at_end) {
        if (strcmp(at_end, "stop") && strcmp(at_end, "exit")) {
            tt_refuse("-tt: at-end takes 'stop' or 'exit', not '%s'", at_end);
        }
        at_end_given = true;
        tt_at_end_exit = !strcmp(at_end, "exit");
    }
    parse_short_memory(qemu_opt_get(opts, "x-short-memory"));
    tt_record_options.unlogged = qemu_opt_get_number(opts, "x-unlogged", 0);
    omit = qemu_opt_get(opts, "x-omit");
    if (omit) {
        parse_omit(omit);
    }
    parse_undo(opts);
    if (tt_mode == TT_REPLAY && !tt_session.dir) {
        tt_refuse("-tt replay needs the directory of a run: -tt replay,dir=DIR");
    }
    tt_iothreads_fold = tt_recording();
    tt_token_start();
    tt_fetch_start();
}

bool tt_options_are_branch(void)
{
    return is_branch;
}

bool tt_options_say_at_end(void)
{
    return at_end_given;
}
