/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine of this process: the -tt option, what is refused, how the VM stops,
 * and the end.
 */
#include "qemu/osdep.h"
#include "accel-tt/tcg/tt-fetch.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpus.h"
#include "branch/tt-branch.h"
#include "control/tt-recordable.h"
#include "control/tt-values.h"
#include "flight/tt-crash.h"
#include "gdbstub-tt/tt-gdb.h"
#include "hw-tt/memory/tt-guard.h"
#include "hw-tt/screen/tt-screen.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "monitor-cmds/tt-events.h"
#include "record/tt-record.h"
#include "replay/tt-replay.h"
#include "replay/tt-stop.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "startup/tt-options.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-past.h"
#include "travel/tt-retrace.h"
#include "travel/tt-travel.h"
#include "tt/hooks.h"
#include "verify/tt-verify.h"
#include "qapi/error.h"
#include "qemu/main-loop.h"
#include "qemu/error-report.h"
#include "qemu/option.h"
#include "qemu/config-file.h"
#include "qemu/cutils.h"
#include "qemu/units.h"
#include "qemu/help_option.h"
#include "qobject/qdict.h"
#include "qemu-version.h"
#include "qapi/qapi-types-ui.h"
#include "hw/boards.h"
#include "monitor/monitor.h"
#include "migration/blocker.h"
#include "system/runstate.h"
#include "system/system.h"
#include "system/tcg.h"
#include "system/cpus.h"
#include "system/cpu-timers.h"
#include "qom/object.h"

#include <sys/resource.h>

#define TT_PICTURE_BYTES_MAX (256 * MiB)

int tt_mode;
unsigned tt_omit;
TtEngine tt = {
    .sync_next = UINT64_MAX, .step_to = UINT64_MAX, .stop_on_error = true,
};

static struct {
    bool at_end_given, is_branch;
} opt;

/* ---- the option ---- */

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
    { "search-skip", TT_OMIT_SEARCH_SKIP },
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
            error_report("-tt: there is no remedy '%s' to leave out", *n);
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
          .help = "record, replay or branch" },
        { .name = "dir", .type = QEMU_OPT_STRING,
          .help = "run directory; branch: of the run to start in" },
        { .name = "at", .type = QEMU_OPT_STRING,
          .help = "branch: full checkpoint to start at: its number, or @NAME" },
        { .name = "to", .type = QEMU_OPT_STRING,
          .help = "branch: directory of the new run" },
        { .name = "force", .type = QEMU_OPT_BOOL,
          .help = "branch: although disk images have changed" },
        { .name = "max-size", .type = QEMU_OPT_SIZE,
          .help = "record, branch: end the recording when it is this large; "
                  "with last: keep less" },
        { .name = "last", .type = QEMU_OPT_STRING,
          .help = "record, branch: keep only so much, as 30s, 10min, 2h, 1d" },
        { .name = "save-on-panic", .type = QEMU_OPT_BOOL,
          .help = "record, branch: with last: save the window when the guest "
                  "panics (default on)" },
        { .name = "panic-pattern", .type = QEMU_OPT_STRING,
          .help = "record, branch: a line on the first serial port that matches "
                  "this is a panic (default: as Linux writes; empty: none)" },
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
        { .name = "trace", .type = QEMU_OPT_STRING,
          .help = "file for a branch trace; a replay then ends by itself" },
        { .name = "trace-part", .type = QEMU_OPT_STRING,
          .help = "what is traced: all (default), or FROM-TO" },
        { .name = "x-omit", .type = QEMU_OPT_STRING,
          .help = "test only: leave remedies out" },
        { .name = "x-unlogged", .type = QEMU_OPT_NUMBER,
          .help = "test only: this device's write to RAM is not logged" },
        { }
    },
};

static void G_NORETURN G_GNUC_PRINTF(1, 2) refuse(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    error_vreport(fmt, ap);
    va_end(ap);
    exit(1);
}

static void parse_mode(QemuOpts *opts)
{
    const char *mode = qemu_opt_get(opts, "mode");

    if (mode && !strcmp(mode, "record")) {
        tt_mode = TT_RECORD;
    } else if (mode && !strcmp(mode, "replay")) {
        tt_mode = TT_REPLAY;
    } else if (mode && !strcmp(mode, "branch")) {
        tt_mode = TT_RECORD;
        opt.is_branch = true;
    } else {
        refuse("-tt takes 'record', 'replay' or 'branch' first, not '%s'",
               mode ?: "nothing");
    }
}

