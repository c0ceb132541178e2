/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checkpoints of a group: one that another VM has made is made here, too, before anything
 * comes in that was sent after it. What the user asks for here is a task like any other
 * (tt-checkpointer-user.c).
 *
 * Context: main thread, the BQL is held.
 */
#include "qemu/osdep.h"
#include "checkpoint/tt-checkpointer.h"
#include "net-tt/glue/tt-net-epoch.h"
#include "session/tt-session.h"
#include "tt-checkpointer-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "system/runstate.h"

#define STEP_MS     5               /* between two looks at the store */
#define REST_MS     1000            /* from one to the next, whoever asks */

static struct {
    TtCheckpointerTask task;        /* full: not NULL: it is under way */
    QEMUTimer *timer;
    int64_t begun_ms;
    uint32_t wanted;                /* the highest that another VM has made */
} gr;

static int64_t now_ms(void)
{
    return qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
}

static void begin_task(void);

static void end_task(void)
{
    TtCheckpointerTask *t = &gr.task;
    g_auto(GStrv) lines = g_strsplit(t->full->str, "\n", -1);

    if (t->err) {
        warn_reportf_err(g_steal_pointer(&t->err), "tt: checkpoint %u of the group does "
                         "not include this VM: ", t->epoch);
        tt_net_epoch_begins(t->epoch, false);
    }
    for (char **line = lines; *line && **line; line++) {
        info_report("tt: checkpoint %u of the group: %s", t->epoch, *line);
    }
    g_string_free(t->full, true);
    *t = (TtCheckpointerTask) { 0 };
    if (gr.wanted > tt_net_epoch()) {
        begin_task();                   /* there was another meanwhile */
    }
}

/* The user's stop, and the past, are waited for; another's that was faster will do. */
static void step(void *opaque)
{
    TtCheckpointerTask *t = &gr.task;
    bool is_posted = t->is_posted;

    if (!is_posted) {
        t->cancelled = tt_net_epoch() >= t->epoch;
        if (!t->cancelled && tt_recording() && tt_session.live &&
            (!runstate_is_running() || tt_past)) {
            timer_mod(gr.timer, now_ms() + REST_MS / 4);
            return;
        }
    }
    if (tt_checkpointer_step(t)) {
        end_task();
    } else {
        timer_mod(gr.timer, now_ms() + STEP_MS);
    }
}

/* Several may have been asked for since the last, also by what came in one read. */
static void say_missed(void)
{
    uint32_t first = tt_net_epoch() + 1, last = gr.wanted - 1;

    if (first == last) {
        warn_report("tt: checkpoint %u of the group does not include this VM: it heard of the "
                    "next before it could make it", first);
    } else if (first < last) {
        warn_report("tt: of the checkpoints of the group from %u to %u none includes this VM: "
                    "it heard of the next before it could make them", first, last);
    }
}

static void begin_task(void)
{
    int64_t now = now_ms();

    say_missed();

    gr.task = (TtCheckpointerTask) {
        .kind = TT_CHECKPOINTER_ADD, .full = g_string_new(NULL), .of_group = true,
        .epoch = gr.wanted,
    };
    gr.begun_ms = MAX(now, gr.begun_ms + REST_MS);
    if (!gr.timer) {                    /* there are no clocks yet at init */
        gr.timer = timer_new_ms(QEMU_CLOCK_REALTIME, step, NULL);
    }
    timer_mod(gr.timer, gr.begun_ms);
}

static bool wanted(uint32_t epoch)
{
    if (!tt_recording() || !tt_session.live) {
        return false;
    }
    gr.wanted = MAX(gr.wanted, epoch);
    if (!gr.task.full) {
        begin_task();
    }
    return true;
}

void tt_cpgroup_init(void)
{
    gr.begun_ms = INT64_MIN / 2;
    tt_net_epoch_init(wanted);
}
