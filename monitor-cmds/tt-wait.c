/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Owns the list of those who wait. Their steps are called from the main loop: at
 * once when tt_wait_kick was called, else at ticks, which get rarer, up to
 * TICK_MS_MAX.
 *
 * From the main loop itself, and not where other code turns QEMU's AioContext: a vCPU
 * does that in the midst of an instruction (it waits for a flash memory's file), and
 * so does a reset. Only at the end of QEMU nobody turns the main loop any more, and
 * jobs are waited for in the AioContext.
 */
#include "qemu/osdep.h"
#include "monitor-cmds/tt-wait.h"
#include "qemu/main-loop.h"
#include "qemu/coroutine.h"
#include "qemu/notify.h"
#include "qemu/thread.h"
#include "qemu/timer.h"
#include "block/aio.h"
#include "monitor/monitor.h"
#include "system/runstate.h"
#include "system/runstate-action.h"

#define TICK_MS_MAX 20

typedef struct Waiter {
    TtWaitStep *step;
    void *opaque;
    Coroutine *co;              /* NULL: it turns the main loop */
    unsigned n_ticks;
    uint64_t round;             /* it was asked in this one */
    bool done;
    QTAILQ_ENTRY(Waiter) next;
} Waiter;

static QTAILQ_HEAD(, Waiter) waiters = QTAILQ_HEAD_INITIALIZER(waiters);
static QEMUTimer tick, last_tick;       /* of the main loop; of the AioContext */
static QemuThread main_thread;
static bool is_ending;
static bool is_asking;                  /* a step runs: it may turn an AioContext */
static uint64_t n_rounds;

/* A coroutine that is woken may begin to wait again, so the list may change. */
static Waiter *next_to_ask(uint64_t round)
{
    Waiter *w;

    QTAILQ_FOREACH(w, &waiters, next) {
        if (w->round < round) {
            return w;
        }
    }
    return NULL;
}

static void arm_tick(void)
{
    unsigned ms = TICK_MS_MAX;
    Waiter *w;

    QTAILQ_FOREACH(w, &waiters, next) {
        ms = MIN(ms, 1 + w->n_ticks / 8);
    }
    if (!QTAILQ_EMPTY(&waiters)) {
        timer_mod(qatomic_read(&is_ending) ? &last_tick : &tick,
                  qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + ms);
    }
}

static void ask_all(void *opaque)
{
    uint64_t round;
    Waiter *w;

    if (is_asking || !qemu_thread_is_self(&main_thread)) {
        arm_tick();                     /* later */
        return;
    }
    round = ++n_rounds;
    while ((w = next_to_ask(round))) {
        w->round = round;
        w->n_ticks++;
        is_asking = true;
        w->done = w->step(w->opaque);
        is_asking = false;
        if (w->done) {
            QTAILQ_REMOVE(&waiters, w, next);
            if (w->co) {
                aio_co_wake(w->co);     /* @w is gone now */
            }
        }
    }
    arm_tick();
}

void tt_wait_kick(void)
{
    aio_bh_schedule_oneshot(qatomic_read(&is_ending) ? qemu_get_aio_context() :
                            iohandler_get_aio_context(), ask_all, NULL);
}

/* With -no-shutdown the main loop goes on. */
static void shuts_down(Notifier *n, void *cause)
{
    if (shutdown_action != SHUTDOWN_ACTION_PAUSE) {
        qatomic_set(&is_ending, true);
        tt_wait_kick();
    }
}

void tt_wait_init(void)
{
    static Notifier notifier = { .notify = shuts_down };

    qemu_thread_get_self(&main_thread);
    qemu_register_shutdown_notifier(&notifier);
}

/* QEMU has clocks now. */
static void make_ticks(void)
{
    static bool made;

    if (!made) {
        made = true;
        timer_init_ms(&tick, QEMU_CLOCK_REALTIME, ask_all, NULL);
        aio_timer_init(qemu_get_aio_context(), &last_tick, QEMU_CLOCK_REALTIME,
                       SCALE_MS, ask_all, NULL);
    }
}

static void turn_main_loop(const Waiter *w)
{
    Monitor *self = monitor_set_cur(qemu_coroutine_self(), NULL);

    while (!w->done) {                  /* the others set their own */
        main_loop_wait(false);
    }
    monitor_set_cur(qemu_coroutine_self(), self);
}

void tt_wait(TtWaitStep *step, void *opaque)
{
    Waiter w = {
        .step = step, .opaque = opaque,
        .co = qemu_in_coroutine() ? qemu_coroutine_self() : NULL,
    };

    make_ticks();
    QTAILQ_INSERT_TAIL(&waiters, &w, next);
    tt_wait_kick();
    while (w.co && !w.done) {
        qemu_coroutine_yield();
    }
    turn_main_loop(&w);
}
