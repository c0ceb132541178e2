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
#include "find/tt-find.h"
#include "flight/tt-crash.h"
#include "hw-tt/memory/tt-guard.h"
#include "log/tt-log.h"
#include "record/tt-record-options.h"
#include "replay/tt-stop.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "startup/tt-startup.h"
#include "travel/tt-cprestore.h"
#include "travel/tt-cptable.h"
#include "travel/tt-retrace.h"
#include "tt/hooks.h"
#include "undo/tt-undo.h"
#include "verify/tt-verify.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/option.h"
#include "qemu/config-file.h"
#include "qemu/cutils.h"
#include "qemu/units.h"
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
            error_report("-tt: x-omit: there is no remedy '%s'", *n);
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
          .help = "run directory; branch: of the run to start in" },
        { .name = "at", .type = QEMU_OPT_STRING,
          .help = "branch: full checkpoint to start at: its number, or @NAME" },
        { .name = "to", .type = QEMU_OPT_STRING,
          .help = "branch: directory of the new run" },
        { .name = "force", .type = QEMU_OPT_BOOL,
          .help = "branch: start even if disk images have changed" },
        { .name = "max-size", .type = QEMU_OPT_SIZE,
          .help = "record, branch: end the recording when it is this large; "
                  "with last: keep less" },
        { .name = "last", .type = QEMU_OPT_STRING,
          .help = "record, branch: keep only the last part: 30s, 10min, 2h, 1d "
                  "or the like" },
        { .name = "save-on-panic", .type = QEMU_OPT_BOOL,
          .help = "record, branch: with last: save the window when the guest "
                  "panics (default on)" },
        { .name = "panic-pattern", .type = QEMU_OPT_STRING,
          .help = "record, branch: a line on the first serial port that matches "
                  "this means a panic (default: what Linux prints; empty: none)" },
        { .name = "at-end", .type = QEMU_OPT_STRING,
          .help = "replay: stop or exit at the end of the run" },
        { .name = "checkpoint-memory", .type = QEMU_OPT_SIZE,
          .help = "replay: memory for checkpoints (default 1G)" },
        { .name = "checkpoint-interval", .type = QEMU_OPT_STRING,
          .help = "record, branch: seconds between checkpoints (default 25, "
                  "0: none)" },
        { .name = "on-error", .type = QEMU_OPT_STRING,
          .help = "record, branch: stop the VM when the log cannot be written, "
                  "or continue unrecorded" },
        { .name = "chaos", .type = QEMU_OPT_BOOL,
          .help = "record, branch: several vCPUs take turns at random" },
        { .name = "disk", .type = QEMU_OPT_STRING,
          .help = "record: where the guest's writes to disks go: private, to the run "
                  "(default); commit, at the end to the images, too; image, to the "
                  "images" },
        { .name = "disk-reads", .type = QEMU_OPT_STRING,
          .help = "record, branch: what the guest reads from its disks is in the log "
                  "(default), or only its place in the store: log, store" },
        { .name = "full", .type = QEMU_OPT_BOOL,
          .help = "record, branch: a branch can begin at each checkpoint (default off)" },
        { .name = "undo", .type = QEMU_OPT_STRING,
          .help = "record, branch: console: what is typed can be undone, with tt undo" },
        { .name = "undo-pause", .type = QEMU_OPT_STRING,
          .help = "with undo: an input begins after so many seconds without one "
                  "(default 1)" },
        { .name = "sync", .type = QEMU_OPT_STRING,
          .help = "record, branch: seconds between flushes of the log to disk "
                  "(default 0: when it ends)" },
        { .name = "check-interval", .type = QEMU_OPT_NUMBER,
          .help = "record, branch: positions between digests of the vCPUs "
                  "(default 8388608)" },
        { .name = "guard", .type = QEMU_OPT_BOOL,
          .help = "record, branch: find writes to RAM that are not logged, and "
                  "name the writer (slow)" },
        { .name = "verify", .type = QEMU_OPT_STRING,
          .help = "replay: compare with all checkpoints, and exit: all, or "
                  "FROM-TO" },
        { .name = "find", .type = QEMU_OPT_STRING,
          .help = "replay: search, and exit: all, or FROM-TO; see tt find" },
        { .name = "find-condition", .type = QEMU_OPT_STRING,
          .help = "what is searched for" },
        { .name = "find-how", .type = QEMU_OPT_STRING,
          .help = "changes, monotone, later-part, limit=N; ':' between them" },
        { .name = "trace", .type = QEMU_OPT_STRING,
          .help = "file for a branch trace; a replay then ends on its own" },
        { .name = "trace-part", .type = QEMU_OPT_STRING,
          .help = "what is traced: all (default), or FROM-TO" },
        { .name = "x-omit", .type = QEMU_OPT_STRING,
          .help = "test only: leave remedies out" },
        { .name = "x-short-memory", .type = QEMU_OPT_STRING,
          .help = "test only: N, or N+: memory fails in a restore" },
        { .name = "x-unlogged", .type = QEMU_OPT_NUMBER,
          .help = "test only: this device's write to RAM is not logged" },
        { }
    },
};

