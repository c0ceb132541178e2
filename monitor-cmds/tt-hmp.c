/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HMP commands of -tt. A movement is carried out by the vCPU thread; HMP, unlike
 * QMP, waits for it with the BQL released.
 */
#include "tt/engine.h"
#include "tt/timeline.h"
#include "tt-monitor.h"
#include "qemu/main-loop.h"
#include "qemu/cutils.h"
#include "qobject/qdict.h"
#include "qapi/qapi-commands-tt.h"
#include "monitor/monitor.h"
#include "monitor/hmp.h"
#include "tt/hmp.h"
#include "system/runstate.h"
#include "system/cpus.h"

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

/* Says how far it is every half second: gdb would think a silent stub dead. */
static bool go(Monitor *mon, uint64_t target, bool straight, Waiter *w,
               Error **errp)
{
    w->done = false;
    while (tt_replaying() && !tt.live) {    /* the first state is loaded yet */
        bql_unlock();
        g_usleep(1000);
        bql_lock();
    }
    if (straight ? !tt_travel_run(target, arrived, w, errp) :
        !tt_travel_goto(target, arrived, w, errp)) {
        return false;
    }
    while (!w->done) {
        bql_unlock();
        qemu_sem_timedwait(&w->arrived, 500);
        bql_lock();
        if (!w->done) {
            monitor_printf(mon, "... %u %%\n", tt_travel_percent());
            monitor_flush(mon);
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
    error_setg(errp, "'%s' is no position: give a number, +N, -N, start, end "
               "or @MARK", arg);
    return false;
}

static void do_goto(Monitor *mon, const char *arg, Error **errp)
{
    TtGoto g = { 0 };
    uint64_t target;
    Waiter w = { 0 };

    if (!parse_place(arg, &g, errp) || !tt_monitor_target(&g, &target, errp)) {
        return;
    }
    vm_stop(RUN_STATE_PAUSED);
    qemu_sem_init(&w.arrived, 0);
    if (go(mon, target, false, &w, errp)) {
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

/* From the start to the end and back to where we were. */
static void do_verify(Monitor *mon, const char *arg, Error **errp)
{
    uint64_t here = tt_position(), before;
    Waiter w = { 0 };

    if (!tt_replaying()) {
        error_setg(errp, "tt verify works in a replay");
        return;
    }
    vm_stop(RUN_STATE_PAUSED);
    qemu_sem_init(&w.arrived, 0);
    if (go(mon, 0, false, &w, errp)) {
        before = tt_replay_digests();
        if (go(mon, tt_replay_end(), true, &w, errp)) {
            monitor_printf(mon, tt.diverged ?
                           "diverged at position %" PRIu64 " after %" PRIu64
                           " equal digests\n" :
                           "exact to position %" PRIu64 ", %" PRIu64
                           " digests equal\n", w.pos,
                           tt_replay_digests() - before - tt.diverged);
        }
    }
    if (!*errp && !tt.diverged) {
        go(mon, here, false, &w, errp);
    }
    qemu_sem_destroy(&w.arrived);
}

static const struct {
    const char *verb;
    void (*run)(Monitor *mon, const char *arg, Error **errp);
} verbs[] = {
    { "goto", do_goto },
    { "mark", do_mark },
    { "digest", do_digest },
    { "verify", do_verify },
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
    error_setg(&err, "tt %s is not known: goto, mark, digest or verify", verb);
    hmp_handle_error(mon, err);
}

void hmp_info_tt(Monitor *mon, const QDict *qdict)
{
    TtInfo *i = qmp_query_tt(NULL);

    if (i->mode == TT_MODE_OFF) {
        monitor_printf(mon, "tt: off\n");
    } else {
        monitor_printf(mon, "tt: %s %s\nposition %" PRIu64 " of %" PRIu64
                       ", %" PRIu64 " events, %" PRIu64 " checkpoints%s\n",
                       TtMode_str(i->mode), i->dir, i->position, i->end,
                       i->events, i->checkpoints,
                       i->travelling ? ", travelling" : "");
        if (i->diverged) {
            monitor_printf(mon, "diverged: %s\n", i->divergence);
        }
    }
    qapi_free_TtInfo(i);
}
