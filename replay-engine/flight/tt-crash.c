/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When something goes wrong in the guest (it panics, a watchdog fires, the CPU gives
 * up, the console says so), the place gets a mark, panic-1, panic-2, ...; a flight
 * recorder saves its window a moment later (tt-autosave.c), and the other VMs of the group
 * do the same (tt-incident.c).
 *
 *   hook (any place inside an instruction) --> main loop: mark --> timer: save
 *
 * The mark stands where the vCPU does when the main loop comes to it, right after the
 * instruction. One crash often shows in several ways: further signs within some seconds
 * belong to the same one.
 */
#include "qemu/osdep.h"
#include "flight/tt-crash.h"
#include "flight/tt-autosave.h"
#include "flight/tt-incident.h"
#include "record/tt-mark-log.h"
#include "record/tt-record-listener.h"
#include "session/tt-events.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "block/aio.h"

#define SAME_NS     (10 * NANOSECONDS_PER_SECOND)
#define LINE_MAX_BYTES 512

const char tt_panic_pattern_default[] =
    "Kernel panic - not syncing|"
    "^(<[0-9]+>)?(\\[[ 0-9.]+\\](\\[[ TC0-9]+\\])? )?"
    "(BUG: |Oops: |Oops\\[|kernel BUG at |watchdog: BUG|general protection "
    "fault|double fault: |stack segment: |invalid opcode: |divide error: )";

static GRegex *pattern;         /* of the console; NULL: it is not watched */
static bool is_too_hard;        /* and that was told */

static struct {
    const char *what;           /* to be marked; set by any thread */
    bool scheduled;
    unsigned n;                 /* marks so far */
    int64_t last_ns;            /* VM's clock */
    char name[24];              /* of the last mark */
    /* console */
    char line[LINE_MAX_BYTES + 1];
    unsigned len;
    uint8_t line_control;
} tb;

/* ---- options ---- */

bool tt_crash_set_pattern(const char *text, Error **errp)
{
    GError *err = NULL;
    GRegex *fresh = NULL;

    if (*text) {
        fresh = g_regex_new(text, G_REGEX_RAW | G_REGEX_OPTIMIZE, 0, &err);
        if (!fresh) {
            error_setg(errp, "panic-pattern is not a regular expression: %s",
                       err->message);
            g_error_free(err);
            return false;
        }
    }
    if (pattern) {
        g_regex_unref(pattern);
    }
    pattern = fresh;
    is_too_hard = false;
    return true;
}

/* ---- marking: main loop ---- */

/* A name that no mark of this run has. */
static bool add_mark(uint64_t *pos)
{
    Error *err = NULL;

    snprintf(tb.name, sizeof(tb.name), "panic-%u", ++tb.n);
    if (!tt_mark_record(tb.name, pos, &err)) {
        warn_report("tt: %s", error_get_pretty(err));
        error_free(err);
        return false;
    }
    return true;
}

static void mark(void *opaque)
{
    const char *what = qatomic_read(&tb.what);
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    uint64_t pos;

    qatomic_set(&tb.scheduled, false);
    if (!what || !tt_recording() || !tt_session.live) {
        return;
    }
    qatomic_set(&tb.what, NULL);
    if (tb.n && now - tb.last_ns < SAME_NS) {
        return;
    }
    tb.last_ns = now;
    if (add_mark(&pos)) {
        warn_report("tt: the guest %s: mark @%s, position %" PRIu64, what,
                    tb.name, pos);
        tt_tell_crashed(pos, tb.name, what);
        tt_autosave_plan(tb.name);
        tt_incident_tell_group(tb.name, what);
    }
}

void tt_guest_crash_slow(int kind)
{
    static const char *const what[] = {
        [TT_CRASH_PANIC] = "panicked",
        [TT_CRASH_WATCHDOG] = "did not answer its watchdog",
        [TT_CRASH_TRIPLE_FAULT] = "had a triple fault",
        [TT_CRASH_CONSOLE] = "reports a crash on its console",
    };

    qatomic_set(&tb.what, what[kind]);
    if (!qatomic_xchg(&tb.scheduled, true)) {
        /* Only the main loop runs this context; a vCPU may run the other one. */
        aio_bh_schedule_oneshot(iohandler_get_aio_context(), mark, NULL);
    }
}

void tt_crash_settle(void)
{
    if (qatomic_read(&tb.what)) {
        mark(NULL);
    }
}

static void forget(void)
{
    memset(&tb, 0, sizeof(tb));
}

/* ---- the console: what the guest writes to COM1 ---- */

/* A repetition of a repetition can take longer than the library allows: then nobody
 * knows whether the line matches. */
static bool is_panic(const char *line)
{
    GError *err = NULL;
    bool is = g_regex_match_full(pattern, line, -1, 0, 0, NULL, &err);

    if (err && !is_too_hard) {
        is_too_hard = true;
        warn_report("tt: panic-pattern '%s' cannot be matched against every line "
                    "of the console (%s), so a panic may be missed: use a "
                    "pattern without nested repetitions",
                    tt_printable(g_regex_get_pattern(pattern)),
                    tt_printable(err->message));
    }
    g_clear_error(&err);
    return is;
}

static void end_line(void)
{
    tb.line[tb.len] = 0;
    if (tb.len && is_panic(tb.line)) {
        tt_guest_crash_slow(TT_CRASH_CONSOLE);
    }
    tb.len = 0;
}

static void console(uint32_t port, uint8_t byte)
{
    if (port == 0x3fb) {
        tb.line_control = byte;
    }
    if (!pattern || port != 0x3f8 || tb.line_control & 0x80) {
        return;
    }
    if (byte == '\n' || byte == '\r' || tb.len == LINE_MAX_BYTES) {
        end_line();
    } else if (byte) {
        tb.line[tb.len++] = byte;
    }
}

void tt_crash_init(void)
{
    static const TtRecordListener listener = {
        .console = console, .ended = forget,
    };

    tt_record_listen(&listener);
}
