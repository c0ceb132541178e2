/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between the main loop's poll and its lock.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-poll.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpus.h"
#include "tt/hooks-poll.h"
#include "qemu/rcu.h"
#include "qemu/rcu_queue.h"
#include "qemu/timer.h"
#include "hw/core/cpu.h"

static QLIST_HEAD(, TtPoll) polls = QLIST_HEAD_INITIALIZER(polls);

/* How many of @ready descriptors are for handlers; the others are not ready any more. */
static int look(GPollFD *fds, guint n, int ready)
{
    TtPoll *p;

    RCU_READ_LOCK_GUARD();
    for (guint i = 0; i < n; i++) {
        if (!(fds[i].revents & G_IO_IN)) {
            continue;
        }
        QLIST_FOREACH_RCU(p, &polls, next) {
            if (fds[i].fd == qatomic_read(&p->fd)) {
                break;
            }
        }
        if (p && p->ready(p->opaque)) {
            fds[i].revents &= ~G_IO_IN;
            ready -= !fds[i].revents;
        }
    }
    return ready;
}

static void before(void)
{
    TtPoll *p;

    RCU_READ_LOCK_GUARD();
    QLIST_FOREACH_RCU(p, &polls, next) {
        if (p->before) {
            p->before(p->opaque);
        }
    }
}

static int poll_early(GPollFD *fds, guint n, int64_t timeout)
{
    int64_t end = timeout > 0 ? get_clock() + timeout : timeout, left = timeout;

    before();
    for (;;) {
        int ready = qemu_poll_ns(fds, n, left);

        if (ready > 0) {
            ready = look(fds, n, ready);
            left = end > 0 ? end - get_clock() : end;
            if (!ready && (end < 0 || left > 0)) {
                continue;
            }
        }
        return ready;
    }
}

typedef struct Asked {
    void (*func)(void *opaque);
    void *opaque;
} Asked;

static void do_asked(CPUState *cpu, run_on_cpu_data data)
{
    g_autofree Asked *a = data.host_ptr;

    a->func(a->opaque);
}

bool tt_poll_ask_vcpu(void (*func)(void *opaque), void *opaque)
{
    Asked *a;

    if (!tt_token_is_in_guest()) {
        return false;
    }
    a = g_new(Asked, 1);
    *a = (Asked) { func, opaque };
    async_run_on_cpu(tt_vcpu() ?: first_cpu, do_asked, RUN_ON_CPU_HOST_PTR(a));
    return true;
}

/* A vCPU that leaves guest code says so before it looks for work. */
bool tt_poll_is_vcpu_asked(void)
{
    smp_mb();
    if (!tt_token_is_in_guest()) {
        return false;
    }
    tt_token_kick();                    /* one may be lost: TT_HOOK_KICK_LATE */
    return true;
}

void tt_poll_add(TtPoll *p)
{
    QLIST_INSERT_HEAD_RCU(&polls, p, next);
    qatomic_set(&tt_main_loop_poll, poll_early);
}

void tt_poll_remove(TtPoll *p)
{
    QLIST_REMOVE_RCU(p, next);
    if (QLIST_EMPTY_RCU(&polls)) {
        qatomic_set(&tt_main_loop_poll, qemu_poll_ns);
    }
}
