/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The position: what passed in guest code, which the backend counts, and the
 * asynchronous events that were applied.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-token.h"
#include "accel-tt/tt-vcpus.h"
#include "session/tt-session.h"
#include "hw/core/cpu.h"

TtPosition tt_now = TT_POSITION_START;

uint64_t tt_position(void)
{
    CPUState *cpu = tt_vcpu();

    /* Inside a device call the vCPU may sleep and let another thread go on. */
    if ((tt_token_is_mine() || tt_now.device_depth) && cpu->running) {
        return tt_now.pos + tt_backend->passed(cpu);
    }
    return tt_now.pos;
}

void tt_position_reset(void)
{
    tt_now = (TtPosition) TT_POSITION_START;
}

uint64_t tt_next_sync_point(uint64_t pos)
{
    uint64_t step = tt_session.manifest.sync_interval;

    return step ? (pos / step + 1) * step : UINT64_MAX;
}

static void __attribute__((constructor)) take_part_in_worlds(void)
{
    static const TtPosition start = TT_POSITION_START;

    tt_world_register(&tt_now, &start, sizeof(tt_now));
}
