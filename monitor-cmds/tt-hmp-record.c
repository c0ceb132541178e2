/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HMP commands of a recording: tt record, tt save, tt trace, tt undo, tt redo, tt
 * incident.
 */
#include "qemu/osdep.h"
#include "control/tt-values.h"
#include "monitor-cmds/tt-task.h"
#include "monitor-cmds/tt-wait.h"
#include "session/tt-paths.h"
#include "tt-hmp-record-int.h"
#include "tt-hmp-task-int.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "qapi/qapi-commands-tt.h"
#include "qapi/qapi-commands-tt-record.h"
#include "qapi/util.h"
#include "monitor/monitor.h"
#include "qemu/coroutine.h"
#include "monitor/hmp.h"

/* ---- the window of a flight recorder ---- */

typedef struct Saving {
    Monitor *mon;               /* suspended */
    char *name;
    TtTask task;
} Saving;

/* The main loop is not nested meanwhile: a reset, a stop of the VM and the end of
 * QEMU do not wait for a slow disk. */
static void coroutine_fn save_and_resume(void *opaque)
{
    Saving *s = opaque;

    tt_wait(tt_task_step, &s->task);
    if (s->task.err) {
        monitor_printf(s->mon, "Error: %s\n", error_get_pretty(s->task.err));
    } else {
        monitor_printf(s->mon, "saved in %s\n", tt_printable(s->task.dir));
    }
    monitor_resume(s->mon);
    tt_task_clear(&s->task);
    g_free(s->name);
    g_free(s);
}

void tt_hmp_save(Monitor *mon, const char *arg, Error **errp)
{
    TtTask t = { .kind = TT_TASK_SAVE, .name = arg && *arg ? arg : NULL };

    if (monitor_suspend(mon) == 0) {
        Saving *s = g_new0(Saving, 1);

        s->mon = mon;
        s->name = g_strdup(t.name);
        s->task = t;
        s->task.name = s->name;
        qemu_coroutine_enter(qemu_coroutine_create(save_and_resume, s));
        return;
    }
    if (tt_hmp_carry_out(mon, &t, errp)) {      /* gdb's, or of QMP: no prompt */
        monitor_printf(mon, "saved in %s\n", tt_printable(t.dir));
    }
    tt_task_clear(&t);
}

/* ---- recording on demand ---- */

typedef struct StartWords {
    const char *dir;
    const char *last, *pattern;
    bool has_max_size, has_interval, has_on_error, has_save, save;
    bool has_guard, guard, has_disk;
    TtDiskWrites disk;
    uint64_t max_size;
    double interval;
    TtOnError on_error;
} StartWords;

static bool parse_start_word(const char *word, StartWords *w, Error **errp)
{
    const char *value;

    if (strstart(word, "max-size=", &value)) {
        w->has_max_size = true;
        if (qemu_strtosz(value, NULL, &w->max_size)) {
            error_setg(errp, "'%s' is not a size: give bytes, or a number with K, "
                       "M or G", value);
        }
    } else if (strstart(word, "checkpoint-interval=", &value)) {
        w->has_interval = true;
        if (qemu_strtod_finite(value, NULL, &w->interval)) {
            error_setg(errp, "%s, not '%s'", tt_interval_help, value);
        }
    } else if (strstart(word, "on-error=", &value)) {
        w->has_on_error = true;
        w->on_error = strcmp(value, "stop") ? TT_ON_ERROR_CONTINUE :
            TT_ON_ERROR_STOP;
        if (strcmp(value, "stop") && strcmp(value, "continue")) {
            error_setg(errp, "on-error takes 'stop' or 'continue', not '%s'",
                       value);
        }
    } else if (strstart(word, "last=", &w->last) ||
               strstart(word, "panic-pattern=", &w->pattern)) {
        /* looked at later */
    } else if (strstart(word, "save-on-panic=", &value)) {
        w->has_save = true;
        qapi_bool_parse("save-on-panic", value, &w->save, errp);
    } else if (strstart(word, "guard=", &value)) {
        w->has_guard = true;
        qapi_bool_parse("guard", value, &w->guard, errp);
    } else if (strstart(word, "disk=", &value)) {
        w->has_disk = true;
        w->disk = qapi_enum_parse(&TtDiskWrites_lookup, value, -1, NULL);
        if ((int)w->disk < 0) {
            error_setg(errp, "disk takes 'private', 'commit' or 'image', not "
                             "'%s'", value);
        }
    } else if (strchr(word, '=') && !strchr(word, '/')) {
        error_setg(errp, "tt record start has no option '%s' (a directory of that name "
                   "is './%s')", word, word);
    } else if (w->dir) {
        error_setg(errp, "tt record start takes only one directory, not '%s' and "
                         "'%s'", w->dir, word);
    } else {
        w->dir = word;
    }
    return !*errp;
}

