/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HMP commands of -tt. A movement is carried out by the vCPU thread; HMP, unlike
 * QMP, waits for it with the BQL released.
 */
#include "qemu/osdep.h"
#include "monitor-cmds/tt-hmp.h"
#include "accel-tt/tt-position.h"
#include "checkpoint/tt-checkpointer.h"
#include "control/tt-mark.h"
#include "monitor-cmds/tt-monitor.h"
#include "replay/tt-replay-exact.h"
#include "replay/tt-replay-log.h"
#include "session/tt-paths.h"
#include "session/tt-session.h"
#include "timeline/tt-timeline.h"
#include "travel/tt-travel.h"
#include "tt-hmp-record-int.h"
#include "tt/hooks.h"
#include "tt/hmp.h"
#include "qapi/error.h"
#include "qemu/main-loop.h"
#include "qemu/coroutine.h"
#include "qemu/cutils.h"
#include "qobject/qdict.h"
#include "qapi/qapi-commands-tt.h"
#include "monitor/monitor.h"
#include "monitor/hmp.h"
#include "system/runstate.h"
#include "system/cpus.h"

static bool (*gave_up)(void);

void tt_hmp_init(bool (*gdb_gave_up)(void))
{
    gave_up = gdb_gave_up;
}

typedef struct Waiter {
    QemuSemaphore arrived;
    uint64_t pos;
    int reason;
    bool done;
} Waiter;

static void arrived(void *opaque, uint64_t pos, int reason)
{
    Waiter *w = opaque;

    w->pos = pos;
    w->reason = reason;
    w->done = true;
    qemu_sem_post(&w->arrived);
}

/* One line, not one that is written over: gdb shows it, too. */
static void show_progress(Monitor *mon)
{
    char bar[41];
    uint64_t done, total;
    unsigned filled;

    tt_travel_progress(&done, &total);
    filled = total ? (double)done / total * (sizeof(bar) - 1) : 0;
    memset(bar, '.', sizeof(bar) - 1);
    memset(bar, '#', filled);
    bar[sizeof(bar) - 1] = 0;
    monitor_printf(mon, "[%s] %3u %%\n", bar,
                   (unsigned)(total ? done * 100.0 / total : 0));
    monitor_flush(mon);
}

typedef enum Movement { GO, GO_STRAIGHT, PIN } Movement;

static bool begin(Movement kind, const TtGoto *g, uint64_t target, Waiter *w,
                  Error **errp)
{
    switch (kind) {
    case GO:
        return tt_monitor_go(g, arrived, w, errp);
    case GO_STRAIGHT:
        return tt_travel_run(target, arrived, w, errp);
    default:
        return tt_travel_pin(arrived, w, errp);
    }
}

/*
 * One wait for the end of a movement. Other monitors are served meanwhile, so that
 * one of them can interrupt it; this one is not (GLib does not call a source
 * that is being served).
 */
static void wait_a_little(Waiter *w)
{
    Monitor *self;

    bql_unlock();
    qemu_sem_timedwait(&w->arrived, 20);
    bql_lock();
    self = monitor_set_cur(qemu_coroutine_self(), NULL);    /* who is served? */
    while (!w->done && g_main_context_iteration(NULL, false)) {
    }
    monitor_set_cur(qemu_coroutine_self(), self);
    if (!w->done && (qemu_shutdown_requested_get() || gave_up())) {
        tt_travel_interrupt();
    }
}

/* Says how far it is every half second: gdb would think a silent stub dead. */
static bool go(Monitor *mon, Movement kind, const TtGoto *g, uint64_t target,
               Waiter *w, Error **errp)
{
    w->done = false;
    tt_monitor_wait();
    if (!begin(kind, g, target, w, errp)) {
        return false;
    }
    for (unsigned n = 1; !w->done; n++) {
        wait_a_little(w);
        if (!w->done && n % 25 == 0) {
            show_progress(mon);
        }
    }
    return true;
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
    TtGoto g = { 0 };
    Waiter w = { 0 };

    if (!parse_place(arg, &g, errp)) {
        return;
    }
    qemu_sem_init(&w.arrived, 0);
    if (go(mon, GO, &g, 0, &w, errp)) {
        monitor_printf(mon, "at %" PRIu64 " (%s)\n", w.pos,
                       tt_stop_name(w.reason));
    }
    qemu_sem_destroy(&w.arrived);
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
                   "exact to position %" PRIu64 ", %" PRIu64
                   " digests equal\n", pos, digests);
}

/* From the start to the end and back to where we were; an interrupted one stays
 * where it is. */
static void verify(Monitor *mon, Waiter *w, Error **errp)
{
    TtGoto start = { .has_where = true, .where = TT_WHERE_START };
    TtGoto here = { .has_position = true, .position = tt_position() };
    uint64_t before;

    if (!go(mon, GO, &start, 0, w, errp) ||
        w->reason == TT_STOP_INTERRUPTED) {
        return;
    }
    if (w->reason == TT_STOP_DAMAGED) {
        error_setg(errp, "the start of the run cannot be restored: its "
                   "checkpoints are damaged");
        return;
    }
    before = tt_replay_digests();
    if (!go(mon, GO_STRAIGHT, NULL, INT64_MAX, w, errp)) {   /* all of it */
        return;
    }
    tell_verified(mon, w->pos, tt_replay_digests() - before -
                  (tt_replayer.diverged && !tt_replayer.damaged));
    if (!tt_replayer.diverged && w->reason != TT_STOP_INTERRUPTED) {
        go(mon, GO, &here, 0, w, errp);
    }
}

