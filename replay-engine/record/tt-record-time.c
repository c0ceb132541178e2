/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Logs the time while recording: at accesses to devices, where the guest waits for the
 * outside world, at interrupts, so that a guest which only computes has some, too, and at
 * halts, where time passes and the position does not. Under KVM these are also places at
 * which a conversion can write an event of its own.
 */
#include "qemu/osdep.h"
#include "record/tt-record-time.h"
#include "accel-tt/tt-position.h"
#include "record/tt-record.h"
#include "qemu/timer.h"
#include "system/cpu-timers.h"

#define EVERY_NS 250000
#define LONG_NS  50000          /* a shorter halt does not matter */

static uint64_t next_ns;
/* An access to a device looks at the host's tick counter, which costs an instruction, and
 * only after half of EVERY_NS at the clock. */
static struct {
    uint64_t ns, at, wait;          /* of the last time; ticks: then, to wait */
} ticks;
/* The last halt began so soon after a time that it has none; written when it ends. */
static struct {
    bool is_on;
    uint64_t pos, ns, tsc;
} halt;

void tt_record_time_start(void)
{
    next_ns = 0;
    halt.is_on = false;
    ticks.wait = 0;
}

/* How fast the counter goes is taken from the last two times, by a clock that runs while
 * the VM stands, as the counter does. */
static void note_ticks(void)
{
    uint64_t now = cpu_get_host_ticks(), ns = get_clock(), took = ns - ticks.ns;

    if (next_ns && took >= EVERY_NS) {
        ticks.wait = (now - ticks.at) / (took / (EVERY_NS / 2));
    }
    ticks.at = now;
    ticks.ns = ns;
}

/* A counter that goes backwards looks late: then the clock is asked. */
static bool may_be_due(void)
{
    return (uint64_t)cpu_get_host_ticks() - ticks.at >= ticks.wait;
}

static void put(uint64_t ns, uint64_t tsc, bool is_nested, TtRecordPut *record)
{
    TtEvent ev = { .kind = TT_EV_TIME, .nested = is_nested, .addr = ns, .val = tsc };

    note_ticks();
    next_ns = ns + EVERY_NS;
    record(&ev);
}

static void halt_ends(TtRecordPut *record)
{
    uint64_t now = tt_record_ns();
    bool is_long = halt.is_on && halt.pos == tt_position() && now - halt.ns >= LONG_NS;

    halt.is_on = false;
    if (is_long) {
        put(halt.ns, halt.tsc, false, record);
    }
    if (is_long || now >= next_ns) {
        put(now, cpus_get_elapsed_ticks(), false, record);
    }
}

void tt_record_time_before(const TtEvent *ev, TtRecordPut *record)
{
    if (ev->kind <= TT_EV_MMIO_ST && may_be_due()) {
        uint64_t now = tt_record_ns();

        if (now >= next_ns) {
            put(now, cpus_get_elapsed_ticks(), true, record);   /* in its instruction */
        }
    } else if (ev->kind == TT_EV_UNHALT && !tt_now.device_depth) {
        halt_ends(record);
    } else if (ev->kind == TT_EV_INTR && may_be_due()) {
        uint64_t now = tt_record_ns();

        if (now >= next_ns) {
            put(now, cpus_get_elapsed_ticks(), false, record);
        }
    }
}

void tt_record_time(TtRecordPut *record)
{
    uint64_t now = tt_record_ns(), tsc = cpus_get_elapsed_ticks();

    if (now >= next_ns) {
        put(now, tsc, false, record);
        halt.is_on = false;
    } else {
        halt.is_on = true;
        halt.pos = tt_position();
        halt.ns = now;
        halt.tsc = tsc;
    }
}
