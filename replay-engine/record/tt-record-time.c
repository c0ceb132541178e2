/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What time it was. An access to a device is where the guest waits for the outside, and a
 * halt is where time passes and the position does not: so these are the places. Under KVM,
 * they are places at which a conversion can write an event of its own, too.
 */
#include "qemu/osdep.h"
#include "record/tt-record-time.h"
#include "accel-tt/tt-position.h"
#include "record/tt-record.h"
#include "system/cpu-timers.h"

#define EVERY_NS 250000

static uint64_t next_ns;

void tt_record_time_start(void)
{
    next_ns = 0;
}

static void put(bool is_nested, TtRecordPut *record)
{
    uint64_t now = tt_record_ns();
    TtEvent ev = { .kind = TT_EV_TIME, .nested = is_nested, .addr = now };

    if (now >= next_ns) {
        next_ns = now + EVERY_NS;
        ev.val = cpus_get_elapsed_ticks();
        record(&ev);
    }
}

void tt_record_time_before(const TtEvent *ev, TtRecordPut *record)
{
    if (ev->kind <= TT_EV_MMIO_ST) {
        put(true, record);              /* in its instruction */
    } else if (ev->kind == TT_EV_UNHALT && !tt_now.device_depth) {
        put(false, record);
    }
}

void tt_record_time(TtRecordPut *record)
{
    put(false, record);
}
