/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes of devices to guest RAM while it is recorded: hooks of the memory API.
 */
#include "qemu/osdep.h"
#include "accel-tt/tt-position.h"
#include "accel-tt/tt-token.h"
#include "hw-tt/memory/tt-guard.h"
#include "hw-tt/memory/tt-memory.h"
#include "hw-tt/memory/tt-memory-watch.h"
#include "io/tt-base.h"
#include "log/tt-log.h"
#include "pages/tt-page.h"
#include "session/tt-ops.h"
#include "session/tt-session.h"
#include "tt-memory-int.h"
#include "tt/hooks.h"
#include "qapi/error.h"
#include "exec/memory.h"
#include "exec/ram_addr.h"
#include "exec/ramblock.h"
#include "hw/core/cpu.h"

#include <xxhash.h>

bool tt_maps_directly, tt_memory_applies;

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

/* ---- what a disk has ---- */

/* Less is not worth looking for. */
#define DISK_BYTES_MIN  512

static TtMemoryFindOnDisk *find_on_disk;

void tt_memory_on_disk(TtMemoryFindOnDisk *find)
{
    find_on_disk = find;
}

/* From page @at on, as far as one event goes: how many bytes stand in a row on one disk? */
static uint64_t find_run(const TtBlock *b, uint64_t at, uint64_t end, TtDiskRef *first)
{
    uint64_t n = 0;
    TtDiskRef ref;

    while (at + n < end && at + n + TT_PAGE_BYTES <= b->size_bytes &&
           n + TT_PAGE_BYTES <= TT_LOG_DATA_MAX && find_on_disk(b->host + at + n, &ref)) {
        if (!n) {
            *first = ref;
        } else if (ref.disk != first->disk || ref.version != first->version ||
                   ref.sector != first->sector + n / 512) {
            break;
        }
        n += TT_PAGE_BYTES;
    }
    return n;
}

static void log_ref(unsigned index, uint64_t at, uint64_t n, TtDiskRef *ref)
{
    uint8_t data[TT_DISK_REF_BYTES_MAX];
    TtEvent ev = {
        .kind = TT_EV_DISK, .addr = index, .val = at, .aux = n, .data = data,
    };

    ref->sum = XXH3_64bits(tt_memory_block(index)->host + at, n);
    ev.len = tt_disk_ref_encode(ref, data);
    tt_log_event(&ev);
}

/* From page @at on, memory is as @first says. The device wrote its bytes @from to @to. */
static void log_sectors(unsigned index, uint64_t at, uint64_t from, uint64_t to,
                        const TtDiskRef *first)
{
    TtDiskRef ref = *first;

    from = QEMU_ALIGN_DOWN(from, 512);
    to = QEMU_ALIGN_UP(to, 512);
    ref.sector += from / 512;
    log_ref(index, at + from, to - from, &ref);
}

/* ---- what a frame has ---- */

static TtMemoryFindInFrame *find_in_frame;

void tt_memory_in_frame(TtMemoryFindInFrame *find)
{
    find_in_frame = find;
}

/* No disk has it. */
static void log_bytes(unsigned index, uint64_t offset, uint64_t len)
{
    const uint8_t *host = tt_memory_block(index)->host;
    uint64_t at;
    TtEvent ev;

    while (find_in_frame && len && find_in_frame(host + offset, len, &at, &ev)) {
        tt_memory_log_bytes(index, offset, at);
        ev.addr = index;
        ev.val = offset + at;
        offset += at + ev.aux;
        len -= at + ev.aux;
        tt_log_event(&ev);
    }
    tt_memory_log_bytes(index, offset, len);
}

/* A page is looked for as a whole, though the device may have written a part of it: what
 * stands there now is what the disk has. Named are the sectors that it wrote to. */
static void log_written(unsigned index, uint64_t offset, uint64_t len)
{
    const TtBlock *b = tt_memory_block(index);
    uint64_t end = offset + len, at = QEMU_ALIGN_DOWN(offset, TT_PAGE_BYTES);
    bool looks = find_on_disk && len >= DISK_BYTES_MIN;

    while (looks && at < end) {
        TtDiskRef ref;
        uint64_t n = find_run(b, at, end, &ref);

        if (n) {
            if (offset < at) {
                log_bytes(index, offset, at - offset);
            }
            log_sectors(index, at, MAX(offset, at) - at, MIN(end - at, n), &ref);
            offset = at + n;
        }
        at += n ? n : TT_PAGE_BYTES;
    }
    if (offset < end) {
        log_bytes(index, offset, end - offset);
    }
}

void tt_ram_written_slow(MemoryRegion *mr, uint64_t offset, uint64_t len)
{
    bool turned = tt_memory_turn_to_present(mr->ram_block);
    uint64_t size = mr->ram_block->used_length;
    int index;

    /* Cards name more than they have, and a guest says where. */
    offset = MIN(offset, size);
    len = MIN(len, size - offset);
    if (!tt_memory_applies) {
        tt_memory_watch_note(mr, offset, len, false);
    }
    if (tt_recording() && tt_session.live && len && is_external()) {
        index = tt_memory_find(mr->ram_block);
        if (index >= 0) {
            assert(offset + len <= tt_memory_block(index)->size_bytes);
            log_written(index, offset, len);
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
        /* QEMU does not: the next checkpoint, and a device's shadow memory, would keep
         * what was there. */
        cpu_physical_memory_set_dirty_range(((RAMBlock *)ram_block)->offset + start, len,
                                            1 << DIRTY_MEMORY_TT |
                                            1 << DIRTY_MEMORY_MIGRATION);
    }
    if (turned) {
        tt_world_swap();
    }
}
