/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of a DMA that a device made by pointer. While recording its data went
 * into a bounce buffer, which becomes visible here, at one logged moment.
 *
 * A device may write part of what it has mapped in another way (virtio-scsi maps
 * what it reads from a disk and transfers to its address), or less than it says,
 * and the guest may write to neighbouring bytes meanwhile. So only the bytes that the
 * device changed in the buffer go to RAM. A byte that it set to the value that was
 * there counts as not changed: as if the device had written it at once, when it mapped.
 */
#include "qemu/osdep.h"
#include "tt/hooks.h"
#include "exec/memory.h"
#include "hw/boards.h"
#include "qemu/lockable.h"
#include "qemu/thread.h"
#include "qemu/units.h"

/* A guest says where devices write, and how often to the same place: each PCI function gets
 * as much as the VM can have RAM, and this. It takes twice that of the host's. */
#define SPARE   (256 * MiB)

/* Compared as a whole first; most are wholly changed, or not at all. */
#define CHUNK 64

/* Of each address space: what its devices have under way. Upstream's own count is for
 * what is no RAM. */
static GHashTable *taken;
static QemuMutex lock;

static void __attribute__((constructor)) init(void)
{
    qemu_mutex_init(&lock);
    taken = g_hash_table_new(NULL, NULL);
}

uint64_t tt_bounce_take(AddressSpace *as, uint64_t len)
{
    uint64_t most = current_machine->maxram_size + SPARE, used;

    QEMU_LOCK_GUARD(&lock);
    used = (uintptr_t)g_hash_table_lookup(taken, as);
    len = used >= most ? 0 : MIN(len, QEMU_ALIGN_DOWN(most - used, 4096));
    g_hash_table_insert(taken, as, (void *)(uintptr_t)(used + len));
    return len;
}

uint64_t tt_bounce_give(AddressSpace *as, uint64_t len)
{
    uint64_t used;

    QEMU_LOCK_GUARD(&lock);
    used = (uintptr_t)g_hash_table_lookup(taken, as) - len;
    if (used) {
        g_hash_table_insert(taken, as, (void *)(uintptr_t)used);
    } else {
        g_hash_table_remove(taken, as);
    }
    return 0;
}

/* One chunk: its unchanged bytes become what RAM holds now. False: no others. */
static bool merge_chunk(uint8_t *buffer, const uint8_t *before,
                        const uint8_t *now, size_t n)
{
    if (!memcmp(buffer, before, n)) {
        return false;
    }
    if (memcmp(now, before, n)) {
        for (size_t i = 0; i < n; i++) {
            if (buffer[i] == before[i]) {
                buffer[i] = now[i];
            }
        }
    }
    return true;
}

/* Not by its address: what a guest's IOMMU lets a device write, it may not let it read. */
bool tt_bounce_merge(MemoryRegion *mr, uint8_t *host, uint8_t *buffer,
                     const uint8_t *before, uint64_t len)
{
    uint64_t first = len, end = 0;

    for (uint64_t at = 0; before && at < len; at += CHUNK) {
        uint64_t n = MIN(CHUNK, len - at);

        if (merge_chunk(buffer + at, before + at, host + at, n)) {
            first = MIN(first, at);
            end = at + n;
        } else {
            memcpy(buffer + at, host + at, n);
        }
    }
    if (end) {
        memcpy(host + first, buffer + first, end - first);
        tt_ram_changed(mr, host + first - (uint8_t *)memory_region_get_ram_ptr(mr),
                       end - first);
    }
    return before;
}
