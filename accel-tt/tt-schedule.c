/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns: which of several vCPUs runs while they are recorded, and for how long. Nothing
 * here is part of a replay: the log says who runs.
 *
 * A vCPU runs until it waits (HLT, PAUSE), has run for TT_TIME_SLICE positions, or was
 * interrupted; then the next one that can run has its turn.
 *
 * Context: vCPU thread, outside cpu_exec.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-schedule.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "log/tt-log.h"
#include "session/tt-ops.h"
#include "hw/core/cpu.h"
#include "qemu/main-loop.h"
#include "system/cpus.h"

bool tt_schedule_chaos;

/* Positions that a vCPU may run while others could: some 1 ms. */
#define TT_TIME_SLICE (1u << 20)

static uint64_t slice_end;      /* others are due here */
static bool has_yielded;        /* it waits for another, by PAUSE perhaps */

void tt_schedule_start(void)
{
    slice_end = 0;
    has_yielded = false;
}

uint64_t tt_schedule_end(void)
{
    return slice_end;
}

void tt_schedule_note(bool yielded)
{
    has_yielded = yielded;
}

static bool can_go(CPUState *cpu)
{
    return !tt_vcpu_has_duties(cpu) && !cpu_is_stopped(cpu) && !cpu_thread_is_idle(cpu);
}

static void record_switch(CPUState *cpu)
{
    TtEvent ev = { .kind = TT_EV_CPU_SWITCH, .addr = cpu->cpu_index };

    tt_log_event(&ev);
    tt_vcpus_turn_to(cpu);
}

/* Chaos: time slices of all lengths, short ones as often as long ones. */
static uint64_t slice_length(void)
{
    return tt_schedule_chaos ? 1 + (g_random_int() & (TT_TIME_SLICE - 1)) %
        (1u << g_random_int_range(1, 20)) : TT_TIME_SLICE;
}

/* False: nobody can run. */
bool tt_schedule_choose(void)
{
    unsigned n = tt_vcpus_count(), now = tt_vcpu()->cpu_index;
    unsigned first = 1;

    if (n == 1) {
        return true;
    }
    if (!has_yielded && tt_now.pos < slice_end && can_go(tt_vcpu())) {
        return true;
    }
    has_yielded = false;
    if (tt_schedule_chaos) {
        first = g_random_int_range(0, n);
    }
    for (unsigned i = first; i < first + n; i++) {
        CPUState *cpu = tt_vcpus_at((now + i) % n);

        if (can_go(cpu)) {
            if (cpu != tt_vcpu()) {
                record_switch(cpu);
            }
            slice_end = tt_now.pos + slice_length();
            return true;
        }
    }
    return false;
}