const char tt_interval_help[] =
    "checkpoint-interval takes seconds, 1000000 at most, 0 for no checkpoints";

bool tt_interval_parse(double seconds, uint64_t *ms)
{
    *ms = seconds > 0 ? MAX(seconds * 1000, 1) : 0;
    return seconds >= 0 && seconds <= 1e6;
}

static void parse_interval(const char *seconds)
{
    double s = TT_CHECKPOINT_INTERVAL_MS / 1000;

    if ((seconds && qemu_strtod_finite(seconds, NULL, &s)) ||
        !tt_interval_parse(s, &tt.checkpoint_interval_ms)) {
        refuse("-tt: %s, not '%s'", tt_interval_help, seconds);
    }
}

bool tt_window_parse(const char *text, uint64_t *ns, Error **errp)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {
        { "", 1 }, { "s", 1 }, { "min", 60 }, { "h", 3600 }, { "d", 86400 },
    };
    const char *unit;
    double n;

    if (!qemu_strtod_finite(text, &unit, &n)) {
        for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
            double s = n * units[i].seconds;

            if (!strcmp(unit, units[i].name) && s >= 0.1 &&
                s <= 1157 * 86400.0) {
                *ns = s * 1e9;
                return true;
            }
        }
    }
    error_setg(errp, "last takes a time from 0.1s to 1157d, such as 30s, 10min, "
               "2h or 1d, not '%s'", text);
    return false;
}

bool tt_window_fits(uint64_t ns, uint64_t interval_ms, Error **errp)
{
    if (ns && !interval_ms) {
        error_setg(errp, "a window (last) begins at a checkpoint: leave "
                   "checkpoint-interval=0 out");
        return false;
    }
    return true;
}

const char tt_save_on_panic_help[] =
    "save-on-panic makes sense with last= only: without, all is kept";

static void parse_window(QemuOpts *opts)
{
    const char *last = qemu_opt_get(opts, "last");
    const char *pattern = qemu_opt_get(opts, "panic-pattern");
    Error *err = NULL;

    if ((last && !tt_window_parse(last, &tt.window_ns, &err)) ||
        !tt_window_fits(tt.window_ns, tt.checkpoint_interval_ms, &err) ||
        !tt_crash_set_pattern(pattern ?: tt_panic_pattern_default, &err)) {
        refuse("-tt: %s", error_get_pretty(err));
    }
    if (!last && qemu_opt_get(opts, "save-on-panic")) {
        refuse("-tt: %s", tt_save_on_panic_help);
    }
    tt.save_on_panic = qemu_opt_get_bool(opts, "save-on-panic", true);
}

static void parse_on_error(const char *what)
{
    if (what && strcmp(what, "stop") && strcmp(what, "continue")) {
        refuse("-tt: on-error is 'stop' or 'continue', not '%s'", what);
    }
    tt.stop_on_error = !what || !strcmp(what, "stop");
}

static void only_in(int mode, QemuOpts *opts, const char *name)
{
    if (qemu_opt_get(opts, name) && tt_mode != mode) {
        refuse("-tt: '%s' makes sense with '%s' only", name,
               mode == TT_RECORD ? "record" : "replay");
    }
}

static void only_in_branch(QemuOpts *opts, const char *name)
{
    if (qemu_opt_get(opts, name) && !opt.is_branch) {
        refuse("-tt: '%s' makes sense with 'branch' only", name);
    }
}

static void parse_sync(const char *seconds)
{
    double s = 0;

    if (seconds && (qemu_strtod_finite(seconds, NULL, &s) || s < 0 ||
                    s > 86400)) {
        refuse("-tt: sync takes seconds up to 86400, 0 for none, not '%s'",
               seconds);
    }
    tt.sync_ms = s > 0 ? MAX(s * 1000, 1) : 0;
}

