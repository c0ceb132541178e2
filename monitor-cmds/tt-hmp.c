/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HMP commands of -tt. Those that can last are tasks (tt-task.h), for which HMP waits
 * in the main loop: the guest's timers and other monitors go on.
 */
#include "qemu/osdep.h"
#include "monitor-cmds/tt-hmp.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "control/tt-mark.h"
#include "control/tt-values.h"
#include "monitor-cmds/tt-monitor.h"
#include "monitor-cmds/tt-task.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-travel.h"
#include "tt-hmp-record-int.h"
#include "tt-hmp-task-int.h"
#include "tt/hooks.h"
#include "tt/hmp.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "qobject/qdict.h"
#include "qapi/qapi-commands-tt.h"
#include "monitor/monitor.h"
#include "monitor/hmp.h"
#include "system/runstate.h"
#include "system/cpus.h"

void tt_hmp_init(bool (*gave_up)(void))
{
    tt_hmp_task_init(gave_up);
}

static bool parse_place(const char *arg, TtGoto *g, Error **errp)
{
    if (!arg || !*arg) {
        error_setg(errp, "tt goto takes a position, +N, -N, start, end or "
                   "@MARK");
        return false;
    }
    if (*arg == '@') {
        g->mark = arg + 1;
        return true;
    }
    if (!strcmp(arg, "start") || !strcmp(arg, "end")) {
        g->has_where = true;
        g->where = *arg == 's' ? TT_WHERE_START : TT_WHERE_END;
        return true;
    }
    if (*arg == '+' || *arg == '-') {
        g->has_delta = true;
        if (qemu_strtoi64(arg, NULL, 0, &g->delta) == 0) {
            return true;
        }
    } else {
        g->has_position = true;
        if (qemu_strtou64(arg, NULL, 0, &g->position) == 0) {
            return true;
        }
    }
    error_setg(errp, "'%s' is not a position: give a number, +N, -N, start, end "
               "or @MARK", arg);
    return false;
}

static void do_goto(Monitor *mon, const char *arg, Error **errp)
{
    TtTask t = { .kind = TT_TASK_GOTO };

    if (parse_place(arg, &t.g, errp) && tt_hmp_carry_out(mon, &t, errp)) {
        monitor_printf(mon, "at %" PRIu64 " (%s)\n", t.pos,
                       tt_stop_name(t.reason));
    }
}

static void do_mark(Monitor *mon, const char *arg, Error **errp)
{
    uint64_t pos;

    if (tt_mark_add(arg ?: "", &pos, errp)) {
        monitor_printf(mon, "@%s is position %" PRIu64 "\n", arg, pos);
    }
}

static void do_digest(Monitor *mon, const char *arg, Error **errp)
{
    TtDigest *d = qmp_query_tt_digest(errp);

    if (d) {
        monitor_printf(mon, "position %" PRIu64 " cpu %s ram %s\n",
                       d->position, d->cpu, d->ram);
        qapi_free_TtDigest(d);
    }
}

static void tell_verified(Monitor *mon, uint64_t pos, uint64_t digests)
{
    monitor_printf(mon, tt_replayer.damaged ?
                   "the log is damaged; exact up to position %" PRIu64
                   ", %" PRIu64 " digests equal\n" : tt_replayer.diverged ?
                   "diverged at position %" PRIu64 " after %" PRIu64
                   " equal digests\n" :
                   "exact up to position %" PRIu64 ", %" PRIu64 " digests "
                   "equal\n", pos, digests);
}

/* From the start to the end and back to where we were. Why it ended: interrupted, it
 * stays where it is. */
static int verify(Monitor *mon, Error **errp)
{
    TtTask start = {
        .kind = TT_TASK_GOTO,
        .g = { .has_where = true, .where = TT_WHERE_START },
    };
    TtTask all = { .kind = TT_TASK_STRAIGHT, .straight_to = INT64_MAX };
    TtTask back = {
        .kind = TT_TASK_GOTO,
        .g = { .has_position = true, .position = tt_position() },
    };
    uint64_t before;

    if (!tt_hmp_carry_out(mon, &start, errp) || start.reason == TT_STOP_INTERRUPTED) {
        return start.reason;
    }
    if (start.reason == TT_STOP_DAMAGED) {
        error_setg(errp, "the start of the run cannot be restored: its "
                   "checkpoints are damaged");
        return start.reason;
    }
    before = tt_replay_digests();
    if (!tt_hmp_carry_out(mon, &all, errp)) {
        return all.reason;
    }
    tell_verified(mon, all.pos, tt_replay_digests() - before -
                  (tt_replayer.diverged && !tt_replayer.damaged));
    if (!tt_replayer.diverged && all.reason != TT_STOP_INTERRUPTED) {
        tt_hmp_carry_out(mon, &back, errp);
        return back.reason;
    }
    return all.reason;
}

