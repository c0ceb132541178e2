/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watching bytes of RAM. QEMU calls notdirty_write before each store to a page that has
 * translated code, until that is gone. A watched page is said to have some: its flag in
 * DIRTY_MEMORY_CODE is kept clear. So no TLB entry is dropped, which the guest could
 * see in its accessed bits, and no other page is slower.
 */
#include "qemu/osdep.h"
#include "hw-tt/memory/tt-memory-watch.h"
#include "accel-tt/x86/tt-x86-regs.h"
#include "tt/hooks.h"
#include "exec/memory.h"
#include "exec/ram_addr.h"
#include "exec/target_page.h"
#include "hw/core/cpu.h"

bool tt_watches_ram, tt_store_stops, tt_logs_stores;
unsigned tt_walks;

typedef struct Watched {
    uint64_t from, to;          /* ram_addr_t; @to is not in it */
} Watched;

static struct {
    Watched ranges[TT_MEMORY_WATCHES];
    unsigned n;
    TtMemoryWritten *written;
    bool stops;
} watch;

static struct {
    TtMemoryLog *log;
    bool puts_back;             /* what is written now is no news */
} undo;

static void protect(void)
{
    for (unsigned i = 0; i < watch.n; i++) {
        uint64_t page = watch.ranges[i].from & TARGET_PAGE_MASK;

        for (; page < watch.ranges[i].to; page += TARGET_PAGE_SIZE) {
            if (cpu_physical_memory_get_dirty_flag(page, DIRTY_MEMORY_CODE)) {
                cpu_physical_memory_test_and_clear_dirty(page, TARGET_PAGE_SIZE,
                                                         DIRTY_MEMORY_CODE);
            }
        }
    }
}

static bool meets(uint64_t from, uint64_t to)
{
    for (unsigned i = 0; i < watch.n; i++) {
        if (from < watch.ranges[i].to && to > watch.ranges[i].from) {
            return true;
        }
    }
    return false;
}

/* Is something of the page watched? */
static bool shares_page(uint64_t page)
{
    return meets(page, page + TARGET_PAGE_SIZE);
}

void tt_memory_watch(uint64_t ram_addr, uint64_t len, TtMemoryWritten *written)
{
    watch.n = 0;
    watch.written = written;
    watch.stops = false;
    tt_memory_watch_also(ram_addr, len);
}

void tt_memory_watch_stopping(uint64_t ram_addr, uint64_t len, TtMemoryWritten *written)
{
    tt_memory_watch(ram_addr, len, written);
    watch.stops = true;
}

void tt_memory_watch_also(uint64_t ram_addr, uint64_t len)
{
    g_assert(watch.n < TT_MEMORY_WATCHES);
    watch.ranges[watch.n++] = (Watched) { ram_addr, ram_addr + len };
    tt_watches_ram = true;
    protect();
}

void tt_memory_unwatch(void)
{
    watch.n = 0;
    tt_watches_ram = tt_logs_stores;
}

void tt_memory_log_stores(TtMemoryLog *log)
{
    undo.log = log;
    tt_logs_stores = log;
    tt_watches_ram = watch.n || log;
}

/* A walk of page tables tells of the first byte of an entry, which is the one with the
 * accessed and dirty bits. */
static void log_store(uint64_t ram_addr, unsigned size)
{
    undo.log(ram_addr, qemu_map_ram_ptr(NULL, ram_addr), size);
}

void tt_memory_put_back(uint64_t ram_addr, const void *old, size_t len)
{
    void *host = qemu_map_ram_ptr(NULL, ram_addr);
    ram_addr_t offset;
    MemoryRegion *mr;

    if (!memcmp(host, old, len)) {
        return;
    }
    memcpy(host, old, len);
    mr = memory_region_from_host(host, &offset);
    undo.puts_back = true;
    tt_ram_changed(mr, offset, len);
    undo.puts_back = false;
}

bool tt_ram_stored_slow(uint64_t ram_addr, unsigned size)
{
    uint64_t page = ram_addr & TARGET_PAGE_MASK;

    tt_store_stops = false;
    if (tt_logs_stores) {
        log_store(ram_addr, size);
    }
    if (!shares_page(page)) {
        return tt_logs_stores;
    }
    if (meets(ram_addr, ram_addr + size) && !(watch.stops && tt_walks)) {
        watch.written(ram_addr, size, false);
        tt_store_stops = watch.stops;
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
    if (tt_logs_stores && !undo.puts_back) {
        undo.log(at, NULL, len);
    }
    if (len && meets(at, at + len)) {
        watch.written(at, len, by_device);
    }
    protect();
}

bool tt_memory_ram_at(CPUState *cpu, uint64_t addr, uint64_t *ram, unsigned *len,
                      uint64_t *physical)
{
    MemTxAttrs attrs;
    hwaddr page = tt_target_address(cpu, &addr) ?
        cpu_get_phys_page_attrs_debug(cpu, addr & TARGET_PAGE_MASK, &attrs) : (hwaddr)-1;
    hwaddr xlat, left = TARGET_PAGE_SIZE - (addr & ~TARGET_PAGE_MASK);
    AddressSpace *as;
    MemoryRegion *mr;

    *physical = UINT64_MAX;
    if (page == (hwaddr)-1) {
        return false;
    }
    *physical = page + (addr & ~TARGET_PAGE_MASK);
    RCU_READ_LOCK_GUARD();
    as = cpu_get_address_space(cpu, cpu_asidx_from_attrs(cpu, attrs));
    mr = address_space_translate(as, *physical, &xlat, &left, false, attrs);
    if (!memory_region_is_ram(mr) && !memory_region_is_romd(mr)) {
        return false;
    }
    *ram = memory_region_get_ram_addr(mr) + xlat;
    *len = left;
    return true;
}

bool tt_memory_ram_at_physical(CPUState *cpu, uint64_t physical, bool is_smm,
                               uint64_t *ram)
{
    const MemTxAttrs attrs = { .secure = is_smm };
    AddressSpace *as = cpu_get_address_space(cpu, cpu_asidx_from_attrs(cpu, attrs));
    hwaddr xlat, left = 1;
    MemoryRegion *mr;

    RCU_READ_LOCK_GUARD();
    mr = address_space_translate(as, physical, &xlat, &left, false, attrs);
    if (!memory_region_is_ram(mr)) {
        return false;
    }
    *ram = memory_region_get_ram_addr(mr) + xlat;
    return true;
}
