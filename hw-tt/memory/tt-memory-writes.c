/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What devices write into guest RAM while it is recorded: hooks of the memory API.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-token.h"
#include "hw-tt/memory/tt-guard.h"
#include "hw-tt/memory/tt-memory.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt-memory-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "exec/memory.h"
#include "exec/ramblock.h"
#include "hw/core/cpu.h"

bool tt_maps_directly;

/*
 * Written by a device: from another thread, while the vCPU is outside guest
 * code, or inside one of its device calls. The CPU's own helper writes (SMM
 * state, page table bits) are not inputs.
 */
static bool is_external(void)
{
    return !tt_token_is_mine() || !current_cpu || !current_cpu->running ||
        tt_now.device_depth || tt_now.acknowledging;
}

/*
 * While the past is shown, a write into RAM that is not of the past belongs to
 * the VM that waits: it is logged where that stands. True: undo by
 * tt_world_swap.
 */
bool tt_memory_turn_to_present(RAMBlock *rb)
{
    if (!tt_past || tt_memory_find(rb) >= 0) {
        return false;
    }
    tt_world_swap();
    return true;
}

void tt_ram_written_slow(MemoryRegion *mr, uint64_t offset, uint64_t len)
{
    bool turned = tt_memory_turn_to_present(mr->ram_block);
    int index;

    if (tt_recording() && tt_session.live && len && is_external()) {
        index = tt_memory_find(mr->ram_block);
        if (index >= 0) {
            assert(offset + len <= tt_memory_block(index)->size_bytes);
            tt_memory_log_bytes(index, offset, len);
        }
    }
    if (turned) {
        tt_world_swap();
    }
}

void tt_mapped_written_slow(void *host, size_t len)
{
    ram_addr_t offset;
    MemoryRegion *mr = memory_region_from_host(host, &offset);

    if (mr) {
        tt_ram_changed(mr, offset, len);
    }
}

void tt_ram_discarded_slow(void *ram_block, uint64_t start, uint64_t len)
{
    bool turned = tt_memory_turn_to_present(ram_block);
    int index = tt_recording() && tt_session.live ? tt_memory_find(ram_block) : -1;
    uint8_t le[8];
    TtEvent ev = {
        .kind = TT_EV_RAM_FILL, .addr = index, .val = start,
        .data = le, .len = sizeof(le),
    };

    if (index >= 0) {
        tt_guard_discarded(ram_block, start, len);
        tt_put_le64(le, len);
        tt_log_event(&ev);
    }
    if (turned) {
        tt_world_swap();
    }
}