static void record_start(Monitor *mon, const char *arg, Error **errp)
{
    g_auto(GStrv) words = g_strsplit(arg, " ", -1);
    StartWords w = { 0 };
    TtRecording *r;

    for (char **word = words; *word; word++) {
        if (**word && !parse_start_word(*word, &w, errp)) {
            return;
        }
    }
    r = qmp_tt_record_start(w.dir, w.has_max_size, w.max_size, w.has_interval,
                            w.interval, w.has_on_error, w.on_error, w.last,
                            w.has_save, w.save, w.pattern, w.has_guard, w.guard,
                            w.has_disk, w.disk, errp);
    if (r) {
        monitor_printf(mon, "recording into %s\n", tt_printable(r->dir));
        qapi_free_TtRecording(r);
    }
}

static void record_stop(Monitor *mon, Error **errp)
{
    TtRun *run = qmp_tt_record_stop(errp);

    if (run) {
        monitor_printf(mon, "recorded %" PRIu64 " positions, %" PRIu64
                       " events, %" PRIu64 " bytes in %s%s\n", run->position,
                       run->events, run->bytes, tt_printable(run->dir),
                       run->whole ? "" : " (incomplete)");
        qapi_free_TtRun(run);
    }
}

void tt_hmp_record(Monitor *mon, const char *arg, Error **errp)
{
    const char *rest;

    if (arg && !strcmp(arg, "stop")) {
        record_stop(mon, errp);
    } else if (arg && strstart(arg, "start", &rest) &&
               (!*rest || *rest == ' ')) {
        record_start(mon, rest, errp);
    } else {
        error_setg(errp, "tt record takes 'stop', or 'start [DIR] [max-size=SIZE] "
                         "[checkpoint-interval=SECONDS] [on-error=stop|continue] "
                         "[last=TIME] [save-on-panic=on|off] [panic-pattern=REGEX] "
                         "[guard=on|off] [disk=private|commit|image]'");
    }
}

/* ---- branch traces ---- */

static void trace_stop(Monitor *mon, Error **errp)
{
    TtTrace *t = qmp_tt_trace_stop(errp);

    if (t) {
        monitor_printf(mon, "traced positions %" PRIu64 " to %" PRIu64 ", %"
                       PRIu64 " branches, %" PRIu64 " bytes in %s\n", t->from,
                       t->to, t->branches, t->bytes, tt_printable(t->file));
        qapi_free_TtTrace(t);
    }
}

void tt_hmp_trace(Monitor *mon, const char *arg, Error **errp)
{
    const char *file;

    if (arg && !strcmp(arg, "stop")) {
        trace_stop(mon, errp);
    } else if (arg && strstart(arg, "start ", &file) &&
               file[strspn(file, " ")]) {
        qmp_tt_trace_start(file + strspn(file, " "), errp);
    } else {
        error_setg(errp, "tt trace takes 'start FILE' or 'stop'");
    }
}

/* ---- undo and redo ---- */

static void move(Monitor *mon, const char *verb, const char *arg, int sign, Error **errp)
{
    TtTask t = { .kind = TT_TASK_UNDO };
    uint64_t n = 1, undos, redos;

    if (arg && *arg && (!g_ascii_isdigit(*arg) || qemu_strtou64(arg, NULL, 10, &n) ||
                        !n || n > TT_UNDO_COUNT_MAX)) {
        error_setg(errp, "tt %s takes a number of inputs, at least 1, not "
                         "'%s'", verb, arg);
        return;
    }
    t.n_inputs = sign * (int64_t)n;
    if (tt_hmp_carry_out(mon, &t, errp)) {
        tt_undo_counts(&undos, &redos);
        monitor_printf(mon, "%" PRIu64 " more can be undone, %" PRIu64 " redone\n", undos,
                       redos);
    }
}

void tt_hmp_undo(Monitor *mon, const char *arg, Error **errp)
{
    move(mon, "undo", arg, -1, errp);
}

void tt_hmp_redo(Monitor *mon, const char *arg, Error **errp)
{
    move(mon, "redo", arg, 1, errp);
}

/* ---- incidents ---- */

void tt_hmp_incident(Monitor *mon, const char *arg, Error **errp)
{
    TtMarked *m = qmp_tt_incident(arg && *arg ? arg : NULL, errp);

    if (m) {
        monitor_printf(mon, "@%s is position %" PRIu64 "\n", m->mark, m->position);
        qapi_free_TtMarked(m);
    }
}