static void parse_check_interval(QemuOpts *opts)
{
    tt.check_interval = qemu_opt_get_number(opts, "check-interval",
                                            TT_CHECK_INTERVAL);
    if (tt.check_interval < TT_CHECK_INTERVAL_MIN ||
        tt.check_interval > TT_LOG_POS_MAX) {
        refuse("-tt: check-interval takes positions, from %d to %" PRIu64,
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
        refuse("-tt: trace-part says which part is traced: add trace=FILE");
    }
    if (path && tt_verify_is_on()) {
        refuse("-tt: a replay verifies or traces: leave verify or trace out");
    }
    if (path && !is_new_file(path)) {
        refuse("-tt: trace takes the name of a file that does not exist yet, in a "
               "directory that can be written, not '%s'", path);
    }
    if (path && !tt_path_is_outside(path, &err)) {
        refuse("-tt: trace=%s", error_get_pretty(err));
    }
    if (path && !tt_trace_option(path, part)) {
        refuse("-tt: trace-part takes 'all', or two positions, FROM-TO, not "
               "'%s'", part);
    }
}

static void parse_dirs(QemuOpts *opts)
{
    const char *dir = qemu_opt_get(opts, "dir");
    const char *at = qemu_opt_get(opts, "at");

    only_in_branch(opts, "at");
    only_in_branch(opts, "to");
    only_in_branch(opts, "force");
    tt_set_dir(opt.is_branch ? qemu_opt_get(opts, "to") : dir);
    if (!opt.is_branch) {
        return;
    }
    if (!dir || !*dir || !at || !*at) {
        refuse("-tt branch needs the run and a full checkpoint of it: "
               "-tt branch,dir=RUN,at=ID");
    }
    tt_branch_option(dir, at, qemu_opt_get_bool(opts, "force", false));
}

void tt_set_dir(const char *dir)
{
    g_autofree char *path = NULL;

    if (dir && *dir) {
        path = tt_path_absolute(dir);
    }
    tt.dir = path ? g_intern_string(path) : NULL;
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
        refuse("-tt may be given once only: a process records or replays one "
               "run");
    }
    seen = true;
    signal(SIGXFSZ, SIG_IGN);           /* it is an error like a full disk */
    opts = qemu_opts_parse_noisily(&tt_opts, optarg, true);
    if (!opts) {
        exit(1);
    }
    parse_mode(opts);
    only_in(TT_RECORD, opts, "max-size");
    only_in(TT_RECORD, opts, "checkpoint-interval");
    only_in(TT_RECORD, opts, "last");
    only_in(TT_RECORD, opts, "save-on-panic");
    only_in(TT_RECORD, opts, "panic-pattern");
    only_in(TT_RECORD, opts, "chaos");
    only_in(TT_RECORD, opts, "on-error");
    only_in(TT_RECORD, opts, "guard");
    only_in(TT_RECORD, opts, "check-interval");
    only_in(TT_RECORD, opts, "sync");
    parse_sync(qemu_opt_get(opts, "sync"));
    parse_check_interval(opts);
    tt_guard_option(qemu_opt_get_bool(opts, "guard", false));
    parse_on_error(qemu_opt_get(opts, "on-error"));
    tt.chaos = qemu_opt_get_bool(opts, "chaos", false);
    only_in(TT_REPLAY, opts, "at-end");
    only_in(TT_REPLAY, opts, "checkpoint-memory");
    only_in(TT_REPLAY, opts, "verify");
    if (qemu_opt_get(opts, "verify") &&
        !tt_verify_option(qemu_opt_get(opts, "verify"))) {
        refuse("-tt: verify takes 'all', or two positions, FROM-TO, not '%s'",
               qemu_opt_get(opts, "verify"));
    }
    parse_trace(opts);
    parse_interval(qemu_opt_get(opts, "checkpoint-interval"));
    parse_window(opts);
    parse_dirs(opts);
    tt.max_size_bytes = qemu_opt_get_size(opts, "max-size", 0);
    tt.checkpoint_bytes = qemu_opt_get_size(opts, "checkpoint-memory", GiB);
    at_end = qemu_opt_get(opts, "at-end");
    if (at_end) {
        if (strcmp(at_end, "stop") && strcmp(at_end, "exit")) {
            refuse("-tt: at-end is 'stop' or 'exit', not '%s'", at_end);
        }
        opt.at_end_given = true;
        tt.at_end_exit = !strcmp(at_end, "exit");
    }
    only_in(TT_RECORD, opts, "x-unlogged");
    tt.unlogged = qemu_opt_get_number(opts, "x-unlogged", 0);
    omit = qemu_opt_get(opts, "x-omit");
    if (omit) {
        parse_omit(omit);
    }
    if (tt_mode == TT_REPLAY && !tt.dir) {
        refuse("-tt replay needs the run directory: -tt replay,dir=DIR");
    }
    tt_iothreads_fold = tt_recording();
    tt_token_start();
    tt_fetch_start();
}