static int refuse_with_ready(void *opaque, const char *name, const char *value,
                             Error **errp)
{
    if (strcmp(name, "mode")) {
        tt_refuse("-tt ready: it takes no '%s': 'tt record start' says what and where",
                  name);
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
    } else {
        tt_refuse("-tt takes 'record', 'replay', 'branch' or 'ready' first, not '%s'",
                  mode ?: "nothing");
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

static void parse_window(QemuOpts *opts)
{
    const char *last = qemu_opt_get(opts, "last");
    const char *pattern = qemu_opt_get(opts, "panic-pattern");
    Error *err = NULL;

    if ((last && !tt_window_parse(last, &tt_record_options.window_ns, &err)) ||
        !tt_window_fits(tt_record_options.window_ns, tt_record_options.checkpoint_interval_ms, &err) ||
        !tt_crash_set_pattern(pattern ?: tt_panic_pattern_default, &err)) {
        tt_refuse("-tt: %s", error_get_pretty(err));
    }
    if (!last && qemu_opt_get(opts, "save-on-panic")) {
        tt_refuse("-tt: %s", tt_save_on_panic_help);
    }
    tt_record_options.save_on_panic = qemu_opt_get_bool(opts, "save-on-panic", true);
}

static void parse_on_error(const char *what)
{
    if (what && strcmp(what, "stop") && strcmp(what, "continue")) {
        tt_refuse("-tt: on-error is 'stop' or 'continue', not '%s'", what);
    }
    tt_record_options.stop_on_error = !what || !strcmp(what, "stop");
}

static void parse_disk(const char *where)
{
    if (where && is_branch) {
        tt_refuse("-tt: 'disk' makes sense with 'record' only: a branch writes to its own "
                  "run");
    }
    if (where && strcmp(where, "private") && strcmp(where, "commit") &&
        strcmp(where, "image")) {
        tt_refuse("-tt: disk is 'private', 'commit' or 'image', not '%s'", where);
    }
    tt_record_options.disks = !where || !strcmp(where, "private") ? TT_DISKS_PRIVATE :
        strcmp(where, "commit") ? TT_DISKS_IMAGE : TT_DISKS_COMMIT;
}

static void parse_disk_reads(const char *where)
{
    if (where && strcmp(where, "log") && strcmp(where, "store")) {
        tt_refuse("-tt: disk-reads is 'log' or 'store', not '%s'", where);
    }
    tt_record_options.names_reads = where && !strcmp(where, "store");
    if (tt_record_options.names_reads && tt_record_options.disks != TT_DISKS_PRIVATE) {
        tt_refuse("-tt: disk-reads=store needs disk=private: the images that the guest "
                  "reads must stay as they are");
    }
}

static void only_in(int mode, QemuOpts *opts, const char *name)
{
    if (qemu_opt_get(opts, name) && tt_mode != mode) {
        tt_refuse("-tt: '%s' makes sense with '%s' only", name,
                  mode == TT_RECORD ? "record" : "replay");
    }
}

static void check_modes(QemuOpts *opts)
{
    static const char *const of_record[] = {
        "max-size", "checkpoint-interval", "last", "save-on-panic", "panic-pattern",
        "chaos", "on-error", "guard", "check-interval", "sync", "disk", "disk-reads",
        "full", "undo", "undo-pause", "x-unlogged",
    };
    static const char *const of_replay[] = { "at-end", "checkpoint-memory", "verify",
                                             "find" };

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
        tt_refuse("-tt: '%s' makes sense with 'branch' only", name);
    }
}

static void parse_sync(const char *seconds)
{
    double s = 0;

    if (seconds && (qemu_strtod_finite(seconds, NULL, &s) || s < 0 || s > 86400)) {
        tt_refuse("-tt: sync takes seconds up to 86400, 0 for none, not '%s'", seconds);
    }
    tt_record_options.sync_ms = s > 0 ? MAX(s * 1000, 1) : 0;
}

#define UNDO_PAUSE_MAX 3600

/* When all else is known. */
static void parse_undo(QemuOpts *opts)
{
    const char *what = qemu_opt_get(opts, "undo");
    const char *pause = qemu_opt_get(opts, "undo-pause");
    const TtRecordOptions *opt = &tt_record_options;
    double s = 1;

    if (pause && (qemu_strtod_finite(pause, NULL, &s) || s < 0.001 ||
                  s > UNDO_PAUSE_MAX)) {
        tt_refuse("-tt: undo-pause takes seconds, from 0.001 to %d, not '%s'",
                  UNDO_PAUSE_MAX, pause);
    }
    if (pause && !what) {
        tt_refuse("-tt: undo-pause says when an input begins: add undo=console");
    }
    if (!what) {
        return;
    }
    if (strcmp(what, "console")) {
        tt_refuse("-tt: undo is 'console', not '%s'", what);
    }
    if (opt->window_ns || opt->disks != TT_DISKS_PRIVATE ||
        qemu_opt_get_bool(opts, "guard", false)) {
        tt_refuse("-tt: undo=console does not go with %s: leave that out",
                  opt->window_ns ? "last=, whose checkpoints do not stay" :
                  opt->disks == TT_DISKS_PRIVATE ? "guard=on, which works once in a process" :
                  opt->disks == TT_DISKS_COMMIT ?
                  "disk=commit: only one history can go into the images" :
                  "disk=image: the images would have to go back");
    }
    tt_record_options.undo = true;
    tt_undo_option(s * 1000);
}

static void parse_check_interval(QemuOpts *opts)
{
    tt_record_options.check_interval = qemu_opt_get_number(opts, "check-interval",
                                                           TT_CHECK_INTERVAL);
    if (tt_record_options.check_interval < TT_CHECK_INTERVAL_MIN ||
        tt_record_options.check_interval > TT_LOG_POS_MAX) {
        tt_refuse("-tt: check-interval takes positions, from %d to %" PRIu64,
                  TT_CHECK_INTERVAL_MIN, TT_LOG_POS_MAX);
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
        tt_refuse("-tt: trace-part says which part is traced: add trace=FILE");
    }
    if (path && tt_verify_is_on()) {
        tt_refuse("-tt: a replay either verifies or traces: leave verify or trace out");
    }
    if (path && !is_new_file(path)) {
        tt_refuse("-tt: trace takes the name of a file that does not exist yet, in a "
                  "directory that can be written, not '%s'", path);
    }
    if (path && !tt_path_is_outside(path, &err)) {
        tt_refuse("-tt: trace=%s", error_get_pretty(err));
    }
    if (path && !tt_trace_option(path, part)) {
        tt_refuse("-tt: trace-part takes 'all', or two positions, FROM-TO, not "
                  "'%s'", part);
    }
}

static void parse_find(QemuOpts *opts)
{
    const char *part = qemu_opt_get(opts, "find");
    Error *err = NULL;

    if (!part && (qemu_opt_get(opts, "find-condition") ||
                  qemu_opt_get(opts, "find-how"))) {
        tt_refuse("-tt: find-condition says what to search for: add find=all");
    }
    if (part && (tt_verify_is_on() || qemu_opt_get(opts, "trace"))) {
        tt_refuse("-tt: a replay searches, verifies or traces: leave two of find, verify "
                  "and trace out");
    }
    if (part && !tt_find_option(part, qemu_opt_get(opts, "find-condition"),
                                qemu_opt_get(opts, "find-how"), &err)) {
        tt_refuse("-tt: %s", error_get_pretty(err));
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
    tt_set_dir(is_branch ? qemu_opt_get(opts, "to") : dir);
    if (!is_branch) {
        return;
    }
    if (!dir || !*dir || !at || !*at) {
        tt_refuse("-tt branch needs the run and a full checkpoint of it: "
                  "-tt branch,dir=RUN,at=ID");
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
        tt_refuse("-tt may be given once only: a process records or replays one run");
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
    parse_disk(qemu_opt_get(opts, "disk"));
    parse_disk_reads(qemu_opt_get(opts, "disk-reads"));
    tt_record_options.full = qemu_opt_get_bool(opts, "full", false);
    parse_sync(qemu_opt_get(opts, "sync"));
    parse_check_interval(opts);
    tt_guard_option(qemu_opt_get_bool(opts, "guard", false));
    parse_on_error(qemu_opt_get(opts, "on-error"));
    tt_schedule_chaos = qemu_opt_get_bool(opts, "chaos", false);
    if (qemu_opt_get(opts, "verify") && !tt_verify_option(qemu_opt_get(opts, "verify"))) {
        tt_refuse("-tt: verify takes 'all', or two positions, FROM-TO, not '%s'",
                  qemu_opt_get(opts, "verify"));
    }
    parse_find(opts);
    parse_trace(opts);
    parse_interval(qemu_opt_get(opts, "checkpoint-interval"));
    parse_window(opts);
    parse_dirs(opts);
    tt_record_options.max_size_bytes = qemu_opt_get_size(opts, "max-size", 0);
    tt_checkpoints_bytes = qemu_opt_get_size(opts, "checkpoint-memory", GiB);
    at_end = qemu_opt_get(opts, "at-end");
    if (at_end) {
        if (strcmp(at_end, "stop") && strcmp(at_end, "exit")) {
            tt_refuse("-tt: at-end is 'stop' or 'exit', not '%s'", at_end);
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
        tt_refuse("-tt replay needs the run directory: -tt replay,dir=DIR");
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
