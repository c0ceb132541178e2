/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Execution token: while the vCPU runs guest code nothing else may touch the
 * replayed system. The BQL itself is the token.
 *
 * The vCPU thread holds the BQL through guest code, so its own bql_lock is
 * only counted. Every other thread queues, kicks the vCPU if that is in guest
 * code, and takes the lock as usual; the vCPU leaves between two blocks, where
 * its position is exact, and gives way.
 *
 *   T1  A thread counts itself in `queued` before it looks at `in_guest`; the
 *       vCPU sets `in_guest` before it looks at `queued` (full barriers on both
 *       sides): one of the two sees the other, so no request is lost.
 *   T2  Fairness towards the others: the vCPU, once asked, does not take the
 *       token back before all who had asked by then were served.
 *   T3  Fairness towards the vCPU: while it waits for its turn, newcomers wait
 *       too (`turn`), and after its turn it may run a short slice even when
 *       others already wait again.
 *   T4  A thread that sleeps on a condition variable of the BQL is counted in
 *       when the vCPU ends its sleep (tt_token_owe), since the C library takes
 *       the lock back without asking us.
 *
 * The token comes and goes with recordings (`active`). A thread that has counted itself
 * in pays back whether or not the token is there by then, so the counts always agree;
 * therefore tt_token_on stays set: after a recording a lock costs three calls that do
 * nothing (some 5 ns).
 *
 * Either side spins for as long as it takes to leave a block, or to serve a
 * request, before it sleeps: waking a thread costs more than most requests do. It
 * hardly spins if the other one was seen last on the host CPU that it is on itself: that
 * one cannot run there before it sleeps.
 * Nothing but time depends on `inherited`, `left` and the CPUs.
 *
 * tests/functional/test_token.py is the torture of this file.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "tt/hooks.h"
#include "qemu/main-loop.h"
#include "qemu/thread.h"
#include "hw/core/cpu.h"

/* Pauses of some 140 cycles each: about 15 us. */
#define SPINS 300
#define KICK_EVERY 16

bool tt_token_on;

static bool active;
static __thread bool mine;          /* this is the vCPU thread */
static __thread unsigned nest;
static __thread bool counted;       /* this thread is in `queued` */
static __thread bool holds;         /* it was served and has not left */
static unsigned queued, served, left;   /* free-running counts */
static bool inherited;                   /* the vCPU has given the token away */
static bool in_guest;
static bool turn;                   /* the vCPU is to be next */
/* Host CPUs: where guest code began, and who asked last. -1: nobody yet. */
static int vcpu_on = -1, other_on = -1;
static QemuEvent all_served, turn_over;
static QemuSemaphore has_left;      /* guest code, which somebody waits for */

void tt_token_start(void)
{
    if (!tt_token_on) {
        qemu_event_init(&all_served, true);
        qemu_event_init(&turn_over, true);
        qemu_sem_init(&has_left, 0);
        tt_token_on = true;
    }
    qatomic_set(&active, true);
}

void tt_token_stop(void)
{
    qatomic_set(&active, false);
}

void tt_token_adopt(void)
{
    assert(tt_token_on && bql_locked() && !mine && !nest);
    mine = true;
}

void tt_token_disown(void)
{
    assert(bql_locked() && mine && !nest);
    mine = false;
}

bool tt_token_is_mine(void)
{
    return mine;
}

bool tt_token_unnest_slow(void)
{
    if (mine && nest) {
        nest--;
        return true;
    }
    if (holds) {
        holds = false;
        qatomic_inc(&left);
    }
    return false;
}

bool tt_token_unwind(void)
{
    if (tt_token_on && mine) {
        nest = 0;
        tt_now.device_depth = 0;
        tt_now.acknowledging = false;
        return true;
    }
    return false;
}

void tt_token_kick(void)
{
    CPUState *cpu = tt_vcpu();

    if (cpu) {
        cpu_exit(cpu);
    }
}

/* The vCPU gives the token at its next exit. If there is none, it is kicked, again and
 * again: not every place will do. */
