/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watching bytes of RAM. QEMU calls notdirty_write before each store to a page that has
 * translated code, until that is gone. A watched page is said to have some: its flag in
 * DIRTY_MEMORY_CODE is kept clear. So no TLB entry is dropped, which the guest could
 * see in its accessed bits, and no other page is slower.
 */
#include "qemu/osdep.h"
#include "hw-tt/memory/tt-memory-watch.h"
#include "tt/hooks.h"
#include "exec/memory.h"
#include "exec/ram_addr.h"
#include "exec/target_page.h"

bool tt_watches_ram;

static struct {
    uint64_t from, to;          /* ram_addr_t; @to is not in it */
    TtMemoryWritten *written;
} watch;

static void protect(void)
{
    uint64_t page = watch.from & TARGET_PAGE_MASK;

    for (; page < watch.to; page += TARGET_PAGE_SIZE) {
        if (cpu_physical_memory_get_dirty_flag(page, DIRTY_MEMORY_CODE)) {
            cpu_physical_memory_test_and_clear_dirty(page, TARGET_PAGE_SIZE,
                                                     DIRTY_MEMORY_CODE);
        }
    }
}

void tt_memory_watch(uint64_t ram_addr, uint64_t len, TtMemoryWritten *written)
{
    watch.from = ram_addr;
    watch.to = ram_addr + len;
    watch.written = written;
    tt_watches_ram = true;
    protect();
}

void tt_memory_unwatch(void)
{
    tt_watches_ram = false;
}

bool tt_ram_stored_slow(uint64_t ram_addr, unsigned size)
{
    uint64_t page = ram_addr & TARGET_PAGE_MASK;

    if (page >= watch.to || page + TARGET_PAGE_SIZE <= watch.from) {
        return false;
    }
    if (ram_addr < watch.to && ram_addr + size > watch.from) {
        watch.written(false);
    }
    protect();
    return true;
}

void tt_memory_watch_note(MemoryRegion *mr, uint64_t offset, uint64_t len,
                          bool by_device)
{
    uint64_t at = memory_region_get_ram_addr(mr) + offset;

    if (!tt_watches_ram) {
        return;
    }
    if (len && at < watch.to && at + len > watch.from) {
        watch.written(by_device);
    }
    protect();
}
