/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Owns the list of those who wait. Their steps are called from the main loop: at
 * once when tt_wait_kick was called, else at ticks, which get rarer, up to
 * TICK_MS_MAX.
 */
#include "qemu/osdep.h"
#include "monitor-cmds/tt-wait.h"
#include "qemu/main-loop.h"
#include "qemu/coroutine.h"
#include "qemu/timer.h"
#include "block/aio.h"
#include "monitor/monitor.h"

#define TICK_MS_MAX 20

typedef struct Waiter {
    TtWaitStep *step;
    void *opaque;
    Coroutine *co;              /* NULL: it turns the main loop */
    unsigned n_ticks;
    uint64_t round;             /* it was asked in this one */
    bool asking, done;
    QTAILQ_ENTRY(Waiter) next;
} Waiter;

static QTAILQ_HEAD(, Waiter) waiters = QTAILQ_HEAD_INITIALIZER(waiters);
static QEMUTimer tick;
static bool has_tick;
static uint64_t n_rounds;

/* A step may turn an event loop, and so the list may change while it runs. */
static Waiter *next_to_ask(uint64_t round)
{
    Waiter *w;

    QTAILQ_FOREACH(w, &waiters, next) {
        if (!w->asking && w->round < round) {
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
        timer_mod(&tick, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + ms);
    }
}

static void ask_all(void *opaque)
{
    uint64_t round = ++n_rounds;
    Waiter *w;

    while ((w = next_to_ask(round))) {
        w->round = round;
        w->n_ticks++;
        w->asking = true;
        w->done = w->step(w->opaque);
        w->asking = false;
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
    aio_bh_schedule_oneshot(qemu_get_aio_context(), ask_all, NULL);
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

    if (!has_tick) {            /* polled by AIO_WAIT_WHILE, too: jobs at the end */
        has_tick = true;
        aio_timer_init(qemu_get_aio_context(), &tick, QEMU_CLOCK_REALTIME,
                       SCALE_MS, ask_all, NULL);
    }
    QTAILQ_INSERT_TAIL(&waiters, &w, next);
    tt_wait_kick();
    while (w.co && !w.done) {
        qemu_coroutine_yield();
    }
    turn_main_loop(&w);
}