/* ---- before the machine is made ---- */

static const char *unwanted_machine_option(QDict *opts)
{
    const QDictEntry *e;

    for (e = qdict_first(opts); e; e = qdict_next(opts, e)) {
        const char *key = qdict_entry_key(e);

        if (strcmp(key, "accel") && strcmp(key, "graphics")) {
            return key;
        }
    }
    return NULL;
}

/* A replay has no devices: do not ignore the wish for one silently. */
static void refuse_devices(void)
{
    static const char *const groups[] = {
        "device", "drive", "netdev", "memory", "smp-opts",
    };

    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        QemuOptsList *list = qemu_find_opts(groups[i]);

        if (list && !QTAILQ_EMPTY(&list->head)) {
            refuse("-tt replay takes the machine from the run and has no "
                   "devices: leave the %s options out", groups[i]);
        }
    }
}

/* So that a shell takes it apart into the same arguments; what needs no quotes gets
 * none, for people. */
static void append_quoted(GString *line, const char *arg)
{
    g_autofree char *quoted = g_shell_quote(arg);
    size_t plain = strspn(arg, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS
                          "-_.,:=/+@%^");

    g_string_append_printf(line, "%s%s", line->len ? " " : "",
                           *arg && !arg[plain] ? arg : quoted);
}

static void note_command_line(void)
{
    GString *line = g_string_new(NULL);
    g_autofree char *raw = NULL, *cwd = tt_start_directory() ?
        g_strdup(tt_start_directory()) : g_get_current_dir();
    gsize len = 0, i;

    g_file_get_contents("/proc/self/cmdline", &raw, &len, NULL);
    for (i = 0; i < len; i += strlen(raw + i) + 1) {
        append_quoted(line, raw + i);
    }
    if (g_utf8_validate(line->str, line->len, NULL) &&
        g_utf8_validate(cwd, -1, NULL)) {
        tt.manifest.directory = g_steal_pointer(&cwd);
    }
    tt.manifest.command_line = g_string_free(line, false);
}

void tt_describe_recording(void)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();

    tt.manifest.qemu_version = g_strdup(QEMU_VERSION);
    tt.manifest.tt_version = g_strdup(TT_TTVM_VERSION);
    tt.manifest.accel = g_strdup("tcg");
    tt.manifest.host = g_strdup(g_get_host_name());
    tt.manifest.started = g_date_time_format_iso8601(now);
    note_command_line();
}

static int check_accel(void *opaque, QemuOpts *opts, Error **errp)
{
    const char *name = qemu_opt_get(opts, "accel");

    if (name && strcmp(name, "tcg")) {
        refuse("-tt works with -accel tcg only, for now: leave -accel %s out",
               name);
    }
    return 0;
}

/* Before QEMU tries to open it, and says first that it cannot. */
static void refuse_accel(QDict *machine_opts)
{
    const char *name = qdict_get_try_str(machine_opts, "accel");

    qemu_opts_foreach(qemu_find_opts("accel"), check_accel, NULL, NULL);
    if (name && strcmp(name, "tcg")) {
        refuse("-tt works with -accel tcg only, for now: leave accel=%s out",
               name);
    }
}

/* QEMU has a picture in a file of its own, and aborts when that cannot be so large. */
bool tt_replay_may_show(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_FSIZE, &files) || files.rlim_cur >= TT_PICTURE_BYTES_MAX) {
        return true;
    }
    warn_report("tt: the screen of the guest is not shown: files of this process may "
                "have %" PRIu64 " bytes only (ulimit -f), a picture of it has up to %"
                PRIu64, (uint64_t)files.rlim_cur, TT_PICTURE_BYTES_MAX);
    return false;
}

static const char no_icount[] = "-tt and -icount exclude each other: -tt "
    "counts instructions by itself; leave -icount out";

