/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is the guest in a loop that nothing ends? When the log of exits stands still for
 * seconds, the state of the machine is kept, with a breakpoint at its address: if the
 * whole state is there once more, and no event came in between, it will come again and
 * again, and what was recorded next never does. Each time it is kept for twice as long
 * (Brent's way to find a cycle). A loop that counts in memory is not found.
 */
#include "qemu/osdep.h"
#include "tt-convert-parts-int.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-vcpus.h"
#include "accel-tt/x86/tt-landmark-x86.h"
#include "hw-tt/memory/tt-memory.h"
#include "log/tt-sched.h"
#include "replay/tt-replay-log.h"
#include "tt/hooks.h"
#include "exec/breakpoint.h"

static struct {
    CPUBreakpoint *bp;
    TtLandmark state;               /* registers and address alone */
    uint64_t cpu, ram;              /* digests */
    uint64_t pos;
    TtCursor at;
    unsigned ticks;                 /* that the log has stood still */
    bool is_tried;
} kept;

static bool has_moved(void)
{
    TtCursor now = tt_sched_tell(tt_replay_sched());

    return now.segment != kept.at.segment || now.index != kept.at.index;
}

static void forget(CPUState *cpu)
{
    if (kept.bp) {
        cpu_breakpoint_remove_by_ref(cpu, kept.bp);
        kept.bp = NULL;
    }
}

static void keep(CPUState *cpu)
{
    tt_x86_get_registers(cpu, &kept.state);
    kept.cpu = tt_vcpus_digest();
    kept.ram = tt_memory_digest();
    kept.pos = tt_position();
    kept.is_tried = false;
    cpu_breakpoint_insert(cpu, kept.state.pc, BP_GDB, &kept.bp);
    tt_hunting = true;
}

void tt_convert_repeat_tick(CPUState *cpu)
{
    if (has_moved()) {
        forget(cpu);
        kept.at = tt_sched_tell(tt_replay_sched());
        kept.ticks = 0;
    } else if (is_power_of_2(++kept.ticks)) {
        forget(cpu);
        keep(cpu);
    }
}

bool tt_convert_repeats(CPUState *cpu)
{
    if (!kept.bp || kept.is_tried || has_moved() || tt_position() == kept.pos ||
        tt_x86_match_place(cpu, &kept.state) == TT_X86_OTHER) {
        return false;
    }
    kept.is_tried = true;
    return tt_vcpus_digest() == kept.cpu && tt_memory_digest() == kept.ram;
}
