/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shadow memory of a vfio-user device behind a virtual IOMMU: what the guest's driver
 * maps for the device has a shadow, nothing else.
 */
#include "qemu/osdep.h"
#include "tt-vfu-int.h"
#include "exec/address-spaces.h"
#include "hw/boards.h"
#include "hw-tt/vfio-user/tt-shadow.h"
#include "qapi/error.h"
#include "qemu/units.h"
#include "system/system.h"

/* Sparse. Linux uses addresses below 4 GiB as long as there are any. */
#define WINDOW_BYTES (UINT64_C(1) << 36)
/* A guest may map the same RAM often, and each mapping has memory of its own. */
#define MAPPED_MAX (4 * current_machine->maxram_size)

/* One for a region, which may be there in several parts: all of it must be listened to,
 * since an event may cross their edges. */
typedef struct TtVfuIommu {
    TtVfu *device;
    IOMMUMemoryRegion *mr;
    unsigned n_parts;
    uint64_t offset;                    /* from the region to the device's addresses */
    uint64_t first, last;               /* of these: what is listened to now */
    IOMMUNotifier notifier;
    QLIST_ENTRY(TtVfuIommu) next;
} TtVfuIommu;

uint64_t tt_vfu_iommu_bytes(const TtVfu *d)
{
    return d->shadows ? WINDOW_BYTES : TT_VFU_IOVA_BYTES;
}

bool tt_vfu_iommu_check(TtVfu *d, Error **errp)
{
    if (!d->shadows) {
        error_setg(errp, "without -tt, dma=shared does not work behind a virtual IOMMU: use "
                   "dma=messages");
        return false;
    }
    if (should_mlock(mlock_state)) {
        error_setg(errp, "dma=shared behind a virtual IOMMU needs memory that is not locked: "
                   "leave out -overcommit mem-lock, or use dma=messages");
        return false;
    }
    return true;
}

/* What of @s is whole pages for the device, which has @iova for the guest's @pa; true: all
 * of it. */
static bool map_ram(TtVfu *d, MemoryRegionSection *s, uint64_t iova, uint64_t pa,
                    bool can_write)
{
    uint64_t first = iova + (s->offset_within_address_space - pa);
    uint64_t skipped = -first & (TT_SHADOW_PAGE - 1), size = int128_get64(s->size);
    TtShadowsRange range = {
        .addr = first + skipped, .mr = s->mr, .at = s->offset_within_region + skipped,
        .can_write = can_write && !s->readonly,
    };

    range.size = size > skipped ? QEMU_ALIGN_DOWN(size - skipped, TT_SHADOW_PAGE) : 0;
    if (!range.size) {
        return false;
    }
    if (range.size > MAPPED_MAX || tt_shadows_mapped(d->shadows) > MAPPED_MAX - range.size) {
        tt_vfu_warn_once(d, TT_VFU_WARNED_MEMORY, "the guest gives it some memory many times, "
                         "more than four times its RAM: it cannot reach that at %" PRIx64
                         "h; use dma=messages", range.addr);
    } else if (!tt_shadows_map(d->shadows, &range, tt_vfu_dma_is_master(d))) {
        tt_vfu_warn_once(d, TT_VFU_WARNED_FAR, "the guest gives it memory at %" PRIx64 "h: "
                         "it cannot reach that, since dma=shared has only the first %u GiB "
                         "of addresses behind a virtual IOMMU, and no mapping across "
                         "fee00000h; use dma=messages", range.addr,
                         (unsigned)(WINDOW_BYTES / GiB));
    }
    return range.size == size;
}