void tt_configure(QDict *machine_opts, bool has_default_serial,
                  int *default_monitor, bool *nographic, void *display_type,
                  bool has_icount, bool has_incoming, bool stopped)
{
    Error *err = NULL;
    DisplayType *display = display_type;

    if (has_icount) {
        refuse("%s", no_icount);
    }
    if (has_incoming) {
        refuse("-tt cannot begin with an incoming migration or a loaded "
               "snapshot: leave -incoming and -loadvm out");
    }
    refuse_accel(machine_opts);
    if (tt_recording()) {
        tt_describe_recording();
        if (!tt_branch_open(&err)) {
            error_reportf_err(err, "-tt branch: ");
            exit(1);
        }
        return;
    }
    tt_monitor_refuse_input(true);
    refuse_devices();
    if (unwanted_machine_option(machine_opts)) {
        refuse("-tt replay takes the machine from the run: leave the option "
               "for '%s' out", unwanted_machine_option(machine_opts));
    }
    if (!tt_replay_open(&err)) {
        error_reportf_err(err, "-tt replay: ");
        exit(1);
    }
    if (tt_verify_is_on() || tt_retrace_is_on()) {
        tt.at_end_exit = false;     /* it has an end of its own */
    } else if (!opt.at_end_given) {
        tt.at_end_exit = !stopped && *default_monitor && !tt_gdb_wanted();
    }
    qdict_put_str(machine_opts, "type", "tt-replay");
    if (*display == DISPLAY_TYPE_DEFAULT) {
        *display = DISPLAY_TYPE_NONE;
    }
    *nographic = true;
    if (!has_default_serial || tt.at_end_exit || tt_verify_is_on() ||
        tt_retrace_is_on()) {
        *default_monitor = 0;       /* stdio, if used, is the console's */
    }
}

/* ---- what cannot be recorded ---- */

bool tt_type_is_unrecordable(const char *name)
{
    return g_str_has_prefix(name, "vhost-") ||
        g_str_has_prefix(name, "vfio-") || strstr(name, "-vhost") ||
        g_str_has_prefix(name, "virtio-pmem") ||
        g_str_has_prefix(name, "ivshmem") ||
        g_str_equal(name, "vmware-svga") || g_str_equal(name, "acpi-erst");
}

static int find_unrecordable(Object *obj, void *opaque)
{
    const char *name = object_get_typename(obj);
    char **why = opaque;

    if (!strcmp(name, "iothread") && !tt_iothreads_fold) {
        *why = g_strdup("an iothread that is at work already cannot be "
                        "recorded: start QEMU with -tt record, where the main "
                        "loop does its work, or without the iothread object");
    } else if (tt_type_is_unrecordable(name)) {
        *why = g_strdup_printf("device '%s' writes guest memory past QEMU and "
                               "cannot be recorded: use one that QEMU emulates",
                               name);
    } else if (!strcmp(name, "nvme") &&
               object_property_get_link(obj, "pmrdev", NULL)) {
        *why = g_strdup("a persistent memory region of NVMe is written past "
                        "QEMU and cannot be recorded: leave pmrdev out");
    }
    return *why != NULL;
}

static char *unrecordable_device(void)
{
    char *why = NULL;

    object_child_foreach_recursive(object_get_root(), find_unrecordable, &why);
    if (!why && tt_net_has_vhost()) {
        why = g_strdup("vhost cannot be recorded: leave vhost=on and vhost-user "
                       "netdevs out");
    }
    return why;
}

static const char *unrecordable_machine(MachineState *ms)
{
    if (!tcg_enabled()) {
        return "-tt works with -accel tcg only, for now: leave the other "
            "accelerator out";
    }
    if (ms->smp.max_cpus > TT_VCPUS_MAX) {
        return "-tt records 8 vCPUs at most: use -smp 8 or less";
    }
    if (ms->smp.max_cpus != ms->smp.cpus) {
        return "-tt cannot record a vCPU that is plugged in later: leave "
            "maxcpus out";
    }
    return NULL;
}

bool tt_can_record(Error **errp)
{
    const char *machine = unrecordable_machine(current_machine);
    g_autofree char *device = machine ? NULL : unrecordable_device();

    if (machine || device) {
        error_setg(errp, "%s", machine ?: device);
    } else if (icount_enabled()) {
        error_setg(errp, "%s", no_icount);
    } else if (current_machine->smp.cpus > 1 && qemu_tcg_mttcg_enabled()) {
        error_setg(errp, "several vCPUs are recorded in one thread: start QEMU "
                   "with -accel tcg,thread=single");
    } else if (runstate_check(RUN_STATE_INMIGRATE)) {
        error_setg(errp, "an incoming migration cannot be recorded: start when "
                   "it is there");
    } else if (runstate_check(RUN_STATE_IO_ERROR)) {
        error_setg(errp, "a device waits in the middle of a transfer that "
                   "failed: continue the VM first");
    } else {
        return true;
    }
    return false;
}

