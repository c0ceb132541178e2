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

/* Sync points count anew from some positions: how many of these are not after @pos? */
static unsigned n_starts(uint64_t pos)
{
    const TtManifest *m = &tt_session.manifest;
    unsigned low = 0, high = m->n_sync_starts;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (m->sync_starts[middle] <= pos) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint64_t tt_last_sync_point(uint64_t pos)
{
    const TtManifest *m = &tt_session.manifest;
    unsigned n = n_starts(pos);
    uint64_t start = n ? m->sync_starts[n - 1] : 0;

    return m->sync_interval ? pos - (pos - start) % m->sync_interval : start;
}

uint64_t tt_next_sync_point(uint64_t pos)
{
    const TtManifest *m = &tt_session.manifest;
    unsigned n = n_starts(pos);
    uint64_t next = m->sync_interval ? tt_last_sync_point(pos) + m->sync_interval :
        UINT64_MAX;

    return n < m->n_sync_starts ? MIN(next, m->sync_starts[n]) : next;
}

static void __attribute__((constructor)) take_part_in_worlds(void)
{
    static const TtPosition start = TT_POSITION_START;

    tt_world_register(&tt_now, &start, sizeof(tt_now));
}
