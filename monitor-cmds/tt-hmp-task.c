/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HMP waits for a task in the main loop, and says how far a movement is.
 */
#include "qemu/osdep.h"
#include "monitor-cmds/tt-task.h"
#include "monitor-cmds/tt-wait.h"
#include "travel/tt-travel.h"
#include "tt-hmp-task-int.h"
#include "qapi/error.h"
#include "qemu/timer.h"
#include "monitor/monitor.h"
#include "monitor/monitor-internal.h"
#include "system/runstate.h"

#define TELL_MS 500
#define GDB_MS 1500             /* after 2 s gdb would think a silent stub dead */

static bool (*gave_up)(void);

void tt_hmp_task_init(bool (*gdb_gave_up)(void))
{
    gave_up = gdb_gave_up;
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

/* There is one job of the store at a time, since each checkpoint is what has changed
 * since the one before. */
static void say_waiting(Monitor *mon)
{
    monitor_printf(mon, "waiting: the checkpoint store is busy with another checkpoint\n");
    monitor_flush(mon);
}

/* Only its monitor has neither a line to edit nor a buffer for all that is said. */
static bool is_of_gdb(Monitor *mon)
{
    return !container_of(mon, MonitorHMP, common)->use_readline && !mon->skip_flush;
}

typedef struct Wait {
    Monitor *mon;
    TtTask *task;
    int64_t told_ms;
    bool said_waiting, is_of_gdb;
} Wait;

/* Once, but gdb must hear something until the end. */
static void tell_what_it_waits_for(Wait *w, int64_t now)
{
    bool waits = tt_task_waits(w->task);
    int64_t silent_ms = now - w->told_ms;

    if (waits && !w->said_waiting && silent_ms >= TELL_MS) {
        w->said_waiting = true;
    } else if (!w->is_of_gdb || silent_ms < GDB_MS) {
        return;
    }
    w->told_ms = now;
    if (waits) {
        say_waiting(w->mon);
    } else {
        monitor_printf(w->mon, "not done yet\n");
        monitor_flush(w->mon);
    }
}

/* This monitor is not served meanwhile (GLib does not call a source that is being
 * served); another one can interrupt a movement. */
static bool wait_step(void *opaque)
{
    Wait *w = opaque;
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);

    if (tt_task_step(w->task)) {
        return true;
    }
    if (qemu_shutdown_requested_get()) {
        w->task->cancelled = true;
    }
    if (tt_task_moves(w->task)) {
        if (gave_up()) {
            w->task->cancelled = true;
        }
        if (now - w->told_ms >= TELL_MS) {
            w->told_ms = now;
            show_progress(w->mon);
        }
    } else {
        tell_what_it_waits_for(w, now);
    }
    return false;
}

bool tt_hmp_carry_out(Monitor *mon, TtTask *t, Error **errp)
{
    Wait w = {
        .mon = mon, .task = t, .is_of_gdb = is_of_gdb(mon),
        .told_ms = qemu_clock_get_ms(QEMU_CLOCK_REALTIME),
    };
    bool ok;

    tt_wait(wait_step, &w);
    ok = !t->err;
    error_propagate(errp, g_steal_pointer(&t->err));
    return ok;
}