static void do_verify(Monitor *mon, const char *arg, Error **errp)
{
    Waiter w = { 0 };

    if (!tt_replaying()) {
        error_setg(errp, !tt_recording() ? "tt verify works in a replay" :
                   "tt verify works in a replay, or in the past of a recording: "
                   "'tt goto start' shows that, 'tt goto end' comes back");
        return;
    }
    vm_stop(RUN_STATE_PAUSED);
    qemu_sem_init(&w.arrived, 0);
    verify(mon, &w, errp);
    if (w.reason == TT_STOP_INTERRUPTED) {
        monitor_printf(mon, "interrupted at position %" PRIu64 "\n", w.pos);
    }
    qemu_sem_destroy(&w.arrived);
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

/* Of a replay. 0: *errp says why not. */
static uint32_t pin(Monitor *mon, const char *name, Error **errp)
{
    uint32_t id = 0;
    uint64_t pos;
    Waiter w = { 0 };

    if (!tt_travel_is_possible(errp)) {
        return 0;
    }
    vm_stop(RUN_STATE_PAUSED);
    qemu_sem_init(&w.arrived, 0);
    if ((!name || tt_mark_add(name, &pos, errp)) &&
        go(mon, PIN, NULL, 0, &w, errp)) {
        id = tt_travel_pinned();
    }
    qemu_sem_destroy(&w.arrived);
    return id;
}

static void delete_checkpoint(const char *arg, Error **errp)
{
    uint64_t n;

    if (!g_ascii_isdigit(*arg) || qemu_strtou64(arg, NULL, 10, &n)) {
        error_setg(errp, "tt checkpoint delete takes the number of a checkpoint "
                   "(see 'tt checkpoint list')%s%s%s", *arg ? ", not '" : "",
                   arg, *arg ? "'" : "");
    } else if (tt_recording()) {
        tt_checkpointer_delete(n, errp);
    } else {
        tt_travel_delete(n, errp);
    }
}

/* @arg: "[-f] [NAME]" */
static void add_checkpoint(Monitor *mon, const char *arg, Error **errp)
{
    g_autoptr(GString) notes = g_string_new(NULL);
    const char *rest = arg;
    bool is_full = strstart(arg, "-f", &rest) && (!*rest || *rest == ' ');
    const char *name = is_full ? rest + strspn(rest, " ") : arg;
    TtCheckpoint *c;
    uint32_t id = 0;

    name = *name ? name : NULL;
    tt_monitor_wait();
    if (!tt_recording()) {
        id = tt_monitor_may_be_full(is_full ? notes : NULL, errp) ?
            pin(mon, name, errp) : 0;
    } else {
        tt_checkpointer_add(name, is_full ? notes : NULL, &id, errp);
    }
    if (!*errp) {
        c = tt_monitor_checkpoint(id, errp);
        if (c) {
            show_checkpoint(mon, c);
        }
        qapi_free_TtCheckpoint(c);
        monitor_printf(mon, "%s", notes->str);
    }
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
        delete_checkpoint(rest + strspn(rest, " "), errp);
    } else {
        error_setg(errp, "tt checkpoint takes 'add [-f] [NAME]', 'delete ID' or "
                   "'list'");
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

static const struct {
    const char *verb;
    void (*run)(Monitor *mon, const char *arg, Error **errp);
} verbs[] = {
    { "goto", do_goto },
    { "mark", do_mark },
    { "digest", do_digest },
    { "verify", do_verify },
    { "checkpoint", do_checkpoint },
    { "interrupt", do_interrupt },
    { "save", tt_hmp_save },
    { "record", tt_hmp_record },
    { "trace", tt_hmp_trace },
};

void hmp_tt(Monitor *mon, const QDict *qdict)
{
    const char *verb = qdict_get_str(qdict, "verb");
    const char *arg = qdict_get_try_str(qdict, "arg");
    Error *err = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (!strcmp(verb, verbs[i].verb)) {
            verbs[i].run(mon, arg, &err);
            hmp_handle_error(mon, err);
            return;
        }
    }
    error_setg(&err, "tt %s is not known: goto, mark, digest, verify, "
               "checkpoint, interrupt, save, record or trace", verb);
    hmp_handle_error(mon, err);
}

static void show_store(Monitor *mon, const TtStore *st)
{
    monitor_printf(mon, "%" PRIu64 " bytes of checkpoints; pause %.1f ms (%"
                   PRIu64 " pages), longest %.1f ms (%" PRIu64 " pages)\n",
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
        if (i->start) {
            monitor_printf(mon, "the window begins at position %" PRIu64 "\n",
                           i->start);
        }
        if (i->past) {
            monitor_printf(mon, "this is the past: 'tt goto end' returns to the "
                           "present, which is recorded\n");
        }
        if (i->store && i->store->taken) {
            show_store(mon, i->store);
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