static void machine_ready(Notifier *n, void *opaque)
{
    g_autofree char *why = unrecordable_device();
    Error *err = NULL;

    if (why) {
        refuse("-tt record: %s", why);
    }
    if (!tt_record_open(&err)) {
        tt_record_close();
        error_reportf_err(err, "-tt record: ");
        exit(1);
    }
    if (!tt_is_branch()) {          /* that has much to check before */
        error_printf("tt: recording into %s\n", tt_printable(tt.dir));
    }
}

static Error *migration_blocker;

bool tt_block_migration(Error **errp)
{
    error_setg(&migration_blocker, "%s is on: its history cannot be migrated or "
               "saved as a snapshot",
               tt_replaying() ? "-tt replay" : "-tt record");
    return migrate_add_blocker(&migration_blocker, errp) == 0;
}

void tt_unblock_migration(void)
{
    migrate_del_blocker(&migration_blocker);
}

void tt_check_machine(MachineState *ms)
{
    static Notifier ready = { .notify = machine_ready };
    const char *why = unrecordable_machine(ms);

    if (why) {
        refuse("%s", why);
    }
    if (qemu_tcg_mttcg_enabled()) {
        refuse("-tt runs all vCPUs in one thread: leave thread=multi out");
    }
    tt_block_migration(&error_fatal);
    tt_gdb_start();
    if (tt_recording()) {
        qemu_add_machine_init_done_notifier(&ready);
    }
}

bool tt_refuses(const char *what, Error **errp)
{
    if (tt_on()) {
        error_setg(errp, "%s would leave the %s history: not under -tt", what,
                   tt_recording() ? "recorded" : "replayed");
    }
    return tt_on();
}

bool tt_is_live(Error **errp)
{
    if (!tt_on()) {
        error_setg(errp, "there is no recording or replay");
    } else if (tt_replaying() && !tt.live) {
        error_setg(errp, "the replay has not begun yet");
    } else if (!tt.live) {
        error_setg(errp, tt_record_has_begun() ? "the recording has ended" :
                   "the recording has not begun yet: it does when the VM first "
                   "runs, so say cont before");
    }
    return tt.live;
}

/* ---- stopping and the end ---- */

const char *tt_stop_name(int reason)
{
    static const char *const names[] = {
        [TT_STOP_NONE] = "none", [TT_STOP_TARGET] = "target",
        [TT_STOP_HIT] = "breakpoint", [TT_STOP_START] = "start",
        [TT_STOP_END] = "end", [TT_STOP_DIVERGED] = "diverged",
        [TT_STOP_INTERRUPTED] = "interrupted", [TT_STOP_DAMAGED] = "damaged",
    };

    return names[reason];
}

static void leave_process(int reason)
{
    bool ok = reason == TT_STOP_END;

    if (ok) {
        error_printf("tt: replay exact: %" PRIu64 " positions, %" PRIu64
                     " events, %" PRIu64 " digests equal\n", tt.pos, tt.events,
                     tt_replay_digests());
    }
    qemu_system_shutdown_request_with_code(SHUTDOWN_CAUSE_HOST_QMP_QUIT,
                                           ok ? 0 : tt.damaged ? 1 : 3);
    tt.at_end_exit = false;         /* once is enough */
}

void tt_stop_vm(int reason)
{
    tt.last_stop = reason;
    tt_event_stopped(tt_position(), reason);
    if (tt.at_end_exit && (reason == TT_STOP_END ||
                           reason == TT_STOP_DIVERGED ||
                           reason == TT_STOP_DAMAGED)) {
        leave_process(reason);
    }
    qemu_system_vmstop_request_prepare();
    qemu_system_vmstop_request(RUN_STATE_PAUSED);
    cpu_stop_current();
}

void tt_finish(void)
{
    tt_travel_end();
    if (tt_past) {
        tt_past_leave();
    }
    if (tt_recording() && !tt_record_has_begun()) {
        tt_record_close();
        error_printf("tt: nothing was recorded: the VM never ran\n");
    } else if (tt_recording()) {
        bool whole = tt.live;

        tt_crash_settle();
        tt_record_finish(TT_FINISH_QUIT);
        if (whole && !tt_record_is_gone()) {
            error_printf("tt: recorded %" PRIu64 " positions, %" PRIu64
                         " events, %" PRIu64 " bytes in %s\n", tt_record_end(),
                         tt.events, tt_record_bytes(), tt_printable(tt.dir));
        }
    }
}