static void wait_for_exit(void)
{
    unsigned ms = MAX(tt_backend->hold_us / 1000, 1);

    while (qatomic_read(&in_guest) && !qatomic_read(&inherited)) {
        if (qemu_sem_timedwait(&has_left, ms)) {
            tt_backend->kick(tt_vcpu());
            ms = 1;
        }
    }
}

/* Asks the vCPU to leave guest code, and waits a little. */
static void ask(void)
{
    bool is_here = qatomic_read(&vcpu_on) == qatomic_read(&other_on);
    unsigned spins = is_here ? KICK_EVERY + 1 : SPINS;

    for (unsigned n = 0; n < spins && !qatomic_read(&inherited); n++) {
        if (n % KICK_EVERY == 0) {
            tt_token_kick();        /* one may be lost: TT_HOOK_KICK_LATE */
        }
        cpu_relax();
    }
}

static void enqueue(void)
{
    if (!qatomic_read(&active)) {
        return;
    }
    while (qatomic_read(&turn)) {
        qemu_event_wait(&turn_over);            /* T3 */
    }
    counted = true;
    qatomic_set(&other_on, sched_getcpu());
    qatomic_inc(&queued);
    smp_mb();                                   /* T1 */
    if (qatomic_read(&in_guest) && tt_backend->hold_us) {
        wait_for_exit();
    } else if (qatomic_read(&in_guest)) {
        ask();
    }
}

bool tt_token_take_slow(void)
{
    if (!mine) {
        enqueue();
    } else if (bql_locked()) {
        nest++;
        return true;
    }
    return false;
}

void tt_token_served_slow(void)
{
    if (counted) {
        counted = false;
        holds = true;
        qatomic_inc(&served);
        qemu_event_set(&all_served);
    }
}

bool tt_token_owe_slow(void)
{
    if (mine) {
        qatomic_inc(&queued);                   /* T4 */
    }
    return mine;
}

void tt_token_repaid(void)
{
    qatomic_inc(&left);
    qatomic_inc(&served);
    qemu_event_set(&all_served);
}

bool tt_token_is_wanted(void)
{
    return qatomic_read(&queued) != qatomic_read(&served);
}

bool tt_token_yield(void (*before)(void))
{
    unsigned goal;
    int here;

    assert(mine && bql_locked());
    if (!tt_token_is_wanted()) {
        return false;
    }
    assert(nest == 0);
    before();
    goal = qatomic_read(&queued);
    here = sched_getcpu();
    bql_unlock();
    qatomic_set(&inherited, true);
    for (unsigned n = 0; n < SPINS && here != qatomic_read(&other_on) &&
         (int)(qatomic_read(&left) - goal) < 0; n++) {
        cpu_relax();
    }
    while ((int)(qatomic_read(&served) - goal) < 0) {       /* T2 */
        qemu_event_reset(&all_served);
        if ((int)(qatomic_read(&served) - goal) < 0) {
            qemu_event_wait(&all_served);
        }
    }
    qemu_event_reset(&turn_over);
    qatomic_set_mb(&turn, true);                            /* T3 */
    bql_lock();
    qatomic_set(&inherited, false);
    qatomic_set(&turn, false);
    qemu_event_set(&turn_over);
    return tt_token_is_wanted();
}

bool tt_token_is_in_guest(void)
{
    return qatomic_read(&active) && qatomic_read(&in_guest) && !tt_backend->hold_us;
}

void tt_token_enter_guest(bool slice)
{
    qatomic_set(&vcpu_on, sched_getcpu());
    /* T3: a slice is not cut short. If an exit is waited for, the slice ends there. */
    qatomic_set(&in_guest, !slice || tt_backend->hold_us);
    smp_mb();                                   /* T1 */
    if (!slice && !tt_backend->hold_us && tt_token_is_wanted()) {
        tt_token_kick();
    }
}

void tt_token_leave_guest(void)
{
    unsigned waiting;

    qatomic_set_mb(&in_guest, false);
    if (tt_backend->hold_us) {
        waiting = qatomic_read(&queued) - qatomic_read(&served);
        while (waiting--) {
            qemu_sem_post(&has_left);   /* one too many wakes in vain, once */
        }
    }
}
