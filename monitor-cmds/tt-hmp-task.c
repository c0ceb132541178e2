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
#include "system/runstate.h"

#define TELL_MS 500             /* gdb would think a silent stub dead */

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

/* Once. There is one job of the store at a time, since each checkpoint is what has changed
 * since the one before. */
static void say_waiting(Monitor *mon)
{
    monitor_printf(mon, "waiting for the checkpoint store, which is writing another one\n");
    monitor_flush(mon);
}

typedef struct Wait {
    Monitor *mon;
    TtTask *task;
    int64_t told_ms;
    bool said_waiting;
} Wait;

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
    if (tt_task_waits(w->task) && !w->said_waiting && now - w->told_ms >= TELL_MS) {
        w->said_waiting = true;
        say_waiting(w->mon);
    }
    if (tt_task_moves(w->task)) {
        if (gave_up()) {
            w->task->cancelled = true;
        }
        if (now - w->told_ms >= TELL_MS) {
            w->told_ms = now;
            show_progress(w->mon);
        }
    }
    return false;
}

bool tt_hmp_carry_out(Monitor *mon, TtTask *t, Error **errp)
{
    Wait w = {
        .mon = mon, .task = t,
        .told_ms = qemu_clock_get_ms(QEMU_CLOCK_REALTIME),
    };
    bool ok;

    tt_wait(wait_step, &w);
    ok = !t->err;
    error_propagate(errp, g_steal_pointer(&t->err));
    return ok;
}