/* All RAM in [@pa, @last]; true: there is nothing else. */
static bool map_all(TtVfu *d, uint64_t iova, uint64_t pa, uint64_t last, bool can_write)
{
    uint64_t from = pa, next;
    bool is_all = true;

    do {
        MemoryRegionSection s = memory_region_find(
            get_system_memory(), from, MIN(last - from, UINT64_MAX - 1) + 1);

        if (!s.mr) {
            return false;
        }
        next = s.offset_within_address_space + int128_get64(s.size);
        if (memory_region_is_ram(s.mr) && !memory_region_is_ram_device(s.mr)) {
            is_all &= s.offset_within_address_space == from;
            is_all &= map_ram(d, &s, iova, pa, can_write);
        } else {
            is_all = false;
        }
        memory_region_unref(s.mr);
        is_all &= next > from;
        from = next > from ? next : last + 1;
    } while (from && from <= last);
    return is_all;
}

static void map(TtVfu *d, IOMMUTLBEntry *e, uint64_t iova)
{
    uint64_t pa = e->translated_addr, last = pa + MIN(e->addr_mask, UINT64_MAX - pa);

    if (e->target_as != &address_space_memory ||
        !map_all(d, iova, pa, last, e->perm & IOMMU_WO)) {
        tt_vfu_warn_once(d, TT_VFU_WARNED_NO_RAM, "the guest gives it memory at %" PRIx64
                         "h that is not, or not only, pages of RAM: it reaches no more than "
                         "the RAM in it", iova);
    }
}

static void notify(IOMMUNotifier *n, IOMMUTLBEntry *e)
{
    TtVfuIommu *i = container_of(n, TtVfuIommu, notifier);
    uint64_t iova = e->iova + i->offset, last = iova + MIN(e->addr_mask, UINT64_MAX - iova);
    TtVfu *d = i->device;

    if (last < i->first || iova > i->last) {
        return;
    }
    RCU_READ_LOCK_GUARD();
    tt_shadows_unmap(d->shadows, iova, last, tt_vfu_dma_is_master(d));
    if (e->perm & IOMMU_RW && !tt_vfu_conn_is_lost(d->conn)) {
        map(d, e, iova);
    }
}

static TtVfuIommu *find(TtVfu *d, MemoryRegion *mr)
{
    TtVfuIommu *i;

    QLIST_FOREACH(i, &d->iommus, next) {
        if (MEMORY_REGION(i->mr) == mr) {
            return i;
        }
    }
    return NULL;
}

static TtVfuIommu *listen_to(TtVfu *d, MemoryRegionSection *s, Error **errp)
{
    TtVfuIommu *i = g_new0(TtVfuIommu, 1);

    i->device = d;
    i->mr = IOMMU_MEMORY_REGION(s->mr);
    i->offset = s->offset_within_address_space - s->offset_within_region;
    iommu_notifier_init(&i->notifier, notify, IOMMU_NOTIFIER_IOTLB_EVENTS, 0, UINT64_MAX,
                        memory_region_iommu_attrs_to_index(i->mr, MEMTXATTRS_UNSPECIFIED));
    if (memory_region_register_iommu_notifier(s->mr, &i->notifier, errp)) {
        g_free(i);
        return NULL;
    }
    QLIST_INSERT_HEAD(&d->iommus, i, next);
    return i;
}

bool tt_vfu_iommu_add(TtVfu *d, MemoryRegionSection *s, Error **errp)
{
    TtVfuIommu *i = find(d, s->mr) ?: listen_to(d, s, errp);

    if (i) {
        i->n_parts++;
        i->first = s->offset_within_address_space;
        i->last = i->first + int128_get64(int128_min(int128_sub(s->size, int128_one()),
                                                     int128_make64(UINT64_MAX - i->first)));
        memory_region_iommu_replay(i->mr, &i->notifier);
        i->first = 0;
        i->last = UINT64_MAX;
    }
    return i;
}

void tt_vfu_iommu_del(TtVfu *d, MemoryRegionSection *s)
{
    TtVfuIommu *i = find(d, s->mr);

    if (i && !--i->n_parts) {
        memory_region_unregister_iommu_notifier(s->mr, &i->notifier);
        QLIST_REMOVE(i, next);
        g_free(i);
    }
}