static void do_verify(Monitor *mon, const char *arg, Error **errp)
{
    if (!tt_replaying()) {
        error_setg(errp, !tt_recording() ? "tt verify works only in a replay" :
                   "tt verify works only in a replay, or in the past of a recording: go "
                   "there with 'tt goto start', and return with 'tt goto end'");
        return;
    }
    vm_stop(RUN_STATE_PAUSED);
    if (verify(mon, errp) == TT_STOP_INTERRUPTED) {
        monitor_printf(mon, "interrupted at position %" PRIu64 "\n",
                       tt_position());
    }
}

/* ---- checkpoints ---- */

static void show_checkpoint(Monitor *mon, const TtCheckpoint *c)
{
    monitor_printf(mon, "%6" PRIu32 " %20" PRIu64 " %10" PRIu64, c->id,
                   c->position, c->pages);
    if (c->stored) {
        monitor_printf(mon, " %9.1f s %10" PRIu64, c->time_ms / 1000.0,
                       c->bytes);
    } else {
        monitor_printf(mon, " %11s %10s", "", "");
    }
    monitor_printf(mon, "  %s\n", c->full ? "full" : c->pinned ? "kept" :
                   c->stored ? "stored" : "");
}

static void list_checkpoints(Monitor *mon, Error **errp)
{
    TtCheckpointList *all = qmp_query_tt_checkpoints(errp), *c;

    monitor_printf(mon, "%6s %20s %10s %11s %10s\n", "id", "position", "pages",
                   "time", "bytes");
    for (c = all; c; c = c->next) {
        show_checkpoint(mon, c->value);
    }
    qapi_free_TtCheckpointList(all);
}

static void delete_checkpoint(Monitor *mon, const char *arg, Error **errp)
{
    TtTask t = { .kind = TT_TASK_DELETE };
    uint64_t n;

    if (!g_ascii_isdigit(*arg) || qemu_strtou64(arg, NULL, 10, &n)) {
        error_setg(errp, "tt checkpoint delete takes the number of a checkpoint "
                   "(see 'tt checkpoint list')%s%s%s", *arg ? ", not '" : "",
                   arg, *arg ? "'" : "");
    } else if (n > UINT32_MAX) {
        error_setg(errp, "there is no checkpoint %" PRIu64 ": see 'tt "
                   "checkpoint list'", n);
    } else {
        t.id = n;
        tt_hmp_carry_out(mon, &t, errp);
    }
}

/* @arg: "[-f] [NAME]" or "-g" */
static void add_checkpoint(Monitor *mon, const char *arg, Error **errp)
{
    const char *rest = arg;
    bool of_group = strstart(arg, "-g", &rest) && (!*rest || *rest == ' ');
    bool is_full = !of_group && strstart(arg, "-f", &rest) && (!*rest || *rest == ' ');
    const char *name = is_full || of_group ? rest + strspn(rest, " ") : arg;
    TtTask t = {
        .kind = TT_TASK_ADD, .name = *name ? name : NULL, .full = is_full,
        .of_group = of_group,
    };

    if (tt_hmp_carry_out(mon, &t, errp) && t.added) {
        show_checkpoint(mon, t.added);
        if (of_group) {
            monitor_printf(mon, "@" TT_CPGROUP_NAME "\n", t.checkpointer.epoch);
        }
        monitor_printf(mon, "%s", t.notes ? t.notes->str : "");
    }
    tt_task_clear(&t);
}

static void do_checkpoint(Monitor *mon, const char *arg, Error **errp)
{
    const char *rest = arg;

    if (!arg || !strcmp(arg, "list")) {
        list_checkpoints(mon, errp);
    } else if (!strcmp(arg, "add")) {
        add_checkpoint(mon, "", errp);
    } else if (strstart(arg, "add ", &rest)) {
        add_checkpoint(mon, rest + strspn(rest, " "), errp);
    } else if (strstart(arg, "delete", &rest) && (!*rest || *rest == ' ')) {
        delete_checkpoint(mon, rest + strspn(rest, " "), errp);
    } else {
        error_setg(errp, "tt checkpoint takes 'add [-f] [NAME]', 'add -g', 'delete ID' "
                   "or 'list'");
    }
}

/* For a movement that QMP or gdb began: HMP's own goto waits for its end. */
static void do_interrupt(Monitor *mon, const char *arg, Error **errp)
{
    if (tt_travel_active()) {
        tt_travel_interrupt();
    } else {
        error_setg(errp, "there is no movement to interrupt");
    }
}

static void do_set(Monitor *mon, const char *arg, Error **errp)
{
    const char *size;

    if (!arg || !strstart(arg, "step-memory ", &size)) {
        error_setg(errp, "tt set takes 'step-memory SIZE'");
    } else {
        tt_step_memory_set(size + strspn(size, " "), errp);
    }
}

static const struct {
    const char *verb;
    void (*run)(Monitor *mon, const char *arg, Error **errp);
    bool is_alone;
} verbs[] = {
    { "goto", do_goto },
    { "mark", do_mark },
    { "digest", do_digest, true },
    { "verify", do_verify, true },
    { "find", tt_hmp_find },
    { "time", tt_hmp_time },
    { "checkpoint", do_checkpoint },
    { "interrupt", do_interrupt, true },
    { "save", tt_hmp_save },
    { "record", tt_hmp_record },
    { "trace", tt_hmp_trace },
    { "undo", tt_hmp_undo },
    { "redo", tt_hmp_redo },
    { "incident", tt_hmp_incident },
    { "set", do_set },
};

void hmp_tt(Monitor *mon, const QDict *qdict)
{
    const char *verb = qdict_get_str(qdict, "verb");
    const char *arg = qdict_get_try_str(qdict, "arg");
    g_autoptr(GString) known = g_string_new("");
    Error *err = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (!strcmp(verb, verbs[i].verb)) {
            if (verbs[i].is_alone && arg && *arg) {
                error_setg(&err, "tt %s takes no argument, not '%s'", verb, arg);
            } else {
                verbs[i].run(mon, arg, &err);
            }
            hmp_handle_error(mon, err);
            return;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        g_string_append_printf(known, "%s%s", i == 0 ? "" :
                               i + 1 < ARRAY_SIZE(verbs) ? ", " : " or ", verbs[i].verb);
    }
    error_setg(&err, "there is no command 'tt %s': use %s", verb, known->str);
    hmp_handle_error(mon, err);
}

static void show_store(Monitor *mon, const TtStore *st)
{
    monitor_printf(mon, "%" PRIu64 " bytes of checkpoints; last pause %.1f ms "
                        "(%" PRIu64 " pages), longest %.1f ms (%" PRIu64 " pages)\n",
                   st->bytes, st->last_pause_ns / 1e6, st->last_pause_pages,
                   st->longest_pause_ns / 1e6, st->longest_pause_pages);
}

void hmp_info_tt(Monitor *mon, const QDict *qdict)
{
    TtInfo *i = qmp_query_tt(NULL);

    if (i->mode == TT_MODE_OFF) {
        monitor_printf(mon, "tt: off\n");
    } else {
        monitor_printf(mon, "tt: %s %s%s\nposition %" PRIu64 " of %" PRIu64
                       ", %" PRIu64 " events, %" PRIu64 " checkpoints%s\n",
                       TtMode_str(i->mode), tt_printable(i->dir), i->live ? "" :
                       tt_recording() && tt_session.has_begun ?
                       " (it has ended)" : " (it has not begun yet)",
                       i->position, i->end,
                       i->events, i->checkpoints,
                       i->travelling ? ", travelling" : "");
        if (i->has_cpu && tt_vcpus_count() > 1) {
            monitor_printf(mon, "it is the turn of vCPU %" PRIu32 "\n", i->cpu);
        }
        if (i->start) {
            monitor_printf(mon, "the window begins at position %" PRIu64 "\n",
                           i->start);
        }
        if (i->past) {
            monitor_printf(mon, "this is the past of the recording: 'tt goto end' "
                                "returns to the present\n");
        }
        if (i->store && i->store->taken) {
            show_store(mon, i->store);
        }
        if (i->has_undos) {
            monitor_printf(mon, "%" PRIu64 " input%s can be undone, %" PRIu64
                           " redone\n", i->undos, i->undos == 1 ? "" : "s", i->redos);
        }
        if (i->diverged) {
            monitor_printf(mon, "diverged: %s\n", i->divergence);
        }
        if (i->trouble) {
            monitor_printf(mon, "the recording waits: %s\n", i->trouble);
        }
        if (i->damage) {
            monitor_printf(mon, "damaged: %s\n", i->damage);
        }
    }
    qapi_free_TtInfo(i);
}
